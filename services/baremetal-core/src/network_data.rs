//! The network that a node's ramdisk configures: `network_data`, in the format of OpenStack's `network_data.json` (ironic,
//! `network-data-schema.json`).
//!
//! The ramdisk configures one IPv4 network on one interface, so every other document is refused when it is written.

use std::net::{IpAddr, Ipv4Addr};

use hardware::MacAddress;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Node;

/// The network that the ramdisk configures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RamdiskNetwork {
    /// The interface of the network.
    pub mac: MacAddress,
    /// The size of the interface's largest packets, in bytes.
    pub mtu: Option<u16>,
    /// The address of the machine; `None` if the ramdisk asks for one by DHCP.
    pub address: Option<StaticAddress>,
    /// The servers that resolve host names.
    pub dns: Vec<IpAddr>,
}

/// An address without DHCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticAddress {
    pub address: Ipv4Addr,
    /// The length of the network's prefix in bits.
    pub prefix: u32,
    /// The gateway of all other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Further networks behind gateways of their own.
    pub routes: Vec<StaticRoute>,
}

/// A network behind a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    pub network: Ipv4Addr,
    /// The length of the network's prefix in bits.
    pub prefix: u32,
    pub gateway: Ipv4Addr,
}

/// The error for a document that the ramdisk cannot configure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkDataRefused(String);

#[derive(Deserialize)]
struct Document {
    links: Vec<Link>,
    networks: Vec<Network>,
    services: Vec<Service>,
}

#[derive(Deserialize)]
struct Link {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    ethernet_mac_address: Option<MacAddress>,
    mtu: Option<u16>,
}

#[derive(Deserialize)]
struct Network {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "network_id")]
    _network_id: String,
    link: String,
    #[serde(rename = "type")]
    kind: String,
    ip_address: Option<Ipv4Addr>,
    netmask: Option<Ipv4Addr>,
    #[serde(default)]
    routes: Vec<Route>,
}

#[derive(Deserialize)]
struct Route {
    network: Ipv4Addr,
    netmask: Ipv4Addr,
    gateway: Ipv4Addr,
}

#[derive(Deserialize)]
struct Service {
    #[serde(rename = "type")]
    kind: String,
    address: IpAddr,
}

impl Network {
    /// Returns whether the network has a part of a static address.
    fn is_static(&self) -> bool {
        self.ip_address.is_some() || self.netmask.is_some() || !self.routes.is_empty()
    }
}

impl Node {
    /// Returns the network that the node's ramdisk configures; `None` if the node has no `network_data`.
    pub fn ramdisk_network(&self) -> Option<RamdiskNetwork> {
        ramdisk_network(&self.network_data).ok().flatten()
    }
}

/// Reads the network in a `network_data` document; `None` if the document is empty.
///
/// # Errors
///
/// The document does not follow the schema, or has something that the ramdisk does not configure.
pub fn ramdisk_network(
    document: &Map<String, Value>,
) -> Result<Option<RamdiskNetwork>, NetworkDataRefused> {
    if document.is_empty() {
        return Ok(None);
    }
    let document = Document::deserialize(document).map_err(|why| refuse(why.to_string()))?;
    let [network] = &document.networks[..] else {
        return Err(refuse("networks: the ramdisk configures exactly one network"));
    };
    let named = |link: &&Link| link.id == network.link;
    let link = document.links.iter().find(named).ok_or_else(|| {
        refuse(format!("networks[0].link: there is no link with the id {:?}", network.link))
    })?;
    let (id, kind) = (&link.id, &link.kind);
    if matches!(&**kind, "bond" | "vlan") {
        let problem = format!("is a {kind}, and the ramdisk configures none");
        return Err(refuse(format!("links: the link {id:?} {problem}")));
    }
    let missing = || refuse(format!("links: the link {id:?} needs an ethernet_mac_address"));
    let mac = link.ethernet_mac_address.ok_or_else(missing)?;
    let address = match &*network.kind {
        "ipv4" => Some(static_address(network)?),
        "ipv4_dhcp" => {
            if network.is_static() || !document.services.is_empty() {
                let given = "the address, the routes and the DNS servers of ipv4_dhcp";
                return Err(refuse(format!("networks[0]: {given} come by DHCP; leave them out")));
            }
            None
        }
        other => {
            let problem = format!("networks[0].type: must be ipv4 or ipv4_dhcp, not {other:?}");
            return Err(refuse(problem));
        }
    };
    if let Some(other) = document.services.iter().find(|service| service.kind != "dns") {
        return Err(refuse(format!("services: must be of the type dns, not {:?}", other.kind)));
    }
    let dns = document.services.iter().map(|service| service.address).collect();
    Ok(Some(RamdiskNetwork { mac, mtu: link.mtu, address, dns }))
}

fn static_address(network: &Network) -> Result<StaticAddress, NetworkDataRefused> {
    let missing = |name| refuse(format!("networks[0].{name}: missing"));
    let address = network.ip_address.ok_or_else(|| missing("ip_address"))?;
    let netmask = network.netmask.ok_or_else(|| missing("netmask"))?;
    let prefix = prefix("networks[0].netmask", netmask)?;
    let mut found = StaticAddress { address, prefix, gateway: None, routes: Vec::new() };
    for route in &network.routes {
        let prefix = self::prefix("networks[0].routes", route.netmask)?;
        match prefix {
            0 if found.gateway.is_some() => {
                return Err(refuse("networks[0].routes: there is more than one default route"));
            }
            0 => found.gateway = Some(route.gateway),
            _ => found.routes.push(StaticRoute {
                network: route.network,
                prefix,
                gateway: route.gateway,
            }),
        }
    }
    Ok(found)
}

