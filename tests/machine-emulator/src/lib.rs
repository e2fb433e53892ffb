#![doc = include_str!("../README.md")]

mod agent;
mod cd;
mod compute_host;
mod config_drive;
mod console;
mod control;
mod dhcp;
mod disk;
mod event;
mod fault;
mod fetch;
mod firmware;
mod ipxe;
mod life;
mod machine;
mod pace;
mod rack;
mod relay;
mod saved_state;
mod tftp;

pub use agent::AgentKind;
pub use config_drive::ConfigDrive;
pub use control::{Control, serve_control};
pub use disk::{Content, Disk};
pub use event::{BootSource, Event, Stage};
pub use fault::{FaultSet, InventoryLie};
pub use machine::Machine;
pub use pace::Speed;
pub use rack::{Network, Rack, Systems};
