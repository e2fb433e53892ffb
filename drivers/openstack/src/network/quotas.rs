//! Neutron's quotas of a project.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SERVICE;
use crate::error::Result;
use crate::quota::{Detail, QuotaUsage};
use crate::session::Session;

/// Returns limit and usage of `network`, `subnet`, `port`, `router`, `floatingip`, `security_group`, `security_group_rule` and everything
/// else that this Neutron counts in our project.
pub async fn show(session: &Session) -> Result<BTreeMap<String, QuotaUsage>> {
    let project = session.identity().await?.project_id.unwrap_or_default();
    let call = session.get(SERVICE, &["quotas", &project, "details.json"]);
    let quota: BTreeMap<String, Value> = call.under("quota").await?;
    let counted = quota.into_iter().filter_map(|(name, value)| {
        let detail: Detail = serde_json::from_value(value).ok()?;
        Some((name, detail.into()))
    });
    Ok(counted.collect())
}
