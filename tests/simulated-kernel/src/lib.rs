#![doc = include_str!("../README.md")]

mod clock;
mod files;
mod host;
mod network;
mod random;
mod threads;
mod waits;

mod scheduler;

mod cuts;
mod handoff;

mod kernel;

mod address;
mod real;
mod stream;
mod virtual_time;

use std::time::Duration;

pub use clock::FIRST_SECOND;
pub use kernel::{Datagram, Host, Request};
pub use network::{lose_connections, take_datagrams, take_requests};
pub use scheduler::Summary;

/// Makes the calling thread, and all threads that it and its threads start, part of a simulation with this seed. A process has at most one
/// simulation.
pub fn begin(seed: u64) {
    kernel::begin(seed);
}

/// Ends the simulation for the calling thread, which is the one that began it. The other threads do not go on.
pub fn end() -> Summary {
    scheduler::end()
}

/// Calls a function after so many choices of a thread. The function must end the process.
pub fn end_after(switches: u64, then: fn()) {
    kernel::with(|it| it.limit = (switches, then));
}

/// The virtual time since the beginning.
pub fn elapsed() -> Duration {
    Duration::from_nanos(virtual_time::now())
}

/// Chooses a number below `limit`, from the stream of random numbers for the choices of a simulation.
pub fn choose(limit: u64) -> u64 {
    kernel::with(|it| it.choices.below(limit)).unwrap_or_default()
}
