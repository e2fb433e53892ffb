#![doc = include_str!("../README.md")]

mod agents;
mod allowed;
mod bmcs;
mod boots;
mod catch_up;
mod cloud;
mod clusters;
mod config_drive;
mod consoles;
mod directory;
mod fake;
mod gate;
mod handle;
mod inventory;
mod joining;
mod leases;
mod leaving;
mod lending;
mod observe;
mod perform;
mod problem;
mod racks;
mod seals;
mod secrets;
mod settings;
mod sightings;
mod sweep;
mod turn;

pub use boots::{BootError, Heartbeat};
pub use clusters::{Clusters, ClustersCaller, StaysError};
pub use consoles::{ConsoleError, ConsoleSettings, End, Viewing};
pub use handle::{Conductor, RunError, StartError};
pub use secrets::ServiceKey;
pub use settings::{
    BmcSettings, Leases, LendingSettings, Settings, SweepSettings, UnknownMachines,
};
pub use sightings::{LastSeen, Sighting};
