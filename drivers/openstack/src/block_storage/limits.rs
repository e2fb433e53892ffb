//! Cinder's quotas of a project.

use serde::Deserialize;

use super::SERVICE;
use crate::error::Result;
use crate::quota::QuotaUsage;
use crate::session::Session;

/// Limits and usage of our project in Cinder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeLimits {
    pub volumes: QuotaUsage,
    /// In GiB, for volumes and snapshots together.
    pub gigabytes: QuotaUsage,
    pub snapshots: QuotaUsage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Absolute {
    #[serde(default = "unlimited")]
    max_total_volumes: i64,
    #[serde(default)]
    total_volumes_used: i64,
    #[serde(default = "unlimited")]
    max_total_volume_gigabytes: i64,
    #[serde(default)]
    total_gigabytes_used: i64,
    #[serde(default = "unlimited")]
    max_total_snapshots: i64,
    #[serde(default)]
    total_snapshots_used: i64,
}

fn unlimited() -> i64 {
    -1
}

/// Returns limits and usage of our project.
pub async fn show(session: &Session) -> Result<VolumeLimits> {
    #[derive(Deserialize)]
    struct Limits {
        absolute: Absolute,
    }
    let Limits { absolute: it } = session.get(SERVICE, &["limits"]).under("limits").await?;
    Ok(VolumeLimits {
        volumes: QuotaUsage::new(it.max_total_volumes, it.total_volumes_used),
        gigabytes: QuotaUsage::new(it.max_total_volume_gigabytes, it.total_gigabytes_used),
        snapshots: QuotaUsage::new(it.max_total_snapshots, it.total_snapshots_used),
    })
}
