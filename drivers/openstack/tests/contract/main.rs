//! Runs the same stories against every cloud that is given: a real one, or an emulator. See the README for `BEDPLATE_TEST_OPENSTACK`. Each
//! story deletes the objects that it made, even if it fails (`tidy`).

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod given;
mod resolve;
mod tidy;

mod block_storage;
mod compute;
mod dns;
mod hosts;
mod identity;
mod image;
mod load_balancer;
mod network;
mod object_store;
mod placement;
mod unknown;
