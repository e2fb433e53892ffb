//! How many load balancers a project may have.

use serde::Deserialize;

use super::SERVICE;
use super::load_balancers::Part;
use crate::error::CloudError;
use crate::quota::Allowance;
use crate::session::Session;

/// How many load balancers our project may have, and has.
///
/// Octavia tells limits alone, so what there is is counted.
pub async fn load_balancers(session: &Session) -> Result<Allowance, CloudError> {
    #[derive(Deserialize)]
    struct Quota {
        // Which of the two names is used depends on the release; null is Octavia's own default.
        #[serde(default)]
        load_balancer: Option<i64>,
        #[serde(default)]
        loadbalancer: Option<i64>,
    }
    let project = session.identity().await?.project_id.unwrap_or_default();
    let quota: Quota = session.get(SERVICE, &["quotas", &project]).under("quota").await?;
    let call = session.get(SERVICE, &["loadbalancers"]).query("project_id", project.as_str());
    let there: Vec<Part> = call.query("fields", "id").all("loadbalancers").await?;
    let used = i64::try_from(there.len()).unwrap_or(i64::MAX);
    Ok(Allowance::new(quota.load_balancer.or(quota.loadbalancer).unwrap_or(-1), used))
}
