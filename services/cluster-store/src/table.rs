//! Each table has a file with functions on a connection. No other file knows the columns of the table.

pub(crate) mod certificate;
pub(crate) mod claim;
pub(crate) mod cluster;
pub(crate) mod drain;
pub(crate) mod event;
mod event_part;
pub(crate) mod grant;
pub(crate) mod holding;
pub(crate) mod ledger;
pub(crate) mod machine;
pub(crate) mod node_group;
pub(crate) mod quota;
pub(crate) mod seal;
pub(crate) mod secret;
pub(crate) mod service;
pub(crate) mod snapshot;
pub(crate) mod subdomain;
pub(crate) mod template;
pub(crate) mod vm;
pub(crate) mod vm_event;

pub use ledger::LedgerPosition;

use cluster_core::{ClusterUuid, VmUuid};
use database::table::{is_missing_owner, violated_unique_column};
use database::{Result, SqlError, StoreError};
use newtype_uuid::GenericUuid;

/// Translates the error of an insert or update of a row with this name and id.
fn refused(
    error: SqlError,
    name: &str,
    id: &impl ToString,
    owner: (&'static str, uuid::Uuid),
) -> StoreError {
    if is_missing_owner(&error) {
        return StoreError::NoOwner { owner: owner.0, id: owner.1 };
    }
    match violated_unique_column(&error).as_deref() {
        Some(column) if column.ends_with("name") => {
            StoreError::Duplicate { field: "name", value: name.to_owned() }
        }
        Some(_) => StoreError::Duplicate { field: "uuid", value: id.to_string() },
        None => error.into(),
    }
}

/// Returns the owner for `NoOwner`: a cluster.
fn of_cluster(cluster: ClusterUuid) -> (&'static str, uuid::Uuid) {
    ("cluster", cluster.into_untyped_uuid())
}

/// Returns the owner for `NoOwner`: a VM.
fn of_vm(vm: VmUuid) -> (&'static str, uuid::Uuid) {
    ("VM", vm.into_untyped_uuid())
}

/// Translates the result of a delete: `InUse` when other rows refer to the row.
fn deleted(written: Result<u64, SqlError>, by: &'static str) -> Result<()> {
    match written {
        Err(error) if is_missing_owner(&error) => Err(StoreError::InUse { by }),
        written => database::table::changed_one(written?),
    }
}
