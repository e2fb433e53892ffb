//! Networks: create, show, find, delete.

use serde::Deserialize;
use serde_json::json;

use super::Kind;
use crate::body::without_nulls;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "networks", one: "network", many: "networks" };

/// A network in Neutron.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Network {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// `ACTIVE`, `DOWN`, `BUILD` or `ERROR`.
    #[serde(default)]
    pub status: String,
    /// The ids of the network's subnets.
    #[serde(default)]
    pub subnets: Vec<String>,
    /// Whether the network provides floating IPs.
    #[serde(default, rename = "router:external")]
    pub is_external: bool,
    /// Whether other projects may use the network.
    #[serde(default, rename = "shared")]
    pub is_shared: bool,
    #[serde(default)]
    pub project_id: Option<String>,
    /// The largest packet in bytes.
    #[serde(default)]
    pub mtu: Option<u32>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// The physical network of a network with one segment. Only administrators see it.
    #[serde(default, rename = "provider:physical_network")]
    pub physical_network: Option<String>,
    /// The segments of a network with several. Only administrators see them.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub segments: Vec<Segment>,
}

/// A part of a network that is on one physical network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Segment {
    #[serde(default, rename = "provider:physical_network")]
    pub physical_network: Option<String>,
}

impl Network {
    /// Returns the physical networks that the network is on, as far as we may see them.
    pub fn physical_networks(&self) -> impl Iterator<Item = &str> {
        let of_segments = self.segments.iter().filter_map(|it| it.physical_network.as_deref());
        self.physical_network.as_deref().into_iter().chain(of_segments)
    }
}

/// A network to create.
#[derive(Clone, Debug, Default)]
pub struct NewNetwork {
    /// Derive the name from the network's purpose: the network is found again by its name.
    pub name: String,
    pub description: String,
    /// The largest packet in bytes; `None` is the cloud's default.
    pub mtu: Option<u32>,
}

/// Creates a network. After an error with unknown outcome, look for the network with [`find`].
pub async fn create(session: &Session, new: &NewNetwork) -> Result<Network> {
    let body = json!({"name": new.name, "description": new.description, "mtu": new.mtu});
    KIND.create(session, without_nulls(body)).await
}

/// Returns the network with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Network>> {
    KIND.show(session, id).await
}

/// Returns the visible networks with this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Network>> {
    KIND.list(session, &[("name", name.to_owned())]).await
}

/// Lists the networks that provide floating IPs.
pub async fn external(session: &Session) -> Result<Vec<Network>> {
    KIND.list(session, &[("router:external", "true".to_owned())]).await
}

/// Deletes a network with its subnets. A conflict means that the network has ports.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    KIND.delete(session, id).await
}
