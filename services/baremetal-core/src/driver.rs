//! Hardware types, and the keys of `driver_info` that each of them reads.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A hardware type of the Bare Metal API: the protocol by which the service controls a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// No machine at all: every step succeeds immediately.
    FakeHardware,
    /// A machine of Dell with an iDRAC, over Redfish with Dell's extensions.
    Idrac,
    Ipmi,
    /// A machine without a BMC, which a person switches on and off.
    ManualManagement,
    Redfish,
}

/// A password in `driver_info`, with the keys that decide which machine receives the password.
#[derive(Clone, Copy, Debug)]
pub struct Credential {
    /// The key of the password in `driver_info`.
    pub password: &'static str,
    /// The keys that name the receiving BMC and how its identity is verified. A caller who changes one of them has to give the password
    /// again, or the stored password would go to a BMC of the caller's choice.
    pub goes_to: &'static [&'static str],
}

/// The passwords that drivers read from `driver_info`.
pub const CREDENTIALS: [Credential; 3] = [
    Credential { password: "ipmi_password", goes_to: &["ipmi_address", "ipmi_port"] },
    Credential { password: "redfish_password", goes_to: &["redfish_address", "redfish_verify_ca"] },
    Credential { password: "vnc_password", goes_to: &["vnc_address"] },
];

/// The address of the VNC server, for the console interface `bmc-vnc`.
const VNC_ADDRESS: (&str, &str, bool) = (
    "vnc_address",
    "Host and port of the BMC's VNC server (default port: 5900); needed by the console interface bmc-vnc.",
    false,
);
const VNC_PASSWORD: (&str, &str, bool) =
    ("vnc_password", "Password of the VNC server; write-only.", false);

impl Driver {
    /// Every driver, sorted by name.
    pub const ALL: [Driver; 5] = [
        Driver::FakeHardware,
        Driver::Idrac,
        Driver::Ipmi,
        Driver::ManualManagement,
        Driver::Redfish,
    ];

    /// Returns the name of the driver in the Bare Metal API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Driver::FakeHardware => "fake-hardware",
            Driver::Idrac => "idrac",
            Driver::Ipmi => "ipmi",
            Driver::ManualManagement => "manual-management",
            Driver::Redfish => "redfish",
        }
    }

    /// Returns the key of `driver_info` with the password of the BMC account; `None` if the driver logs in to no account.
    pub const fn password_key(self) -> Option<&'static str> {
        match self {
            Driver::Idrac | Driver::Redfish => Some("redfish_password"),
            Driver::Ipmi => Some("ipmi_password"),
            Driver::FakeHardware | Driver::ManualManagement => None,
        }
    }

    /// Returns whether a BMC switches the machine on and off and says whether it is on. Without a BMC the record alone changes.
    pub const fn has_bmc(self) -> bool {
        match self {
            Driver::Idrac | Driver::Ipmi | Driver::Redfish => true,
            Driver::FakeHardware | Driver::ManualManagement => false,
        }
    }

    /// Returns whether the BMC is controlled over Redfish.
    pub const fn speaks_redfish(self) -> bool {
        match self {
            Driver::Idrac | Driver::Redfish => true,
            Driver::FakeHardware | Driver::Ipmi | Driver::ManualManagement => false,
        }
    }

    /// Returns the keys of `driver_info` that this driver reads: key, description, and whether the key is required.
    pub const fn properties(self) -> &'static [(&'static str, &'static str, bool)] {
        match self {
            Driver::FakeHardware => &[
                ("B1", "Read by nothing; Ironic's fake vendor interface has this key.", false),
                ("B2", "Read by nothing; Ironic's fake vendor interface has this key.", false),
            ],
            Driver::ManualManagement => &[],
            Driver::Ipmi => &[
                ("ipmi_address", "IP address of the BMC.", true),
                ("ipmi_username", "User name (default: none).", false),
                ("ipmi_password", "Password; write-only.", false),
                ("ipmi_port", "UDP port of the BMC (default: 623).", false),
                ("ipmi_cipher_suite", "3 or 17 (default: 17 if the BMC offers it, else 3).", false),
                ("ipmi_priv_level", "USER, OPERATOR or ADMINISTRATOR (the default).", false),
                VNC_ADDRESS,
                VNC_PASSWORD,
            ],
            Driver::Idrac | Driver::Redfish => &[
                ("redfish_address", "URL of the BMC; default scheme: https.", true),
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
                VNC_ADDRESS,
                VNC_PASSWORD,
            ],
        }
    }
}

/// The error for a word that names no driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown driver {raw:?}; use fake-hardware, idrac, ipmi, manual-management or redfish")]
pub struct UnknownDriver {
    /// The word that was given, cut to 64 characters for the message.
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
    fn a_driver_is_named_as_ironic_names_it() {
        let names = Driver::ALL.map(Driver::as_str);
        assert_eq!(names, ["fake-hardware", "idrac", "ipmi", "manual-management", "redfish"]);
        assert_eq!(names.map(|name| name.parse().ok()), Driver::ALL.map(Some));
        assert!("ilo".parse::<Driver>().is_err());
    }

    #[test]
    fn every_driver_password_is_listed_with_its_receiver() {
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

    #[test]
    fn each_driver_needs_the_address_of_the_bmc_and_nothing_else() {
        for (driver, address, number) in [
            (Driver::FakeHardware, None, 2),
            (Driver::ManualManagement, None, 0),
            (Driver::Ipmi, Some("ipmi_address"), 8),
            (Driver::Idrac, Some("redfish_address"), 8),
            (Driver::Redfish, Some("redfish_address"), 8),
        ] {
            let all = driver.properties();
            let required: Vec<&str> =
                all.iter().filter(|(_, _, it)| *it).map(|(key, ..)| *key).collect();
            assert_eq!((required, all.len()), (Vec::from_iter(address), number), "{driver}");
            for (key, description, _) in all {
                let protocol = address.and_then(|address| address.split('_').next());
                let is_own = protocol.is_some_and(|protocol| key.starts_with(protocol));
                assert_eq!(is_own || key.starts_with("vnc_"), address.is_some(), "{key}");
                assert!(description.ends_with('.'), "{key}: {description}");
            }
        }
    }
}
