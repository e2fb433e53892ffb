//! What clients that share no code with the emulator see of it.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod ipmitool;
mod misbehaviour;
mod program;
mod quirks;
mod rack;
mod redfish;
mod sushy;
mod thousands;
mod tree;
