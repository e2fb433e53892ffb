//! Keys of `driver_info` that Ironic obeys and this service does not. They are refused, because a node whose requests have to be bridged, for
//! example, would switch another machine.

use serde_json::{Map, Value};

use crate::{Driver, Node, RequestRefused};

/// A key of `driver_info` that is refused unless its value asks for nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Unheeded {
    pub key: &'static str,
    pub problem: &'static str,
    /// The values that ask for nothing, in small letters. The empty text does so too.
    harmless: &'static [&'static str],
}

/// The keys that change how a BMC is reached over IPMI.
const WAY_OF_IPMI: [Unheeded; 3] = [
    Unheeded {
        key: "ipmi_bridging",
        problem: "must be no: requests are not bridged to the BMC of another machine",
        harmless: &["no"],
    },
    Unheeded {
        key: "ipmi_hex_kg_key",
        problem: "must be empty: no login uses a key K_G",
        harmless: &[],
    },
    Unheeded {
        key: "ipmi_protocol_version",
        problem: "must be 2.0: IPMI 1.5 encrypts nothing",
        harmless: &["2.0"],
    },
];

/// The keys that change how a BMC is reached over Redfish.
const WAY_OF_REDFISH: [Unheeded; 2] = [
    Unheeded {
        key: "redfish_tls_minimum_version",
        problem: "must be 1.2, which every connection has at least",
        harmless: &["1.1", "1.2"],
    },
    Unheeded {
        key: "redfish_tls_ciphers",
        problem: "must be empty: the ciphers cannot be chosen",
        harmless: &[],
    },
];

/// The keys that change how a machine is booted over IPMI.
const BOOT_OF_IPMI: [Unheeded; 1] = [Unheeded {
    key: "ipmi_force_boot_device",
    problem: "must be false: the boot device is not set again at each start",
    harmless: &["0", "f", "false", "off", "n", "no"],
}];

/// The keys that change how the virtual CD of the service reaches a BMC.
const OF_MEDIUM: [Unheeded; 2] = [
    Unheeded {
        key: "vmedia_transport_protocol",
        problem: "must be HTTP or HTTPS: the service offers no other protocol",
        harmless: &["http", "https"],
    },
    Unheeded {
        key: "config_via_removable",
        problem: "must be false: the virtual CD itself has the configuration of the ramdisk",
        harmless: &["0", "f", "false", "off", "n", "no"],
    },
];

/// The keys that change how a machine boots over the network.
const OF_NETWORK_BOOT: [Unheeded; 1] = [Unheeded {
    key: "pxe_template",
    problem: "must be empty: the boot script is not made of a template; set kernel_append_params",
    harmless: &[],
}];

/// The keys that change how a machine reads its image.
const OF_IMAGE: [Unheeded; 2] = [
    Unheeded {
        key: "image_http_proxy",
        problem: "must be empty: the machine uses no proxy",
        harmless: &[],
    },
    Unheeded {
        key: "image_https_proxy",
        problem: "must be empty: the machine uses no proxy",
        harmless: &[],
    },
];

/// Refuses the keys of `driver_info` that would change how the BMC of `node` reads the virtual CD.
pub(crate) fn check_medium_keys(node: &Node) -> Result<(), RequestRefused> {
    refuse(find(&OF_MEDIUM, &node.driver_info))
}

/// Refuses the keys of `driver_info` that would change how the machine of `node` boots over the network.
pub(crate) fn check_network_boot_keys(node: &Node) -> Result<(), RequestRefused> {
    refuse(find(&OF_NETWORK_BOOT, &node.driver_info))
}

/// Refuses the keys of `driver_info` that would change how the machine of `node` reads its image.
pub(crate) fn check_image_keys(node: &Node) -> Result<(), RequestRefused> {
    refuse(find(&OF_IMAGE, &node.driver_info))
}

fn refuse(unheeded: Option<&Unheeded>) -> Result<(), RequestRefused> {
    let Some(Unheeded { key, problem, .. }) = unheeded else { return Ok(()) };
    let field = format!("driver_info.{key}");
    Err(RequestRefused::Field { field, problem: (*problem).to_owned() })
}

/// Returns the first key of `info` that would change how the BMC is reached. A node with such a key has no BMC.
pub fn unheeded_way(driver: Driver, info: &Map<String, Value>) -> Option<&'static Unheeded> {
    match driver {
        Driver::Ipmi => find(&WAY_OF_IPMI, info),
        Driver::Idrac | Driver::Redfish => find(&WAY_OF_REDFISH, info),
        Driver::FakeHardware | Driver::ManualManagement => None,
    }
}

/// Returns the first key of `info` that would change how the machine is booted. The machine of a node with such a key can be switched, and
/// gets no work.
pub fn unheeded_boot(driver: Driver, info: &Map<String, Value>) -> Option<&'static Unheeded> {
    match driver {
        Driver::Ipmi => find(&BOOT_OF_IPMI, info),
        Driver::FakeHardware | Driver::Idrac | Driver::ManualManagement | Driver::Redfish => None,
    }
}

fn find(keys: &'static [Unheeded], info: &Map<String, Value>) -> Option<&'static Unheeded> {
    keys.iter().find(|it| info.get(it.key).is_some_and(|value| !it.asks_for_nothing(value)))
}

impl Unheeded {
    fn asks_for_nothing(&self, value: &Value) -> bool {
        let said = match value {
            Value::Null => return true,
            Value::String(text) => text.trim().to_ascii_lowercase(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                value.to_string()
            }
        };
        said.is_empty() || self.harmless.contains(&said.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_refused_unless_it_asks_for_nothing() {
        let check = |driver, key: &str, value: Value, [way, boot]: [bool; 2]| {
            let info = Map::from_iter([(key.to_owned(), value)]);
            let refused = [unheeded_way(driver, &info), unheeded_boot(driver, &info)];
            let want = [way, boot].map(|it| it.then_some(key));
            assert_eq!(refused.map(|it| it.map(|it| it.key)), want, "{driver}: {info:?}");
        };
        let (fine, way, boot) = ([false, false], [true, false], [false, true]);
        for value in [json!(null), json!(""), json!("no"), json!("No")] {
            check(Driver::Ipmi, "ipmi_bridging", value, fine);
        }
        for value in [json!("single"), json!("dual"), json!(true), json!({})] {
            check(Driver::Redfish, "ipmi_bridging", value.clone(), fine);
            check(Driver::Ipmi, "ipmi_bridging", value, way);
        }
        for version in [json!("2.0"), json!(2.0)] {
            check(Driver::Ipmi, "ipmi_protocol_version", version, fine);
        }
        check(Driver::Ipmi, "ipmi_protocol_version", json!(1.5), way);
        check(Driver::Ipmi, "ipmi_hex_kg_key", json!("00ff"), way);
        for driver in [Driver::Idrac, Driver::Redfish] {
            check(driver, "redfish_tls_minimum_version", json!("1.2"), fine);
            check(driver, "redfish_tls_minimum_version", json!("1.3"), way);
            check(driver, "redfish_tls_ciphers", json!("AES256"), way);
        }
        check(Driver::Ipmi, "ipmi_force_boot_device", json!("False"), fine);
        check(Driver::Ipmi, "ipmi_force_boot_device", json!("True"), boot);
        check(Driver::Ipmi, "ipmi_force_boot_device", json!(true), boot);
    }
}
