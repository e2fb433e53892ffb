#![doc = include_str!("../README.md")]

mod agent;
mod bmc_address;
mod causes;
mod cd;
mod compute_host;
mod config_drive;
mod console;
mod control;
mod dhcp;
mod discard;
mod disk;
mod event;
mod fault;
mod fetch;
mod firmware;
mod handover;
mod ipxe;
mod life;
mod machine;
mod pace;
mod rack;
mod rack_context;
mod relay;
mod saved_state;
mod serial_output;
mod tftp;

pub use bmc_address::address_of_bmc;
pub use config_drive::ConfigDrive;
pub use control::serve_control;
pub use disk::{Content, Disk};
pub use event::{BootSource, Event, Stage};
pub use fault::{FaultSet, InventoryLie};
pub use machine::{AgentKind, Machine};
pub use pace::Speed;
pub use rack::Rack;
pub use rack_context::{Network, Systems};
