//! The inventory of a machine, as its BMC reports it.
//!
//! Every part is optional, because BMCs leave parts out. The agent takes a richer inventory on the machine itself; its
//! type is in `agent-protocol`.

use serde::{Deserialize, Serialize};

use crate::{BootMode, MacAddress};

/// An out-of-band inventory: read through the BMC, without booting the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    pub manufacturer: Option<String>,
    pub model: Option<String>,
    pub serial_number: Option<String>,
    /// The SMBIOS system UUID, in the BMC's spelling.
    pub system_uuid: Option<String>,
    pub processor: Processor,
    pub memory_mib: Option<u64>,
    pub nics: Vec<Nic>,
    pub disks: Vec<Disk>,
    pub firmware: Vec<Firmware>,
    pub boot_mode: Option<BootMode>,
}

/// All processors of a machine, summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// The number of filled sockets.
    pub sockets: Option<u32>,
    /// The number of logical processors in all sockets.
    pub threads: Option<u32>,
    /// `x86_64`, `aarch64`, …
    pub architecture: Option<String>,
    pub model: Option<String>,
}

/// A network interface card of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// The BMC's name for the interface.
    pub name: String,
    /// The permanent address.
    pub mac: MacAddress,
    /// Speed of the link in Mbit/s; `None` if the link is down or the BMC does not tell.
    pub speed_mbps: Option<u32>,
    pub link_up: Option<bool>,
}

/// A disk of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The BMC's name for the disk.
    pub name: String,
    pub size_bytes: Option<u64>,
    pub model: Option<String>,
    pub serial_number: Option<String>,
    pub rotational: Option<bool>,
}

/// The version of one firmware component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firmware {
    /// `bmc`, `bios`, or the BMC's own name of the component.
    pub component: String,
    pub version: String,
}
