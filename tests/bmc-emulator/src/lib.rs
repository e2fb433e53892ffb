#![doc = include_str!("../README.md")]

mod boot;
mod control;
mod events;
mod faults;
mod ipmi;
mod kept;
mod log;
mod machine;
mod profile;
mod redfish;
mod sensors;
mod serial;
mod serve;
mod spec;
mod tls;
pub mod web;

pub use boot::{BootChoice, BootDevice, Lasting};
pub use control::{Control, serve_control};
pub use faults::{CompletionFault, FaultSet, Faults, ReportedPower, StatusFault};
pub use kept::Kept;
pub use log::{BmcLogEntry, Face, Outcome, PowerRequest, Request};
pub use machine::{Machine, Power};
pub use serial::SerialPort;
pub use serve::{Served, ServedMachine, serve};
pub use spec::{BmcKind, BmcSpec, DiskSpec, Firmware, InvalidMac, Mac, MachineSpec, NicSpec};
