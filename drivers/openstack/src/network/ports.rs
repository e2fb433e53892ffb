//! Ports: who is on a network, with which addresses.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Kind;
use crate::body::without_nulls;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "ports", one: "port", many: "ports" };

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Port {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// `ACTIVE`, `DOWN`, `BUILD` or `ERROR`.
    #[serde(default)]
    pub status: String,
    /// The network it is on.
    #[serde(default)]
    pub network_id: String,
    /// Its MAC address.
    #[serde(default)]
    pub mac_address: String,
    /// Its addresses.
    #[serde(default)]
    pub fixed_ips: Vec<FixedIp>,
    /// The id of the server, router or load balancer it belongs to; empty if none.
    #[serde(default)]
    pub device_id: String,
    /// What that is: `compute:nova`, `network:router_interface`, `Octavia` …
    #[serde(default)]
    pub device_owner: String,
    /// The ids of its security groups.
    #[serde(default)]
    pub security_groups: Vec<String>,
    /// What else may be sent from it.
    #[serde(default)]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// An address of a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FixedIp {
    /// Of which subnet.
    #[serde(default)]
    pub subnet_id: String,
    /// The address.
    pub ip_address: IpAddr,
}

/// Addresses that are not a port's own and may be sent from it: of pods, or one that wanders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressPair {
    /// One, or many: `10.244.0.0/16`.
    pub ip_address: String,
}

/// A port to be made.
#[derive(Clone, Debug, Default)]
pub struct NewPort {
    /// Its name. Derive it from what the port is: it is how it is found again.
    pub name: String,
    /// The network it is on.
    pub network_id: String,
    /// The subnet its address is of; any of the network's if `None`.
    pub subnet_id: Option<String>,
    /// Its address; any of the subnet's if `None`. Needs `subnet_id`.
    pub address: Option<IpAddr>,
    /// The ids of its security groups; the project's default one if `None`.
    pub security_groups: Option<Vec<String>>,
    /// What else may be sent from it.
    pub allowed_address_pairs: Vec<AddressPair>,
}

/// Which ports.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortQuery<'q> {
    /// Of this name.
    pub name: Option<&'q str>,
    /// On this network.
    pub network_id: Option<&'q str>,
    /// Of this server, router or load balancer.
    pub device_id: Option<&'q str>,
    /// With this tag.
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

/// Makes a port. After an error whose outcome is unknown look for it by its name.
pub async fn create(session: &Session, new: &NewPort) -> Result<Port, CloudError> {
    KIND.create(session, new.body()).await
}

/// Makes many ports, all of them or none.
pub async fn create_all(session: &Session, new: &[NewPort]) -> Result<Vec<Port>, CloudError> {
    let body = json!({"ports": new.iter().map(NewPort::body).collect::<Vec<_>>()});
    session.post(super::SERVICE, &["ports"], body).under("ports").await
}

/// The port with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Port>, CloudError> {
    KIND.show(session, id).await
}

/// Those of this name that we may see.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Port>, CloudError> {
    list(session, &PortQuery { name: Some(name), ..PortQuery::default() }).await
}

/// Those with one of these names that we may see.
pub async fn named(session: &Session, names: &[String]) -> Result<Vec<Port>, CloudError> {
    KIND.any_of(session, "name", names).await
}

/// Those that fit.
pub async fn list(session: &Session, query: &PortQuery<'_>) -> Result<Vec<Port>, CloudError> {
    let filters = [
        ("name", query.name),
        ("network_id", query.network_id),
        ("device_id", query.device_id),
        ("tags", query.tag),
    ];
    let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned())));
    KIND.list(session, &filters.collect::<Vec<_>>()).await
}

/// Sets a port's security groups.
pub async fn set_security_groups(
    session: &Session,
    id: &str,
    groups: &[String],
) -> Result<Port, CloudError> {
    KIND.update(session, id, json!({"security_groups": groups})).await
}

/// Sets what else may be sent from a port.
pub async fn set_allowed_address_pairs(
    session: &Session,
    id: &str,
    pairs: &[AddressPair],
) -> Result<Port, CloudError> {
    KIND.update(session, id, json!({"allowed_address_pairs": pairs})).await
}

/// Deletes a port.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    KIND.delete(session, id).await
}
