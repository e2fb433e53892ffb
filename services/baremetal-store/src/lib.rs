#![doc = include_str!("../README.md")]

mod secrets;
mod size_limits;
mod store;
mod table;

pub use database::table::{PagePart, PageRows, Position};
pub use database::{MAX_NOTIFICATION, Notifications, Result, SchemaVersion, StoreError, Tripwire};
pub use secrets::{SecretError, Secrets};
pub use store::{
    AcceptOutcome, BackfillOutcome, DrainOutcome, ImportEffect, ImportedNode,
    MOST_IMPORTED_HISTORY, ReencryptionResult, RegisterOutcome, ReserveOutcome, SCHEMA, SeenPower,
    Store,
};
pub use table::{
    AddressPool, BMC_FIELD, ConductorLease, ConductorReport, ConductorRow, DhcpLease, NewConductor,
    NodeCount, NodeDetail, NodeGroup, NodeVersion, ProfileRow, Seen, ShardCount, SharedBmcs,
};
