//! One file per table: functions on a connection. No other module knows the columns of the table.

pub(crate) mod allocation;
pub(crate) mod bios_setting;
pub(crate) mod boot;
pub(crate) mod conductor;
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
pub use node::{NodeCount, ShardCount};
pub use profile::ProfileRow;

use baremetal_core::NodeUuid;
use database::StoreError;
use newtype_uuid::GenericUuid;

/// The error for a row whose `node` does not exist.
pub(crate) fn no_node(node: NodeUuid) -> StoreError {
    StoreError::NoOwner { owner: "node", id: node.into_untyped_uuid() }
}
