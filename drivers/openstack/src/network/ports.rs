//! Ports: connections of servers, routers and load balancers to a network.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Kind;
use crate::body::without_nulls;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "ports", one: "port", many: "ports" };

/// A port on a network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Port {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// `ACTIVE`, `DOWN`, `BUILD` or `ERROR`.
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub network_id: String,
    #[serde(default)]
    pub mac_address: String,
    #[serde(default)]
    pub fixed_ips: Vec<FixedIp>,
    /// The id of the server, router or load balancer that uses the port; empty if none does.
    #[serde(default)]
    pub device_id: String,
    /// The kind of that device: `compute:nova`, `network:router_interface`, `Octavia` …
    #[serde(default)]
    pub device_owner: String,
    /// The ids of the port's security groups.
    #[serde(default)]
    pub security_groups: Vec<String>,
    /// Further source addresses that the port may send from.
    #[serde(default)]
    pub allowed_address_pairs: Vec<AddressPair>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub project_id: Option<String>,
    /// The host that the port is bound to; empty if it is bound to none. Only administrators see it.
    #[serde(default, rename = "binding:host_id", deserialize_with = "lenient::or_default")]
    pub host: String,
    /// The description of the port's connection by its host, such as the switch ports of a machine. Only administrators see it.
    #[serde(default, rename = "binding:profile", deserialize_with = "lenient::or_default")]
    pub profile: Map<String, Value>,
    /// `binding_failed` if Neutron has no mechanism that connects the port on its host. Only administrators see it.
    #[serde(default, rename = "binding:vif_type", deserialize_with = "lenient::or_default")]
    pub vif_type: String,
}

impl Port {
    /// Returns whether Neutron has found no mechanism that connects the port on its host.
    pub fn is_binding_failed(&self) -> bool {
        self.vif_type == "binding_failed"
    }
}

/// An address of a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FixedIp {
    #[serde(default)]
    pub subnet_id: String,
    pub ip_address: IpAddr,
}

/// Source addresses that a port may use besides its own: addresses of pods, or a virtual address that moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressPair {
    /// An address, or a network: `10.244.0.0/16`.
    pub ip_address: String,
}

/// A port to create.
#[derive(Clone, Debug, Default)]
pub struct NewPort {
    /// Derive the name from the port's purpose: the port is found again by its name.
    pub name: String,
    pub network_id: String,
    /// The subnet of the address; `None` takes any subnet of the network.
    pub subnet_id: Option<String>,
    /// The address; `None` takes any address of the subnet. Needs `subnet_id`.
    pub address: Option<IpAddr>,
    /// Ids of security groups; `None` is the project's default group.
    pub security_groups: Option<Vec<String>>,
    /// Further source addresses that the port may send from.
    pub allowed_address_pairs: Vec<AddressPair>,
}

/// The binding of a port to a bare metal machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineBinding {
    /// The id of the machine.
    pub host: String,
    /// The MAC address of the machine's network card; `None` leaves the address of the port.
    pub mac: Option<String>,
    /// The switch ports of the machine (`local_link_information`); `None` leaves the profile of the port.
    pub profile: Option<Map<String, Value>>,
}

impl MachineBinding {
    fn body(&self) -> Value {
        without_nulls(json!({
            "binding:host_id": self.host,
            "binding:vnic_type": "baremetal",
            "binding:profile": self.profile,
            "mac_address": self.mac,
        }))
    }
}

/// A port to create for a bare metal machine itself.
#[derive(Clone, Debug, Default)]
pub struct NewMachinePort {
    /// Derive the name from the port's purpose: the port is found again by its name.
    pub name: String,
    pub network_id: String,
    pub device_id: String,
    pub device_owner: String,
    /// Ids of security groups; `None` is the project's default group.
    pub security_groups: Option<Vec<String>>,
    /// Whether the port gets addresses of the network's subnets.
    pub addresses: PortAddresses,
    pub binding: MachineBinding,
}

/// Whether a port gets addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortAddresses {
    /// One of each of the network's subnets that Neutron chooses.
    #[default]
    Chosen,
    None,
}

/// Filters for listing ports.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortQuery<'q> {
    pub name: Option<&'q str>,
    pub network_id: Option<&'q str>,
    /// The id of a server, router or load balancer.
    pub device_id: Option<&'q str>,
    pub tag: Option<&'q str>,
}

impl NewPort {
    fn body(&self) -> Value {
        let fixed_ips = self.subnet_id.as_ref().map(|subnet| {
            json!([without_nulls(json!({"subnet_id": subnet, "ip_address": self.address}))])
        });
        without_nulls(json!({
            "name": self.name,
            "network_id": self.network_id,
            "fixed_ips": fixed_ips,
            "security_groups": self.security_groups,
            "allowed_address_pairs":
                (!self.allowed_address_pairs.is_empty()).then_some(&self.allowed_address_pairs),
        }))
    }
}

/// Creates a port. After an error with unknown outcome, look for the port by its name.
pub async fn create(session: &Session, new: &NewPort) -> Result<Port> {
    KIND.create(session, new.body()).await
}

/// Returns the port with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Port>> {
    KIND.show(session, id).await
}

/// Returns the visible ports with this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Port>> {
    list(session, &PortQuery { name: Some(name), ..PortQuery::default() }).await
}

/// Returns the visible ports with one of these names.
pub async fn named(session: &Session, names: &[String]) -> Result<Vec<Port>> {
    KIND.any_of(session, "name", names).await
}

/// Lists the ports that match all filters.
pub async fn list(session: &Session, query: &PortQuery<'_>) -> Result<Vec<Port>> {
    let filters = [
        ("name", query.name),
        ("network_id", query.network_id),
        ("device_id", query.device_id),
        ("tags", query.tag),
    ];
    let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned())));
    KIND.list(session, &filters.collect::<Vec<_>>()).await
}

/// Creates a port that is bound to a bare metal machine. Only administrators may.
///
/// A conflict means that another port of the network has the MAC address. After an error with unknown outcome, look for the port by its name.
pub async fn create_for_machine(session: &Session, new: &NewMachinePort) -> Result<Port> {
    let no_addresses = match new.addresses {
        PortAddresses::Chosen => None,
        PortAddresses::None => Some(json!([])),
    };
    let mut body = json!({
        "name": new.name,
        "network_id": new.network_id,
        "device_id": new.device_id,
        "device_owner": new.device_owner,
        "security_groups": new.security_groups,
        "fixed_ips": no_addresses,
    });
    if let (Value::Object(body), Value::Object(binding)) = (&mut body, new.binding.body()) {
        body.extend(binding);
    }
    KIND.create(session, without_nulls(body)).await
}

/// Binds a port to a bare metal machine.
///
/// A port that is bound to another host already keeps its address (Neutron answers 409): [`release`] it first.
pub async fn bind(session: &Session, id: &str, binding: &MachineBinding) -> Result<Port> {
    KIND.update(session, id, binding.body()).await
}

/// Releases a port from its host. It keeps its addresses.
pub async fn release(session: &Session, id: &str) -> Result<Port> {
    KIND.update(session, id, json!({"binding:host_id": "", "binding:profile": {}})).await
}

/// Gives a port that is bound to no host a MAC address of Neutron's choice.
pub async fn renew_mac(session: &Session, id: &str) -> Result<Port> {
    KIND.update(session, id, json!({"mac_address": null})).await
}

/// Deletes a port.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    KIND.delete(session, id).await
}
