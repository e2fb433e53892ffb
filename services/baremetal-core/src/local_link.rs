//! The local link connection of a port: the port of the switch that it is plugged into. The rules are those of
//! `ironic/api/controllers/v1/utils.py`.

use hardware::MacAddress;
use serde_json::Value;

use crate::Port;

/// The keys of a local link connection.
const KEYS: [&str; 7] = [
    SWITCH,
    "port_id",
    "hostname",
    "switch_info",
    NETWORK_TYPE,
    "vtep-logical-switch",
    "vtep-physical-switch",
];

const SWITCH: &str = "switch_id";
const NETWORK_TYPE: &str = "network_type";

/// The number of hexadecimal digits in the datapath id of an OpenFlow switch.
const DATAPATH_DIGITS: usize = 16;

/// The sets of keys, one of which a local link connection needs: of a switch, of a smart NIC, and of a VTEP.
const COMPLETE: [&[&str]; 3] = [
    &["port_id", SWITCH],
    &["port_id", "hostname"],
    &["port_id", "vtep-logical-switch", "vtep-physical-switch"],
];

/// Why a local link connection is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("local_link_connection{}: {problem}", key.as_ref().map(|key| format!("/{key}")).unwrap_or_default())]
pub struct LocalLinkRefused {
    /// The wrong key; `None` if several keys are wrong together.
    key: Option<String>,
    problem: &'static str,
}

impl Port {
    /// Returns the network type of the local link connection.
    pub fn link_network_type(&self) -> Option<&Value> {
        self.local_link_connection.get(NETWORK_TYPE)
    }

    /// Returns whether the local link connection names a VTEP of OVN.
    pub fn is_linked_to_vtep(&self) -> bool {
        self.local_link_connection.keys().any(|key| key.starts_with("vtep-"))
    }

    /// Returns the port with a valid local link connection, whose `switch_id` is in lower case.
    ///
    /// # Errors
    ///
    /// Fails for a connection with unknown keys, with wrong values, or with too few keys to find the port of the switch.
    pub fn with_checked_link(mut self) -> Result<Port, LocalLinkRefused> {
        let link = &self.local_link_connection;
        let refused = |key: &str, problem| {
            let key = key.chars().take(64).collect();
            LocalLinkRefused { key: Some(key), problem }
        };
        for (key, value) in link {
            match value.as_str() {
                _ if !KEYS.contains(&&**key) => return Err(refused(key, "there is no such key")),
                None => return Err(refused(key, "must be text")),
                Some("managed" | "unmanaged") => {}
                Some(_) if key == NETWORK_TYPE => {
                    return Err(refused(key, "must be managed or unmanaged"));
                }
                Some(_) => {}
            }
        }
        let has = |keys: &[&str]| keys.iter().all(|key| link.contains_key(*key));
        let is_unmanaged = self.link_network_type().is_some_and(|value| value == "unmanaged");
        let [_, smart_nic, vtep] = COMPLETE;
        let problem = match () {
            () if link.is_empty() => None,
            () if self.is_smartnic && !has(smart_nic) => {
                Some("a smart NIC needs port_id and hostname")
            }
            () if self.is_linked_to_vtep() && !has(&vtep[1..]) => {
                Some("vtep-logical-switch and vtep-physical-switch go together")
            }
            () if !is_unmanaged && !COMPLETE.into_iter().any(has) => Some(
                "needs port_id and one of switch_id, hostname, and both vtep-logical-switch and vtep-physical-switch",
            ),
            () => None,
        };
        if let Some(problem) = problem {
            return Err(LocalLinkRefused { key: None, problem });
        }
        if let Some(Value::String(switch)) = self.local_link_connection.get_mut(SWITCH) {
            let problem = "must be a MAC address or a datapath id of 16 hexadecimal digits";
            *switch = switch_id(switch).ok_or_else(|| refused(SWITCH, problem))?;
        }
        Ok(self)
    }
}

/// Returns the id of a switch in lower case: a MAC address, or the datapath id of OpenFlow.
fn switch_id(raw: &str) -> Option<String> {
    if let Ok(address) = raw.parse::<MacAddress>() {
        return Some(address.to_string());
    }
    let is_datapath = raw.len() == DATAPATH_DIGITS && raw.bytes().all(|it| it.is_ascii_hexdigit());
    is_datapath.then(|| raw.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{NodeUuid, PortUuid};

    #[track_caller]
    fn check(link: Value, is_smartnic: bool, want: Result<Value, &str>) {
        let address = MacAddress::new([2; 6]);
        let port = Port::new(PortUuid::nil(), NodeUuid::nil(), address, Timestamp::UNIX_EPOCH);
        let Value::Object(local_link_connection) = link else { panic!("{link}") };
        let port = Port { local_link_connection, is_smartnic, ..port };
        let checked = port.with_checked_link().map(|port| json!(port.local_link_connection));
        assert_eq!(checked.map_err(|why| why.to_string()), want.map_err(str::to_owned));
    }

    #[test]
    fn a_connection_names_a_port_of_a_switch() {
        let switch =
            json!({"port_id": "Eth1", "switch_id": "0A:1B:2C:3D:4E:5F", "switch_info": "x"});
        let lower =
            json!({"port_id": "Eth1", "switch_id": "0a:1b:2c:3d:4e:5f", "switch_info": "x"});
        check(switch, false, Ok(lower));
        let flow =
            json!({"port_id": "1", "switch_id": "00000A1B2C3D4E5F", "network_type": "managed"});
        let lower =
            json!({"port_id": "1", "switch_id": "00000a1b2c3d4e5f", "network_type": "managed"});
        check(flow, false, Ok(lower));
        for link in [
            json!({}),
            json!({"network_type": "unmanaged"}),
            json!({"port_id": "1", "hostname": "dpu"}),
            json!({"port_id": "1", "vtep-logical-switch": "a", "vtep-physical-switch": "b"}),
        ] {
            check(link.clone(), false, Ok(link));
        }
        check(json!({}), true, Ok(json!({})));
        let nic = json!({"port_id": "1", "hostname": "dpu"});
        check(nic.clone(), true, Ok(nic));
    }

    #[test]
    fn an_incomplete_or_unknown_connection_is_refused_by_its_key() {
        let few = "local_link_connection: needs port_id and one of switch_id, hostname, and both vtep-logical-switch and \
                   vtep-physical-switch";
        let pair =
            "local_link_connection: vtep-logical-switch and vtep-physical-switch go together";
        let nic = "local_link_connection: a smart NIC needs port_id and hostname";
        let switch = "local_link_connection/switch_id: must be a MAC address or a datapath id of 16 hexadecimal digits";
        for (link, is_smartnic, why) in [
            (json!({"switch_id": "0a:1b:2c:3d:4e:5f"}), false, few),
            (json!({"port_id": "1"}), false, few),
            (json!({"network_type": "managed"}), false, few),
            (json!({"port_id": "1", "switch_id": "words"}), false, switch),
            (json!({"port_id": "1", "switch_id": "g000000000000000"}), false, switch),
            (json!({"port_id": "1", "vtep-logical-switch": "a"}), false, pair),
            (json!({"port_id": "1", "switch_id": "0a:1b:2c:3d:4e:5f"}), true, nic),
            (json!({"color": "red"}), false, "local_link_connection/color: there is no such key"),
            (json!({"port_id": 1}), false, "local_link_connection/port_id: must be text"),
            (
                json!({"network_type": "other"}),
                false,
                "local_link_connection/network_type: must be managed or unmanaged",
            ),
        ] {
            check(link, is_smartnic, Err(why));
        }
    }
}
