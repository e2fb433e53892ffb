#![doc = include_str!("../README.md")]

mod boot;
mod clock;
mod control;
mod events;
mod faults;
mod firmware_updates;
mod ipmi;
mod kept;
mod log;
mod machine;
mod profile;
mod redfish;
mod sensors;
mod serial;
mod serve;
mod setup;
mod spec;
mod subscriptions;
mod template;
mod tls;
mod updates;
mod volume_changes;
mod volumes;
pub mod web;

pub use boot::{BootChoice, BootDevice, OverrideDuration};
pub use control::{Control, serve_control};
pub use faults::{CompletionFault, FaultSet, Faults, ReportedPower, StatusFault};
pub use kept::PersistedState;
pub use log::{BmcLogEntry, Outcome, PowerRequest, Protocol, Request};
pub use machine::{Machine, Power};
pub use serial::SerialPort;
pub use serve::{Served, ServedMachine, serve};
pub use spec::{BmcKind, BmcSpec, DiskSpec, Firmware, InvalidMac, Mac, MachineSpec, NicSpec};
pub use subscriptions::Subscription;
pub use tls::Identity;
pub use volumes::Volume;
