//! Plans the acceptance of a discovery: the node, its ports and its inventory, from what the machine reported and a person added.
//!
//! A discovered machine is not trusted: it may report the address of any BMC. So the conductor contacts no BMC of an accepted node before
//! a person or a rule requests it, and stored credentials go only to addresses of the range that the administrator named for them.

use std::net::IpAddr;

use hardware::{MacAddress, Network};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::bmc_identity::bmc_ip;
use crate::{
    BmcAnswer, Discovery, DiscoveryId, Driver, HistoryEntry, InspectionReport, Neighbour, Node,
    NodeUuid, Port, PortUuid, RequestRefused, SecretText, apply_inventory, neighbours,
};

/// The most ports of an accepted node.
const MOST_PORTS: usize = 64;

/// A person's part of a new node's access to its BMC.
#[derive(Clone, Default, PartialEq)]
pub struct AcceptanceRequest {
    /// The driver; by default that of the BMC that was found, else the configured one.
    pub driver: Option<Driver>,
    /// The BMC's credentials, and everything else that the discovery does not tell.
    pub driver_info: Map<String, Value>,
}

/// The credentials of the BMCs in a network.
#[derive(Clone, Debug)]
pub struct BmcCredentials {
    pub network: Network,
    pub username: String,
    pub password: SecretText,
    /// The value of `redfish_verify_ca`, if the nodes do not say it.
    pub verify_ca: Option<Value>,
}

/// The facts that a plan depends on, besides the discovery.
#[derive(Debug)]
pub struct AcceptanceFacts<'a> {
    /// The driver of machines that do not tell which protocol their BMC speaks.
    pub driver: Driver,
    /// The first network that contains the BMC counts.
    pub credentials: &'a [BmcCredentials],
    /// The conductor group of new nodes.
    pub group: &'a str,
    pub missing_address: MissingAddress,
    pub now: Timestamp,
}

/// The treatment of a discovery that tells no address of the BMC, if the request does not name one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingAddress {
    Refused,
    /// Inspection rules can set the address.
    Permitted,
}

/// A planned node, with everything that is written with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Acceptance {
    pub node: Node,
    pub ports: Vec<Port>,
    /// The inventory of the machine; `None` if the machine was not booted.
    pub report: Option<InspectionReport>,
    /// The entry of the node's history that records the acceptance.
    pub entry: HistoryEntry,
}

/// Plans the node of a discovery. `new_id` returns a new random id.
///
/// # Errors
///
/// The address of the BMC is missing.
pub fn plan_acceptance(
    found: &Discovery,
    asked: &AcceptanceRequest,
    facts: &AcceptanceFacts<'_>,
    new_id: &dyn Fn() -> Uuid,
) -> Result<Acceptance, RequestRefused> {
    let answer = bmc_answer(found);
    let driver = asked.driver.or(answer.as_ref().and_then(BmcAnswer::driver));
    let driver = driver.unwrap_or(facts.driver);
    let mut node = Node::new(NodeUuid::from_untyped_uuid(new_id()), driver, facts.now);
    facts.group.clone_into(&mut node.conductor_group);
    node.driver_info = driver_info(found, answer.as_ref(), driver, asked, facts)?;
    let (mut node, macs, links) = match found.inspection() {
        Some(data) => {
            let (node, macs) = apply_inventory(&node, &data);
            (node, macs, neighbours(&data))
        }
        None => (node, Vec::new(), Vec::new()),
    };
    node.provision_updated_at = Some(facts.now);
    let ports = port_addresses(found.mac(), macs).into_iter().map(|mac| {
        let id = PortUuid::from_untyped_uuid(new_id());
        linked(Port::new(id, node.id, mac, facts.now), &links)
    });
    let ports = ports.collect();
    let what = match found.id {
        DiscoveryId::Machine(mac) => format!("the discovered machine {mac} was accepted"),
        DiscoveryId::Bmc(at) => format!("the discovered BMC {at} was accepted"),
    };
    let entry = HistoryEntry::changed(&node, &node, what, facts.now);
    Ok(Acceptance { report: report(found, node.id), node, ports, entry })
}

