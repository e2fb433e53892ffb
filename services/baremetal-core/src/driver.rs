//! Hardware types, and which interfaces each supports.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a node's machine is driven by: a hardware type of the Bare Metal API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// No machine at all: every step succeeds at once.
    FakeHardware,
    /// An IPMI 2.0 BMC.
    Ipmi,
    /// A Redfish BMC.
    Redfish,
}

/// One side of a hardware type, chosen apart from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    Bios,
    Boot,
    Console,
    Deploy,
    Firmware,
    Inspect,
    Management,
    Network,
    Power,
    Raid,
    Rescue,
    Storage,
    Vendor,
}

/// How the ramdisk gets onto the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BootInterface {
    /// DHCP, TFTP, iPXE.
    Ipxe,
    /// DHCP, then iPXE by UEFI HTTP boot: no TFTP.
    HttpIpxe,
    /// A virtual CD, put in by the BMC: no DHCP.
    VirtualMedia,
    /// Not at all.
    Fake,
}

/// How the hardware is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InspectInterface {
    /// By booting the agent, after asking the BMC what it knows.
    Agent,
    /// By asking the BMC alone.
    Redfish,
    /// Not at all.
    None,
}

/// A password in `driver_info`, and what says to whom it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Credential {
    /// Its key.
    pub password: &'static str,
    /// The keys that say which machine it goes to, and how sure that is.
    pub goes_to: &'static [&'static str],
}

/// The passwords that drivers read.
pub const CREDENTIALS: [Credential; 2] = [
    Credential { password: "ipmi_password", goes_to: &["ipmi_address", "ipmi_port"] },
    Credential { password: "redfish_password", goes_to: &["redfish_address", "redfish_verify_ca"] },
];

impl Driver {
    /// Every driver.
    pub const ALL: [Driver; 3] = [Driver::FakeHardware, Driver::Ipmi, Driver::Redfish];

    /// The word of the Bare Metal API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Driver::FakeHardware => "fake-hardware",
            Driver::Ipmi => "ipmi",
            Driver::Redfish => "redfish",
        }
    }

    /// The implementations of `interface` this driver can use, the default first.
    pub const fn supported(self, interface: Interface) -> &'static [&'static str] {
        use Driver::{FakeHardware, Ipmi, Redfish};
        match (interface, self) {
            (Interface::Boot, FakeHardware) => &["fake"],
            (Interface::Boot, Ipmi) => &["ipxe", "http-ipxe"],
            (Interface::Boot, Redfish) => &["ipxe", "http-ipxe", "redfish-virtual-media"],

            (Interface::Deploy, FakeHardware) => &["fake"],
            (Interface::Deploy, Ipmi | Redfish) => &["direct"],

            (Interface::Inspect, FakeHardware) => &["fake", "no-inspect"],
            (Interface::Inspect, Ipmi) => &["agent", "no-inspect"],
            (Interface::Inspect, Redfish) => &["agent", "redfish", "no-inspect"],

            (Interface::Management | Interface::Power, FakeHardware) => &["fake"],
            (Interface::Management | Interface::Power, Ipmi) => &["ipmitool"],
            (Interface::Management | Interface::Power, Redfish) => &["redfish"],

            (Interface::Network, _) => &["noop"],
            (Interface::Storage, _) => &["noop"],
            (Interface::Bios, _) => &["no-bios"],
            // As Ironic names it, whose clients ask for it; no socat runs here: the console is a WebSocket of this API.
            (Interface::Console, Ipmi) => &["no-console", "ipmitool-socat"],
            (Interface::Console, FakeHardware) => &["no-console", "fake"],
            (Interface::Console, Redfish) => &["no-console"],
            (Interface::Firmware, _) => &["no-firmware"],
            (Interface::Raid, _) => &["no-raid"],
            (Interface::Rescue, _) => &["no-rescue"],
            (Interface::Vendor, _) => &["no-vendor"],
        }
    }

    /// The implementation of `interface` a node gets that asks for none.
    pub const fn default(self, interface: Interface) -> &'static str {
        self.supported(interface)[0]
    }

    /// The keys of `driver_info` this driver reads, with what each means; the flag says whether it is required.
    pub const fn properties(self) -> &'static [(&'static str, &'static str, bool)] {
        match self {
            Driver::FakeHardware => &[],
            Driver::Ipmi => &[
                ("ipmi_address", "IP address of the BMC.", true),
                ("ipmi_username", "User name; none by default.", false),
                ("ipmi_password", "Password; write-only.", false),
                ("ipmi_port", "UDP port of the BMC; 623 by default.", false),
                (
                    "ipmi_cipher_suite",
                    "3 or 17; by default 17 where the BMC offers it, else 3.",
                    false,
                ),
                ("ipmi_priv_level", "USER, OPERATOR or ADMINISTRATOR (the default).", false),
            ],
            Driver::Redfish => &[
                ("redfish_address", "URL of the BMC; https when it names no scheme.", true),
                (
                    "redfish_system_id",
                    "Path of the system resource; needed where the BMC has several.",
                    false,
                ),
                ("redfish_username", "User name.", false),
                ("redfish_password", "Password; write-only.", false),
                (
                    "redfish_verify_ca",
                    "true (the default) verifies the BMC's certificate; sha256:HEX pins the certificate with this \
                     fingerprint; false trusts any, where the service's configuration allows it.",
                    false,
                ),
                ("redfish_auth_type", "auto (the default), session or basic.", false),
            ],
        }
    }
}

