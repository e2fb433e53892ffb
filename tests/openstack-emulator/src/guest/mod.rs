//! Guests of servers: each reads its user data as Ignition does, then runs as the chosen guest type.

mod boot;
mod fetch;
mod ignition;
mod machine;
mod merge;
mod progress;

pub(crate) use boot::{boot, resume};
pub(crate) use fetch::{client_builder, plain_client};
pub use ignition::files;
pub use machine::{Guest, GuestMachine, Joins};
pub use progress::Progress;
