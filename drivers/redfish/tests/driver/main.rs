//! Tests of the driver over real sockets, against JSON resource trees in the style of several vendors.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod fixture;

mod account;
mod bios;
mod boot;
mod boot_settings;
mod clock;
mod firmware;
mod hostile;
mod inventory;
mod media;
mod mutants;
mod power;
mod raid;
mod serial;
mod session;
mod subscriptions;
mod tls;
