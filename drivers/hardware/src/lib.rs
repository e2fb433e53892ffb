#![doc = include_str!("../README.md")]

mod allowed;
mod boot;
mod inventory;
mod mac_address;
mod power;

pub use allowed::{AllowedHost, AllowedHosts, HostRefused, InvalidHost, InvalidNetwork, Network};
pub use boot::{BootDevice, BootMode, BootOverride, Persistence, UnknownBootDevice};
pub use inventory::{Disk, Firmware, Inventory, Nic, Processor};
pub use mac_address::{InvalidMacAddress, MacAddress};
pub use power::{PowerChange, PowerState};
