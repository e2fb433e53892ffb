//! The hardware of an emulated machine, as a file of machines describes it.

use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One machine and its BMC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// The name of the machine, also in the control API.
    pub name: String,
    pub uuid: Uuid,
    /// The serial number of the chassis.
    pub serial: String,
    pub manufacturer: String,
    pub model: String,
    pub firmware: Firmware,
    /// The network cards, in slot order.
    #[serde(default)]
    pub nics: Vec<NicSpec>,
    /// The disks, in bay order.
    #[serde(default)]
    pub disks: Vec<DiskSpec>,
    /// The number of logical processors.
    pub cpus: u32,
    pub memory_mib: u64,
    pub bmc: BmcSpec,
}

/// The kind of firmware a machine boots with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Firmware {
    /// PC-compatible ("legacy") boot.
    Bios,
    Uefi,
}

/// One network port of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicSpec {
    /// The permanent MAC address.
    pub mac: Mac,
    pub speed_mbps: u32,
}

/// One disk of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// The name of the disk in the operating system, such as `sda`.
    pub name: String,
    pub serial: String,
    pub size_bytes: u64,
    pub model: String,
    /// Whether the disk is a hard disk with platters.
    pub rotational: bool,
}

/// The management controller of a machine: its protocols, addresses and account.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BmcSpec {
    /// The protocol at `address`.
    pub kind: BmcKind,
    /// The address to listen on. Port 0 takes any free port.
    pub address: SocketAddr,
    /// Whether Redfish is served over HTTPS. IPMI ignores this.
    #[serde(default)]
    pub tls: bool,
    /// The user name of the only account, at most 16 bytes with IPMI.
    pub username: String,
    /// The password of the only account, at most 20 bytes with IPMI.
    pub password: String,
    /// The name of one of `profiles/*.json`.
    #[serde(default = "generic")]
    pub profile: String,
    /// The address on which a Redfish machine also serves IPMI. `None` without IPMI.
    #[serde(default)]
    pub also_ipmi: Option<SocketAddr>,
    /// Whether the BMC has its own certificate instead of one that all machines of the process share.
    #[serde(default)]
    pub own_certificate: bool,
}

/// The protocol of a management controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BmcKind {
    /// Redfish (DSP0266) over HTTP or HTTPS.
    Redfish,
    /// IPMI 2.0 over RMCP+.
    Ipmi,
}

/// The permanent address of a network card, written as `52:54:00:12:34:56`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mac(pub [u8; 6]);

/// The error for a text that is not six hexadecimal bytes separated by colons.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is not a MAC address such as 52:54:00:12:34:56")]
pub struct InvalidMac {
    raw: String,
}

impl MachineSpec {
    /// Reads a list of machines from a YAML or JSON file. Their names must differ.
    pub fn read_all(path: &Path) -> io::Result<Vec<MachineSpec>> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot read {shown}: {error}"))
        })?;
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        // JSON is YAML too.
        let machines: Vec<MachineSpec> = serde_saphyr::from_str(&text)
            .map_err(|error| invalid(format!("cannot understand {shown}: {error}")))?;
        let mut names: Vec<&str> = machines.iter().map(|machine| machine.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(invalid(format!("{shown} names two machines {:?}", twice[0]))),
            None => Ok(machines),
        }
    }
}

impl FromStr for Mac {
    type Err = InvalidMac;

    fn from_str(raw: &str) -> Result<Mac, InvalidMac> {
        let invalid = || InvalidMac { raw: raw.chars().take(64).collect() };
        let mut octets = [0; 6];
        let mut parts = raw.split(':');
        for octet in &mut octets {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(invalid)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| invalid())?;
        }
        if parts.next().is_some() { Err(invalid()) } else { Ok(Mac(octets)) }
    }
}

impl TryFrom<String> for Mac {
    type Error = InvalidMac;

    fn try_from(raw: String) -> Result<Mac, InvalidMac> {
        raw.parse()
    }
}

impl From<Mac> for String {
    fn from(mac: Mac) -> String {
        mac.to_string()
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for BmcSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BmcSpec")
            .field("kind", &self.kind)
            .field("address", &self.address)
            .field("tls", &self.tls)
            .field("username", &self.username)
            .field("profile", &self.profile)
            .field("also_ipmi", &self.also_ipmi)
            .field("own_certificate", &self.own_certificate)
            .finish_non_exhaustive()
    }
}

fn generic() -> String {
    "generic".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_is_six_bytes_with_colons() {
        assert_eq!("52:54:00:AB:cd:01".parse::<Mac>().unwrap().to_string(), "52:54:00:ab:cd:01");
        for bad in [
            "",
            "52:54:00:ab:cd",
            "52:54:00:ab:cd:01:02",
            "5:254:00:ab:cd:01",
            "52-54-00-ab-cd-01",
            "+2:54:00:ab:cd:0g",
        ] {
            assert!(bad.parse::<Mac>().is_err(), "{bad} was taken");
        }
    }

    #[test]
    fn a_password_is_never_printed() {
        let spec: BmcSpec = serde_json::from_value(serde_json::json!({
            "kind": "redfish", "address": "127.0.0.1:0", "username": "admin", "password": "hunter2"
        }))
        .unwrap();
        assert_eq!(spec.profile, "generic");
        assert!(!format!("{spec:?}").contains("hunter2"));
    }
}