/// Returns the addresses of the machine's BMC, as the discovery tells them.
pub fn bmc_addresses(found: &Discovery) -> Vec<String> {
    match found.id {
        DiscoveryId::Bmc(at) => vec![at.ip().to_string()],
        DiscoveryId::Machine(_) => {
            let Some(data) = found.inspection() else { return Vec::new() };
            let reported = [data.inventory.bmc_address, data.inventory.bmc_v6address];
            let parsed =
                reported.into_iter().flatten().filter_map(|raw| raw.parse::<IpAddr>().ok());
            // A machine without a BMC reports the unspecified address.
            let is_known = |address: &IpAddr| !address.is_unspecified();
            parsed.filter(is_known).map(|address| address.to_string()).collect()
        }
    }
}

fn report(found: &Discovery, node: NodeUuid) -> Option<InspectionReport> {
    let part = |name: &str| found.data.as_ref()?.get(name).cloned();
    let (inventory, plugin_data) = (part("inventory")?, part("plugin_data")?);
    Some(InspectionReport { node, at: found.last_seen_at, inventory, plugin_data })
}

fn bmc_answer(found: &Discovery) -> Option<BmcAnswer> {
    serde_json::from_value(found.data.as_ref()?.get("bmc")?.clone()).ok()
}

/// Returns the request's `driver_info` with the address of the BMC, and with the configured credentials if the request has none.
fn driver_info(
    found: &Discovery,
    answer: Option<&BmcAnswer>,
    driver: Driver,
    asked: &AcceptanceRequest,
    facts: &AcceptanceFacts<'_>,
) -> Result<Map<String, Value>, RequestRefused> {
    let mut info = asked.driver_info.clone();
    let prefix = match driver {
        Driver::FakeHardware | Driver::ManualManagement => return Ok(info),
        Driver::Idrac | Driver::Redfish => "redfish",
        Driver::Ipmi => "ipmi",
    };
    let key = |name: &str| format!("{prefix}_{name}");
    if !info.contains_key(&key("address")) {
        info.extend(found_address(found, answer, driver));
    }
    let Some(address) = info.get(&key("address")).and_then(Value::as_str) else {
        if facts.missing_address == MissingAddress::Permitted {
            return Ok(info);
        }
        let problem = "the discovery tells no address of the BMC; name the address in driver_info";
        let field = format!("driver_info.{prefix}_address");
        return Err(RequestRefused::Field { field, problem: problem.to_owned() });
    };
    let ip = bmc_ip(address);
    let is_for = |it: &&BmcCredentials| ip.is_some_and(|ip| it.network.contains(ip));
    let has_own = ["username", "password"].iter().any(|name| info.contains_key(&key(name)));
    if let Some(known) = facts.credentials.iter().find(is_for).filter(|_| !has_own) {
        info.insert(key("username"), known.username.clone().into());
        info.insert(key("password"), known.password.expose().into());
        if let (true, Some(verify)) = (driver.speaks_redfish(), &known.verify_ca) {
            info.entry(key("verify_ca")).or_insert_with(|| verify.clone());
        }
    }
    Ok(info)
}

/// Returns the keys of `driver_info` with the address that the discovery tells; none if it does not tell one for this driver.
fn found_address(
    found: &Discovery,
    answer: Option<&BmcAnswer>,
    driver: Driver,
) -> Vec<(String, Value)> {
    let named = |key: &str, value: Value| (key.to_owned(), value);
    let redfish = answer.and_then(|it| it.redfish.as_ref());
    let ipmi = answer.and_then(|it| it.ipmi.as_ref());
    match (driver, redfish, ipmi) {
        (Driver::FakeHardware | Driver::ManualManagement, _, _) => Vec::new(),
        (Driver::Idrac | Driver::Redfish, Some(known), _) => {
            vec![named("redfish_address", known.address.clone().into())]
        }
        (Driver::Ipmi, _, Some(known)) => vec![
            named("ipmi_address", known.address.clone().into()),
            named("ipmi_port", known.port.into()),
        ],
        (Driver::Idrac | Driver::Redfish | Driver::Ipmi, _, _) => {
            let Some(first) = bmc_addresses(found).into_iter().next() else { return Vec::new() };
            match driver {
                Driver::Idrac | Driver::Redfish if first.contains(':') => {
                    vec![named("redfish_address", format!("https://[{first}]").into())]
                }
                Driver::Idrac | Driver::Redfish => {
                    vec![named("redfish_address", format!("https://{first}").into())]
                }
                Driver::Ipmi | Driver::FakeHardware | Driver::ManualManagement => {
                    vec![named("ipmi_address", first.into())]
                }
            }
        }
    }
}

