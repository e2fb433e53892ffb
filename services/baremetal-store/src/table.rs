//! One file per table: functions on a connection. No other module knows the columns of the table.

pub(crate) mod allocation;
pub(crate) mod bios_setting;
pub(crate) mod boot;
pub(crate) mod discovery;
pub(crate) mod history;
pub(crate) mod inspection;
pub(crate) mod lease;
pub(crate) mod listed_steps;
pub(crate) mod node;
pub(crate) mod port;
pub(crate) mod profile;
pub(crate) mod rack;
pub(crate) mod resource;
pub(crate) mod seal;

pub use discovery::Seen;
pub use lease::{AddressPool, DhcpLease};
pub use node::{
    BMC_FIELD, ClassCapacity, NodeCount, NodeDetail, NodeGroup, NodeVersion, ShardCount, SharedBmcs,
};
pub use profile::ProfileRow;

use baremetal_core::{MOST_PARTS, NodeUuid};
use database::{Result, StoreError};
use newtype_uuid::GenericUuid;

/// The number of ids in one statement.
const IDS_AT_ONCE: usize = 500;

/// The most parts of a node of each kind, and the most runbooks of a project.
const MOST_EACH: u64 = MOST_PARTS as u64;

/// Refuses one more record for a `holder` that has `used` of them already. Requests at the same time can exceed the limit by a few, which is
/// harmless.
pub(crate) fn check_limit(what: &'static str, holder: &'static str, used: i64) -> Result<()> {
    match used.unsigned_abs() {
        used if used < MOST_EACH => Ok(()),
        used => Err(StoreError::LimitReached { what, holder, used, most: MOST_EACH }),
    }
}

/// The error for a row whose `node` does not exist.
pub(crate) fn no_node(node: NodeUuid) -> StoreError {
    StoreError::NoOwner { owner: "node", id: node.into_untyped_uuid() }
}
