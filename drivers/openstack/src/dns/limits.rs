//! Designate's quotas of a project.

use serde::Deserialize;

use super::SERVICE;
use crate::error::Result;
use crate::quota::QuotaUsage;
use crate::session::Session;

/// Returns limit and usage of recordsets in a zone, including the zone's own SOA and NS.
///
/// Designate reports limits only, so the usage comes from a list, whose metadata has the total number.
pub async fn recordsets(session: &Session, zone_id: &str) -> Result<QuotaUsage> {
    #[derive(Deserialize)]
    struct Limits {
        #[serde(default = "unlimited")]
        max_zone_recordsets: i64,
    }
    #[derive(Deserialize)]
    struct Metadata {
        total_count: i64,
    }
    let limits = async { session.get(SERVICE, &["limits"]).send().await?.whole::<Limits>() };
    let list = session.get(SERVICE, &["zones", zone_id, "recordsets"]).query("limit", "1");
    let (limits, list): (Limits, Metadata) = tokio::try_join!(limits, list.under("metadata"))?;
    Ok(QuotaUsage::new(limits.max_zone_recordsets, list.total_count))
}

fn unlimited() -> i64 {
    -1
}