/// Returns the address that the machine booted from, and those that the inventory makes ports of.
fn port_addresses(booted: Option<MacAddress>, reported: Vec<MacAddress>) -> Vec<MacAddress> {
    let mut all: Vec<MacAddress> = booted.into_iter().collect();
    for mac in reported {
        if !all.contains(&mac) && all.len() < MOST_PORTS {
            all.push(mac);
        }
    }
    all
}

/// Returns the port with the switch port that it is connected to, if a valid one is known.
fn linked(port: Port, links: &[Neighbour]) -> Port {
    let Some(found) = links.iter().find(|it| it.address == Some(port.address)) else { return port };
    let linked = Port { local_link_connection: found.link(), ..port.clone() };
    linked.with_checked_link().unwrap_or(port)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    const MAC: &str = "52:54:00:00:00:01";

    fn machine(inventory: Value) -> Discovery {
        let at = Timestamp::UNIX_EPOCH;
        let data =
            json!({"inventory": inventory, "plugin_data": {"root_disk": {"size": 5_u64 << 30}}});
        let id = DiscoveryId::Machine(MAC.parse().unwrap());
        Discovery { id, first_seen_at: at, last_seen_at: at, data: Some(data), node: None }
    }

    fn inspected() -> Discovery {
        machine(json!({
            "interfaces": [
                {"name": "eth0", "mac_address": MAC, "has_carrier": true,
                 "lldp": [[1, "04020000000700"], [2, "0545746831"]]},
                {"name": "eth1", "mac_address": "52:54:00:00:00:02", "has_carrier": true,
                 "lldp": [[1, "07737769746368"], [2, "0545746832"]]},
            ],
            "cpu": {"count": 4, "architecture": "x86_64"}, "memory": {"physical_mb": 2048},
            "bmc_address": "10.0.0.7", "bmc_v6address": "::/0",
        }))
    }

    fn plan(found: &Discovery, asked: &AcceptanceRequest) -> Result<Acceptance, RequestRefused> {
        let network = "10.0.0.0/24".parse().unwrap();
        let password = SecretText::from("of-the-range".to_owned());
        let verify_ca = Some(false.into());
        let known = BmcCredentials { network, username: "admin".to_owned(), password, verify_ca };
        let facts = AcceptanceFacts {
            driver: Driver::Redfish,
            credentials: &[known],
            group: "rack-a",
            missing_address: MissingAddress::Refused,
            now: Timestamp::UNIX_EPOCH,
        };
        let ids = Cell::new(0_u128);
        plan_acceptance(found, asked, &facts, &|| {
            ids.set(ids.get() + 1);
            Uuid::from_u128(ids.get())
        })
    }

    fn info(entries: Value) -> AcceptanceRequest {
        let driver_info = entries.as_object().unwrap().clone();
        AcceptanceRequest { driver_info, ..AcceptanceRequest::default() }
    }

    #[test]
    fn an_inventory_becomes_a_node_with_ports_and_links() {
        let asked = AcceptanceRequest::default();
        let Acceptance { node, ports, report, entry } = plan(&inspected(), &asked).unwrap();
        let want = json!({
            "redfish_address": "https://10.0.0.7", "redfish_username": "admin",
            "redfish_password": "of-the-range", "redfish_verify_ca": false,
        });
        assert_eq!(Value::Object(node.driver_info), want);
        assert_eq!(
            (node.properties["memory_mb"].clone(), &*node.conductor_group),
            (2048.into(), "rack-a")
        );
        let links: Vec<_> = ports.iter().map(|port| json!(port.local_link_connection)).collect();
        assert_eq!(links[0], json!({"switch_id": "02:00:00:00:07:00", "port_id": "Eth1"}));
        assert_eq!(links[1], json!({}), "a switch without an address cannot be a link");
        assert_eq!(report.unwrap().inventory["bmc_address"], "10.0.0.7");
        assert_eq!(entry.event, "the discovered machine 52:54:00:00:00:01 was accepted");
    }

    #[test]
    fn a_node_gets_no_more_ports_than_a_node_may_have() {
        let macs = |count: u8| (0..count).map(|n| MacAddress::new([2, 0, 0, 0, 0, n])).collect();
        assert_eq!(port_addresses(None, macs(63)).len(), 63);
        assert_eq!(port_addresses(Some(MAC.parse().unwrap()), macs(100)).len(), MOST_PORTS);
    }

    #[test]
    fn credentials_of_the_request_replace_those_of_the_range() {
        let own = json!({"redfish_username": "root", "redfish_password": "own"});
        let node = plan(&inspected(), &info(own)).unwrap().node;
        assert_eq!(node.driver_info["redfish_password"], "own");
        assert!(!node.driver_info.contains_key("redfish_verify_ca"));
        let elsewhere = json!({"redfish_address": "https://192.0.2.7"});
        let node = plan(&inspected(), &info(elsewhere.clone())).unwrap().node;
        assert_eq!(Value::Object(node.driver_info), elsewhere);
        let named = json!({"redfish_address": "bmc.example"});
        let node = plan(&inspected(), &info(named.clone())).unwrap().node;
        assert_eq!(Value::Object(node.driver_info), named, "a name may resolve to any address");
    }

    #[test]
    fn a_machine_without_a_bmc_address_needs_one() {
        let found = machine(json!({"bmc_address": "0.0.0.0"}));
        let refused = plan(&found, &AcceptanceRequest::default()).unwrap_err().to_string();
        assert!(refused.starts_with("driver_info.redfish_address: the discovery tells no"));
        let manual = Driver::ManualManagement;
        let asked = AcceptanceRequest { driver: Some(manual), ..AcceptanceRequest::default() };
        let accepted = plan(&found, &asked).unwrap();
        assert_eq!((accepted.node.driver, accepted.ports.len()), (manual, 1));
        let refused = Discovery { data: None, ..found };
        let accepted = plan(&refused, &asked).unwrap();
        assert_eq!((accepted.report, accepted.ports.len()), (None, 1));
    }

    #[test]
    fn the_address_fits_the_driver() {
        let found = machine(json!({"bmc_v6address": "fd00::7"}));
        let node = plan(&found, &AcceptanceRequest::default()).unwrap().node;
        assert_eq!(node.driver_info["redfish_address"], "https://[fd00::7]");
        let ipmi = AcceptanceRequest { driver: Some(Driver::Ipmi), ..AcceptanceRequest::default() };
        let node = plan(&found, &ipmi).unwrap().node;
        assert_eq!(Value::Object(node.driver_info), json!({"ipmi_address": "fd00::7"}));
        let node = plan(&inspected(), &ipmi).unwrap().node;
        assert_eq!(node.driver_info["ipmi_password"], "of-the-range");
        assert!(!node.driver_info.contains_key("ipmi_verify_ca"));
    }

    #[test]
    fn a_bmc_that_was_found_chooses_its_driver() {
        let at = Timestamp::UNIX_EPOCH;
        let bmc = |answer: Value| Discovery {
            id: DiscoveryId::Bmc("10.0.0.7:623".parse().unwrap()),
            first_seen_at: at,
            last_seen_at: at,
            data: Some(json!({ "bmc": answer })),
            node: None,
        };
        let ipmi = json!({"ipmi": {"address": "10.0.0.7", "port": 623}});
        let accepted = plan(&bmc(ipmi), &AcceptanceRequest::default()).unwrap();
        assert_eq!((accepted.node.driver, accepted.ports.len()), (Driver::Ipmi, 0));
        assert_eq!(accepted.node.driver_info["ipmi_port"], 623);
        let both = json!({
            "redfish": {"address": "https://10.0.0.7"}, "ipmi": {"address": "10.0.0.7", "port": 623},
        });
        let accepted = plan(&bmc(both), &AcceptanceRequest::default()).unwrap();
        assert_eq!(accepted.node.driver_info["redfish_address"], "https://10.0.0.7");
        assert_eq!(accepted.entry.event, "the discovered BMC 10.0.0.7:623 was accepted");
    }
}
