//! The stages at the end of a lease.

use jiff::Timestamp;

/// One stage at the end of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStage {
    /// The lessee is told that the lease ends.
    Warn {
        ends_at: Timestamp,
    },
    /// The resource is switched off, and the lessee is told when the deletion follows.
    SwitchOff {
        deleted_at: Timestamp,
    },
    /// A snapshot of the resource is made. This step stays due until the snapshot exists.
    Snapshot,
    /// The lessee is told that the resource will be deleted.
    WarnOfDeletion {
        deleted_at: Timestamp,
    },
    Delete,
}
