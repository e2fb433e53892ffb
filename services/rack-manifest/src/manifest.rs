//! A manifest, independent of the file format.

use std::fmt;

use serde_json::{Map, Value};

/// A rack, as its manifest describes it. Only the syntax has been checked, not the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub rack: String,
    pub description: Option<String>,
    pub machines: Vec<Machine>,
}

/// One machine of a rack.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The line in the file where the machine is described, from 1.
    pub line: u64,
    pub name: String,
    /// The place in the rack. Machines are brought up in this order.
    pub position: u32,
    /// MAC addresses of the ports the machine may boot from, as written in the file.
    pub macs: Vec<String>,
    pub bmc: Bmc,
    /// The boot interface; `None` selects the default of the driver.
    pub boot: Option<String>,
    /// The name of a group that several machines share.
    pub group: Option<String>,
    /// The role of the machine, such as `compute`.
    pub role: Option<String>,
    /// Ironic's resource class, used for scheduling.
    pub resource_class: Option<String>,
    /// Ironic's node properties: `root_device`, `capabilities`, …
    pub properties: Map<String, Value>,
}

/// How to reach a BMC.
#[derive(Clone, Debug, PartialEq)]
pub struct Bmc {
    pub kind: BmcKind,
    /// A URL (Redfish), or an address with an optional port (IPMI).
    pub address: String,
    pub user: Option<String>,
    pub password: Option<Password>,
    /// Redfish: the path of the system, needed if the BMC manages several.
    pub system: Option<String>,
    /// Redfish: `true`, `false` or `sha256:HEX`, the fingerprint of the certificate.
    pub verify: Option<Value>,
    /// IPMI: cipher suite 3 or 17.
    pub cipher_suite: Option<u8>,
}

/// The protocol of a BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BmcKind {
    Redfish,
    /// Redfish with Dell's extensions.
    Idrac,
    Ipmi,
    /// The machine has no BMC; the node uses the driver `fake-hardware`.
    Fake,
}

/// Where the password is stored. A manifest never contains the password itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// The first line of this file.
    File(String),
    /// The value of this environment variable.
    Environment(String),
}

/// A mistake in a manifest: a value that is wrong, or text that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ManifestError {
    /// The line in the file, from 1; 0 for mistakes of the rack itself.
    pub line: u64,
    /// The name of the field, such as `bmc.address`; in CSV the name of the column. Empty if the whole line cannot be read.
    pub field: String,
    pub problem: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ManifestError { line, field, problem } = self;
        let separator = if field.is_empty() { "" } else { ": " };
        write!(f, "line {line}: {field}{separator}{problem}")
    }
}
