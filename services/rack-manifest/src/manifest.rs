//! What a manifest says, whatever file format it came in.

use std::fmt;

use serde_json::{Map, Value};

use crate::{csv, yaml};

/// A rack, as its manifest describes it. Nothing in it has been checked yet but its form.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The rack's name.
    pub rack: String,
    /// Free text.
    pub description: Option<String>,
    /// What stands in it.
    pub machines: Vec<Machine>,
}

/// One machine of a rack.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Where it stands in the file, from 1.
    pub line: u64,
    /// Its name.
    pub name: String,
    /// Its place in the rack.
    pub position: u32,
    /// Addresses of the network ports it may boot from, as written.
    pub macs: Vec<String>,
    /// Its BMC.
    pub bmc: Bmc,
    /// How the ramdisk gets onto it; the driver's default unless told.
    pub boot: Option<String>,
    /// A group of machines.
    pub group: Option<String>,
    /// What it is for.
    pub role: Option<String>,
    /// What kind of machine it is, for scheduling.
    pub resource_class: Option<String>,
    /// What it is: `root_device`, `capabilities`, …
    pub properties: Map<String, Value>,
}

/// How to reach a BMC.
#[derive(Clone, Debug, PartialEq)]
pub struct Bmc {
    /// What it speaks.
    pub kind: BmcKind,
    /// Its URL (Redfish) or address, perhaps with a port (IPMI).
    pub address: String,
    /// The account's name.
    pub user: Option<String>,
    /// Where the account's password is.
    pub password: Option<Password>,
    /// Redfish: the system's path, where the BMC has several.
    pub system: Option<String>,
    /// Redfish: `true`, `false` or `sha256:HEX`.
    pub verify: Option<Value>,
    /// IPMI: 3 or 17.
    pub cipher_suite: Option<u8>,
}

/// What a BMC speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BmcKind {
    /// Redfish.
    Redfish,
    /// IPMI 2.0.
    Ipmi,
    /// No BMC: driver `fake-hardware`.
    Fake,
}

/// Where a password is. A manifest never holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// The first line of this file.
    File(String),
    /// This environment variable.
    Environment(String),
}

/// Something in a manifest that cannot be, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Mistake {
    /// Where, from 1; 0 for the rack itself.
    pub line: u64,
    /// Which field: `bmc.address`; in CSV, which column. Empty where a line as a whole cannot be read.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { line, field, problem } = self;
        let separator = if field.is_empty() { "" } else { ": " };
        write!(f, "line {line}: {field}{separator}{problem}")
    }
}

/// Reads a manifest in YAML. The first thing that cannot be read is told.
pub fn read_yaml(text: &str) -> Result<Manifest, Vec<Mistake>> {
    yaml::read(text)
}

/// Reads a manifest in CSV, with a header line. The rack's name is not in it.
///
/// Where rows cannot be read, what `check` has to say of the others is told with them.
pub fn read_csv(rack: &str, text: &str) -> Result<Manifest, Vec<Mistake>> {
    csv::read(rack, text)
}
