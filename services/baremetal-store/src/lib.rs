#![doc = include_str!("../README.md")]

mod notifier;
mod secrets;
mod size_limits;
mod store;
mod table;

pub use database::table::{PagePart, PageRows, Position};
pub use database::webhook_events::{
    DeadEvent, EventOutbox, Subscription, Subscriptions, WebhookBacklog,
};
pub use database::{Result, SchemaVersion, StoreError, Tripwire, WriteMetrics};
pub use secrets::{SecretError, Secrets};
pub use store::{
    AcceptOutcome, BackfillOutcome, Capacity, ImportEffect, ImportedNode, MOST_IMPORTED_HISTORY,
    ReencryptionResult, ReserveOutcome, SCHEMA, SeenPower, Store,
};
pub use table::{
    AddressPool, BMC_FIELD, ClassCapacity, DhcpLease, NodeCount, NodeDetail, NodeGroup,
    NodeVersion, ProfileRow, Seen, ShardCount, SharedBmcs,
};
