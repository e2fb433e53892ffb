//! Tests of the emulator with independent clients.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

mod accounts;
mod ipmitool;
mod misbehaviour;
mod program;
mod quirks;
mod rack;
mod redfish;
mod settings;
mod subscriptions;
mod sushy;
mod thousands;
mod tree;
mod updates;
mod volumes;
