//! Three of each service share a PostgreSQL behind haproxy. Processes are killed, paused and stopped, clocks are set, PostgreSQL is restarted
//! and failed over, while clients send requests and machines, clusters and VMs are made: nothing is lost, and nothing is done twice.
//!
//! `make test-replicas` runs these stories, and `make test-upgrade` the one of an upgrade. They last for minutes, so `make test-fast` leaves
//! them out.

mod client;
mod clocks;
mod consoles;
mod effects;
mod failover;
mod handovers;
mod kills;
mod pauses;
mod program;
mod quorum_watch;
mod three;
mod upgrade;
mod work;

use std::time::Duration;

/// The pause between two looks at a process.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The time after which the work of a process that died goes on elsewhere.
const TAKEN_OVER: Duration = Duration::from_secs(10);
/// The time after which the work of a process that was told to stop goes on elsewhere.
const HANDED_OVER: Duration = Duration::from_secs(1);
