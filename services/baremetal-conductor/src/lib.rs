#![doc = include_str!("../README.md")]

mod agents;
mod allowed;
mod bmcs;
mod boots;
mod catch_up;
mod cloud;
mod clusterd;
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
mod observations;
mod observe;
mod perform;
mod problem;
mod racks;
mod seal_keys;
mod secrets;
mod settings;
mod sweep;
mod turn;

pub use boots::{BootError, Heartbeat};
pub use clusterd::{ClusterdClient, ClusterdIdentity, TakeOutRefused};
pub use consoles::{ConsoleEnd, ConsoleError, ConsoleSettings, ConsoleViewer};
pub use handle::{Conductor, RunError, StartError};
pub use observations::{LastSeen, TimedObservation};
pub use secrets::ServiceKey;
pub use settings::{
    BmcSettings, Leases, LendingSettings, Settings, SweepSettings, UnknownMachines,
};
