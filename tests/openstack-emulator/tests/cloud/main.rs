//! Tests of the emulated cloud from outside.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

mod actions;
mod balancers;
mod catalogue;
mod clients;
mod conventions;
mod disks;
mod guests;
mod hosts;
mod images;
mod kubernetes;
mod lists;
mod migration;
mod misbehaviour;
mod program;
mod routers;
mod somebody;
mod strict;
mod thousands;
