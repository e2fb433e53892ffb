#![doc = include_str!("../README.md")]

mod bounds;
mod record;
mod sealed;
mod store;
mod table;
mod written;

pub use database::table::{Listed, Part, Position};
pub use database::{SchemaVersion, StoreError};
pub use record::{
    Certificate, Change, Claim, Happened, MachineReport, Quota, Redeemed, Said, Scope, ServiceSeen,
    SnapshotChange, VmChange, VmScope,
};
pub use sealed::{SealedSecret, SealedUserData};
pub use store::{Belongings, SCHEMA, Store};
pub use table::LedgerPosition;
pub use written::Listener;
