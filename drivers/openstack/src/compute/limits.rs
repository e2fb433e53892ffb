//! Nova's quotas of a project.

use serde::Deserialize;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::quota::QuotaUsage;
use crate::session::Session;

/// Limits and usage of our project in Nova.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputeLimits {
    pub instances: QuotaUsage,
    pub cores: QuotaUsage,
    /// Memory of all servers in MiB.
    pub ram: QuotaUsage,
    pub server_groups: QuotaUsage,
    /// Servers in one server group.
    pub server_group_members: Option<u64>,
    /// Key pairs of one user.
    pub key_pairs: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Absolute {
    max_total_instances: i64,
    total_instances_used: i64,
    max_total_cores: i64,
    total_cores_used: i64,
    #[serde(rename = "maxTotalRAMSize")]
    max_total_ram: i64,
    #[serde(rename = "totalRAMUsed")]
    total_ram_used: i64,
    max_server_groups: i64,
    total_server_groups_used: i64,
    max_server_group_members: i64,
    max_total_keypairs: i64,
}

impl Default for Absolute {
    /// A limit that Nova does not report counts as unlimited.
    fn default() -> Absolute {
        Absolute {
            max_total_instances: -1,
            total_instances_used: 0,
            max_total_cores: -1,
            total_cores_used: 0,
            max_total_ram: -1,
            total_ram_used: 0,
            max_server_groups: -1,
            total_server_groups_used: 0,
            max_server_group_members: -1,
            max_total_keypairs: -1,
        }
    }
}

/// Returns limits and usage of our project.
pub async fn show(session: &Session) -> Result<ComputeLimits> {
    #[derive(Deserialize)]
    struct Limits {
        #[serde(default)]
        absolute: Absolute,
    }
    let call = session.get(SERVICE, &["limits"]).microversion(MICROVERSION);
    let Limits { absolute: it } = call.under("limits").await?;
    Ok(ComputeLimits {
        instances: QuotaUsage::new(it.max_total_instances, it.total_instances_used),
        cores: QuotaUsage::new(it.max_total_cores, it.total_cores_used),
        ram: QuotaUsage::new(it.max_total_ram, it.total_ram_used),
        server_groups: QuotaUsage::new(it.max_server_groups, it.total_server_groups_used),
        server_group_members: u64::try_from(it.max_server_group_members).ok(),
        key_pairs: u64::try_from(it.max_total_keypairs).ok(),
    })
}
