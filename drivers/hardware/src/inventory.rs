//! What a machine is made of, as its BMC tells it.
//!
//! Everything is optional: BMCs leave out what they please. The inventory taken by the agent on
//! the machine itself is richer and lives in `agent-protocol`.

use serde::{Deserialize, Serialize};

use crate::{BootMode, MacAddress};

/// An out-of-band inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Who made the machine.
    pub manufacturer: Option<String>,
    /// What its maker calls it.
    pub model: Option<String>,
    /// Its serial number.
    pub serial_number: Option<String>,
    /// The SMBIOS system UUID, as the BMC spells it.
    pub system_uuid: Option<String>,
    /// Its processors.
    pub processor: Processor,
    /// Total memory in MiB.
    pub memory_mib: Option<u64>,
    /// Its network interfaces.
    pub nics: Vec<Nic>,
    /// Its disks.
    pub disks: Vec<Disk>,
    /// Versions of its firmware.
    pub firmware: Vec<Firmware>,
    /// The mode it boots in now.
    pub boot_mode: Option<BootMode>,
}

/// All processors of a machine, taken together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// How many sockets are filled.
    pub sockets: Option<u32>,
    /// How many logical processors there are in all.
    pub threads: Option<u32>,
    /// `x86_64`, `aarch64`, …
    pub architecture: Option<String>,
    /// The model's name.
    pub model: Option<String>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// The BMC's name of it.
    pub name: String,
    /// Its permanent address.
    pub mac: MacAddress,
    /// Speed of the link in Mbit/s, if it is up and told.
    pub speed_mbps: Option<u32>,
    /// Whether there is a link.
    pub link_up: Option<bool>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The BMC's name of it.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// Its model.
    pub model: Option<String>,
    /// Its serial number.
    pub serial_number: Option<String>,
    /// Whether it turns.
    pub rotational: Option<bool>,
}

/// One piece of firmware.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firmware {
    /// What it runs: `bmc`, `bios`, or the BMC's own name of the component.
    pub component: String,
    /// Its version.
    pub version: String,
}
