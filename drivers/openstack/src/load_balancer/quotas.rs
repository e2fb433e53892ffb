//! Octavia's quotas of a project.

use serde::Deserialize;

use super::SERVICE;
use super::load_balancers::Part;
use crate::error::Result;
use crate::quota::QuotaUsage;
use crate::session::Session;

/// Returns limit and usage of load balancers in our project.
///
/// Octavia reports limits only, so the load balancers are counted.
pub async fn load_balancers(session: &Session) -> Result<QuotaUsage> {
    #[derive(Deserialize)]
    struct Quota {
        // The name of the field depends on the release; null means Octavia's own default.
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
    Ok(QuotaUsage::new(quota.load_balancer.or(quota.loadbalancer).unwrap_or(-1), used))
}
