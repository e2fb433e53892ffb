#![doc = include_str!("../README.md")]

mod record;
mod store;
mod table;
mod written;

pub use database::StoreError;
pub use record::{
    Certificate, Change, Claim, MachineReport, Quota, Redeemed, Said, Scope, ServiceSeen,
};
pub use store::{SealedSecret, Store};
pub use written::Listener;
