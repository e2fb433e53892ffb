//! The identity of a BMC: two nodes that name one BMC would switch one machine on and off for each other.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

use crate::{Driver, Node};

/// The ports on which a BMC answers by default: HTTP, HTTPS and RMCP (IANA).
const STANDARD_PORTS: [u16; 3] = [80, 443, 623];

/// The transport protocol of a port. Each has its own ports (RFC 768, RFC 9293).
#[derive(Clone, Copy)]
pub(crate) enum Transport {
    /// Carries Redfish.
    Tcp,
    /// Carries IPMI.
    Udp,
}

/// The BMC that a node names, and the system behind the BMC.
///
/// Addresses are compared as text: a host name and its address are different BMCs here, because only a resolver knows better, and its answer
/// may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BmcIdentity {
    /// The host of the BMC, with its port unless the port is a standard one: a BMC answers Redfish and IPMI at one address. A port of UDP
    /// is written `6230/udp`, because a port of TCP with that number may be another BMC's.
    pub endpoint: String,
    /// The path of the Redfish system; `None` if the node relies on the BMC having one system.
    pub system: Option<String>,
}

impl BmcIdentity {
    /// Returns the identity of the node's BMC; `None` if the node has no BMC, or does not name a valid address.
    pub fn of(node: &Node) -> Option<BmcIdentity> {
        let text = |key: &str| node.driver_info.get(key).and_then(|value| value.as_str());
        match node.driver {
            Driver::FakeHardware | Driver::ManualManagement => None,
            Driver::Idrac | Driver::Redfish => {
                let system = text("redfish_system_id").map(|path| path.trim_end_matches('/'));
                let system = system.filter(|path| !path.is_empty()).map(str::to_owned);
                Some(BmcIdentity { endpoint: redfish_endpoint(text("redfish_address")?)?, system })
            }
            Driver::Ipmi => {
                let port = match node.driver_info.get("ipmi_port") {
                    None => None,
                    Some(port) if port.is_null() => None,
                    Some(port) => Some(match port.as_str() {
                        Some(port) => port.trim().parse().ok()?,
                        None => port.as_u64().and_then(|port| u16::try_from(port).ok())?,
                    }),
                };
                let host = host_text(text("ipmi_address")?);
                Some(BmcIdentity { endpoint: at_port(&host, port, Transport::Udp), system: None })
            }
        }
    }

    /// Returns whether both name one machine: the same BMC and the same system. Without the path of a system the BMC has a single one.
    pub fn is_same_machine(&self, other: &BmcIdentity) -> bool {
        let is_same_system = match (&self.system, &other.system) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        self.endpoint == other.endpoint && is_same_system
    }
}

/// Returns the endpoint of the BMC that answers at this socket, as [`BmcIdentity`] writes endpoints.
pub(crate) fn bmc_endpoint(at: SocketAddr, transport: Transport) -> String {
    at_port(&host_text(&at.ip().to_string()), Some(at.port()), transport)
}

/// Returns the IP address in the address of a BMC: a URL, or a host with or without a port. `None` for a host name.
pub(crate) fn bmc_ip(raw: &str) -> Option<IpAddr> {
    if let Ok(address) = raw.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    let spelled = if raw.contains("://") { raw.to_owned() } else { format!("https://{raw}") };
    let address = match Url::parse(&spelled).ok()?.host()? {
        Host::Domain(_) => return None,
        Host::Ipv4(address) => IpAddr::V4(address),
        Host::Ipv6(address) => IpAddr::V6(address),
    };
    Some(address.to_canonical())
}

/// Returns the endpoint of a Redfish service. The path of the address is ignored, as the driver ignores it.
fn redfish_endpoint(raw: &str) -> Option<String> {
    let spelled = if raw.contains("://") { raw.to_owned() } else { format!("https://{raw}") };
    let url = Url::parse(&spelled).ok()?;
    let host = match url.host()? {
        Host::Domain(name) => host_text(name),
        Host::Ipv4(address) => host_text(&address.to_string()),
        Host::Ipv6(address) => host_text(&address.to_string()),
    };
    Some(at_port(&host, url.port_or_known_default(), Transport::Tcp))
}

fn at_port(host: &str, port: Option<u16>, transport: Transport) -> String {
    match (port.filter(|port| !STANDARD_PORTS.contains(port)), transport) {
        (Some(port), Transport::Tcp) => format!("{host}:{port}"),
        (Some(port), Transport::Udp) => format!("{host}:{port}/udp"),
        (None, Transport::Tcp | Transport::Udp) => host.to_owned(),
    }
}

