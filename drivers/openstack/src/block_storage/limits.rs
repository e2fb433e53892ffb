//! How much of Cinder's a project may have.

use serde::Deserialize;

use super::SERVICE;
use crate::error::CloudError;
use crate::quota::Allowance;
use crate::session::Session;

/// How much of Cinder's our project may have, and has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeLimits {
    /// Volumes.
    pub volumes: Allowance,
    /// GiB, of volumes and snapshots.
    pub gigabytes: Allowance,
    /// Snapshots.
    pub snapshots: Allowance,
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

/// How much our project may have, and has.
pub async fn show(session: &Session) -> Result<VolumeLimits, CloudError> {
    #[derive(Deserialize)]
    struct Limits {
        absolute: Absolute,
    }
    let Limits { absolute: it } = session.get(SERVICE, &["limits"]).under("limits").await?;
    Ok(VolumeLimits {
        volumes: Allowance::new(it.max_total_volumes, it.total_volumes_used),
        gigabytes: Allowance::new(it.max_total_volume_gigabytes, it.total_gigabytes_used),
        snapshots: Allowance::new(it.max_total_snapshots, it.total_snapshots_used),
    })
}