impl Interface {
    /// Every interface, in the order the API shows them.
    pub const ALL: [Interface; 13] = [
        Interface::Bios,
        Interface::Boot,
        Interface::Console,
        Interface::Deploy,
        Interface::Firmware,
        Interface::Inspect,
        Interface::Management,
        Interface::Network,
        Interface::Power,
        Interface::Raid,
        Interface::Rescue,
        Interface::Storage,
        Interface::Vendor,
    ];

    /// The word of the Bare Metal API, as in `boot_interface`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Interface::Bios => "bios",
            Interface::Boot => "boot",
            Interface::Console => "console",
            Interface::Deploy => "deploy",
            Interface::Firmware => "firmware",
            Interface::Inspect => "inspect",
            Interface::Management => "management",
            Interface::Network => "network",
            Interface::Power => "power",
            Interface::Raid => "raid",
            Interface::Rescue => "rescue",
            Interface::Storage => "storage",
            Interface::Vendor => "vendor",
        }
    }
}

/// The word names no driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no driver is named {raw:?}: there are fake-hardware, ipmi and redfish")]
pub struct UnknownDriver {
    /// What was given, cut to a length fit for a message.
    pub raw: String,
}

impl FromStr for Driver {
    type Err = UnknownDriver;

    fn from_str(raw: &str) -> Result<Self, UnknownDriver> {
        let found = Driver::ALL.into_iter().find(|driver| driver.as_str() == raw);
        found.ok_or_else(|| UnknownDriver { raw: raw.chars().take(64).collect() })
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_has_a_default_for_every_interface() {
        for driver in Driver::ALL {
            for interface in Interface::ALL {
                assert!(!driver.default(interface).is_empty());
            }
        }
    }

    #[test]
    fn every_password_that_a_driver_reads_is_known_with_where_it_goes() {
        for driver in Driver::ALL {
            let keys = || driver.properties().iter().map(|(key, ..)| *key);
            for password in keys().filter(|key| key.ends_with("password")) {
                let known = CREDENTIALS.iter().find(|it| it.password == password).unwrap();
                let address = password.replace("password", "address");
                assert!(known.goes_to.contains(&address.as_str()), "{password}");
                assert!(known.goes_to.iter().all(|key| keys().any(|it| it == *key)), "{password}");
            }
        }
    }
}