/// Returns a host in one spelling: an address in its shortest form, a name in lower case without the final dot.
fn host_text(raw: &str) -> String {
    let bare = raw.trim().trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(address)) => address.to_string(),
        Ok(IpAddr::V6(address)) => bracketed(address),
        Err(_) => bare.trim_end_matches('.').to_ascii_lowercase(),
    }
}

fn bracketed(address: Ipv6Addr) -> String {
    format!("[{address}]")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::NodeUuid;

    fn identity(driver: Driver, info: Value) -> Option<BmcIdentity> {
        let mut node = Node::new(NodeUuid::nil(), driver, Timestamp::UNIX_EPOCH);
        node.driver_info = info.as_object().unwrap().clone();
        BmcIdentity::of(&node)
    }

    #[track_caller]
    fn redfish(address: &str, want: &str) {
        let found = identity(Driver::Redfish, json!({"redfish_address": address})).unwrap();
        let of_dell = identity(Driver::Idrac, json!({"redfish_address": address})).unwrap();
        assert_eq!(of_dell, found, "the driver does not change the machine");
        assert_eq!(found, BmcIdentity { endpoint: want.to_owned(), system: None }, "{address}");
    }

    #[test]
    fn one_address_has_one_spelling() {
        for address in
            ["https://BMC.Example./", "bmc.example", "http://bmc.example:443/redfish/v1/"]
        {
            redfish(address, "bmc.example");
        }
        redfish("http://10.0.0.7", "10.0.0.7");
        redfish("https://[::ffff:10.0.0.7]", "10.0.0.7");
        redfish("https://[FD00:0::7]", "[fd00::7]");
        redfish("https://10.0.0.7:8443", "10.0.0.7:8443");
        redfish("https://10.0.0.7/any/path", "10.0.0.7");
        let found = |at: &str| bmc_endpoint(at.parse().unwrap(), Transport::Tcp);
        assert_eq!(found("10.0.0.7:443"), "10.0.0.7");
        assert_eq!(found("[fd00::7]:8443"), "[fd00::7]:8443");
    }

    #[test]
    fn ipmi_and_redfish_at_one_address_are_one_bmc() {
        let ipmi = |info: Value| identity(Driver::Ipmi, info).map(|it| it.endpoint);
        let address = |address: &str| json!({ "ipmi_address": address });
        assert_eq!(ipmi(address("10.0.0.7")).as_deref(), Some("10.0.0.7"));
        assert_eq!(ipmi(address("fd00::7")).as_deref(), Some("[fd00::7]"));
        for port in [json!(6230), json!("6230")] {
            let info = json!({"ipmi_address": "10.0.0.7", "ipmi_port": port});
            assert_eq!(ipmi(info).as_deref(), Some("10.0.0.7:6230/udp"));
        }
        for port in [json!(623), Value::Null] {
            let info = json!({"ipmi_address": "10.0.0.7", "ipmi_port": port});
            assert_eq!(ipmi(info).as_deref(), Some("10.0.0.7"));
        }
    }

    #[test]
    fn one_number_is_two_ports_of_tcp_and_udp() {
        let redfish = identity(Driver::Redfish, json!({"redfish_address": "http://10.0.0.7:6230"}));
        let info = json!({"ipmi_address": "10.0.0.7", "ipmi_port": 6230});
        let ipmi = identity(Driver::Ipmi, info);
        assert!(!redfish.unwrap().is_same_machine(&ipmi.unwrap()));
    }

    #[test]
    fn a_system_tells_machines_behind_one_bmc_apart() {
        let of = |system: Value| {
            let info = json!({"redfish_address": "https://bmc", "redfish_system_id": system});
            identity(Driver::Redfish, info).unwrap()
        };
        let (one, two, any) =
            (of(json!("/redfish/v1/Systems/1")), of(json!("/x/2")), of(json!("")));
        assert!(one.is_same_machine(&of(json!("/redfish/v1/Systems/1/"))));
        assert!(!one.is_same_machine(&two) && !two.is_same_machine(&one));
        assert!(any.is_same_machine(&one) && two.is_same_machine(&any));
        let other = BmcIdentity { endpoint: "other".to_owned(), ..one.clone() };
        assert!(!one.is_same_machine(&other));
    }

    #[test]
    fn a_node_without_a_bmc_has_no_identity() {
        let info = json!({"redfish_address": "https://bmc", "ipmi_address": "10.0.0.7"});
        assert_eq!(identity(Driver::FakeHardware, info.clone()), None);
        assert_eq!(identity(Driver::ManualManagement, info), None);
        for info in
            [json!({}), json!({"redfish_address": "https://"}), json!({"redfish_address": 7})]
        {
            assert_eq!(identity(Driver::Redfish, info), None);
        }
        assert_eq!(identity(Driver::Ipmi, json!({"ipmi_address": "a", "ipmi_port": true})), None);
    }
}