/// Returns the length of the prefix that a network mask has.
fn prefix(field: &str, netmask: Ipv4Addr) -> Result<u32, NetworkDataRefused> {
    let bits = u32::from(netmask);
    match bits.leading_ones() == bits.count_ones() {
        true => Ok(bits.leading_ones()),
        false => Err(refuse(format!("{field}: {netmask} is no network mask"))),
    }
}

fn refuse(problem: impl Into<String>) -> NetworkDataRefused {
    NetworkDataRefused(problem.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "links": [
                {"id": "eth1", "type": "phy", "ethernet_mac_address": "52:54:00:aa:00:02"},
                {"id": "eth0", "type": "phy", "ethernet_mac_address": "52-54-00-AA-00-01", "mtu": 9000},
            ],
            "networks": [{
                "id": "n0", "network_id": "n0", "link": "eth0", "type": "ipv4",
                "ip_address": "192.0.2.20", "netmask": "255.255.255.0",
                "routes": [
                    {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "192.0.2.1"},
                    {"network": "10.0.0.0", "netmask": "255.0.0.0", "gateway": "192.0.2.2"},
                ],
            }],
            "services": [{"type": "dns", "address": "192.0.2.53"}],
        })
    }

    fn read(document: &Value) -> Result<Option<RamdiskNetwork>, String> {
        ramdisk_network(document.as_object().unwrap()).map_err(|why| why.to_string())
    }

    #[test]
    fn one_static_network_is_read() {
        let want = RamdiskNetwork {
            mac: "52:54:00:aa:00:01".parse().unwrap(),
            mtu: Some(9000),
            address: Some(StaticAddress {
                address: Ipv4Addr::new(192, 0, 2, 20),
                prefix: 24,
                gateway: Some(Ipv4Addr::new(192, 0, 2, 1)),
                routes: vec![StaticRoute {
                    network: Ipv4Addr::new(10, 0, 0, 0),
                    prefix: 8,
                    gateway: Ipv4Addr::new(192, 0, 2, 2),
                }],
            }),
            dns: vec![Ipv4Addr::new(192, 0, 2, 53).into()],
        };
        assert_eq!(read(&document()), Ok(Some(want.clone())));
        let mut by_dhcp = document();
        by_dhcp["services"] = json!([]);
        by_dhcp["networks"] =
            json!([{"id": "n0", "network_id": "n0", "link": "eth0", "type": "ipv4_dhcp"}]);
        assert_eq!(
            read(&by_dhcp),
            Ok(Some(RamdiskNetwork { address: None, dns: Vec::new(), ..want }))
        );
        assert_eq!(read(&json!({})), Ok(None));
    }

    #[test]
    fn a_document_that_the_ramdisk_cannot_configure_is_refused_by_the_field() {
        for (pointer, value, problem) in [
            ("/networks", json!([]), "networks: the ramdisk configures exactly one network"),
            ("/networks/0/link", json!("eth7"), "networks[0].link: there is no link with the id"),
            (
                "/networks/0/type",
                json!("ipv4_dhcp"),
                "networks[0]: the address, the routes and the",
            ),
            ("/networks/0/routes/1/netmask", json!("0.0.0.0"), "networks[0].routes: there is more"),
            ("/networks/0/type", json!("ipv6"), "networks[0].type: must be ipv4 or ipv4_dhcp"),
            ("/networks/0/ip_address", json!(null), "networks[0].ip_address: missing"),
            ("/networks/0/netmask", json!(null), "networks[0].netmask: missing"),
            ("/networks/0/netmask", json!("255.0.255.0"), "networks[0].netmask: 255.0.255.0 is no"),
            ("/networks/0/routes/1/netmask", json!("0.0.0.8"), "networks[0].routes: 0.0.0.8 is no"),
            ("/links/1/type", json!("bond"), "links: the link \"eth0\" is a bond, and"),
            ("/links/1/type", json!("vlan"), "links: the link \"eth0\" is a vlan, and"),
            ("/links/1/ethernet_mac_address", json!(null), "links: the link \"eth0\" needs an"),
            ("/services/0/type", json!("ntp"), "services: must be of the type dns, not \"ntp\""),
            ("/networks/0", json!({"id": "n0"}), "missing field `network_id`"),
        ] {
            let mut wrong = document();
            *wrong.pointer_mut(pointer).unwrap() = value;
            let refused = read(&wrong).unwrap_err();
            assert!(refused.starts_with(problem), "{pointer}: {refused}");
        }
    }

    #[test]
    fn a_network_by_dhcp_has_no_part_of_a_static_one() {
        let mut by_dhcp = document();
        by_dhcp["networks"][0]["type"] = json!("ipv4_dhcp");
        for kept in ["ip_address", "netmask", "routes", "services"] {
            let mut document = by_dhcp.clone();
            for field in ["ip_address", "netmask", "routes"].iter().filter(|it| **it != kept) {
                document["networks"][0].as_object_mut().unwrap().remove(*field);
            }
            if kept != "services" {
                document["services"] = json!([]);
            }
            let refused = read(&document).unwrap_err();
            assert!(
                refused.starts_with("networks[0]: the address, the routes"),
                "{kept}: {refused}"
            );
        }
    }

    #[test]
    fn the_ramdisk_of_a_node_has_the_network_of_the_node() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let mut node = Node::new(crate::NodeUuid::nil(), crate::Driver::Redfish, now);
        assert_eq!(node.ramdisk_network(), None);
        node.network_data = document().as_object().unwrap().clone();
        assert_eq!(node.ramdisk_network(), read(&document()).unwrap());
    }
}
