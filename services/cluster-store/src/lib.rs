#![doc = include_str!("../README.md")]

mod bounds;
mod record;
mod refusal;
mod sealed;
mod store;
mod table;
mod write_notifier;

pub use database::table::{PagePart, PageRows, Position};
pub use database::webhook_events::{
    DeadEvent, EventOutbox, Subscription, Subscriptions, WebhookBacklog,
};
pub use database::{Result, SchemaVersion, StoreError, Tripwire, WriteMetrics};
pub use record::{
    AnyEvent, BootstrapReport, Certificate, Claim, ClusterChange, MachineReport, Quota,
    RedeemOutcome, Scope, ServiceSeen, SnapshotChange, VmChange, VmScope,
};
pub use refusal::{DrainGrantError, QuotaWriteError};
pub use sealed::{SealedSecret, SealedUserData};
pub use store::{SCHEMA, ServerOwners, Store};
pub use table::LedgerPosition;
pub use write_notifier::Listener;
