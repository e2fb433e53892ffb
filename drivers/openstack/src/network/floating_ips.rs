//! Floating IPs: public addresses, and the ports that they are mapped to.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::json;

use super::Kind;
use crate::body::without_nulls;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "floatingips", one: "floatingip", many: "floatingips" };

/// A floating IP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FloatingIp {
    pub id: String,
    #[serde(rename = "floating_ip_address")]
    pub address: IpAddr,
    /// The floating IP is found again by its description, because it has no name.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// `ACTIVE`, `DOWN` or `ERROR`.
    #[serde(default)]
    pub status: String,
    /// The external network of the address.
    #[serde(default)]
    pub floating_network_id: String,
    /// The port that the address is mapped to.
    #[serde(default)]
    pub port_id: Option<String>,
    /// The fixed address that it is mapped to.
    #[serde(default)]
    pub fixed_ip_address: Option<IpAddr>,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Allocates a floating IP from an external network. Derive the description from its purpose, because it has no name.
///
/// After an error with unknown outcome, look for the floating IP with [`find`].
pub async fn create(
    session: &Session,
    external_network_id: &str,
    description: &str,
    port_id: Option<&str>,
) -> Result<FloatingIp> {
    let body = json!({
        "floating_network_id": external_network_id,
        "description": description,
        "port_id": port_id,
    });
    KIND.create(session, without_nulls(body)).await
}

/// Returns the floating IP with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<FloatingIp>> {
    KIND.show(session, id).await
}

/// Returns the visible floating IPs with this description.
pub async fn find(session: &Session, description: &str) -> Result<Vec<FloatingIp>> {
    KIND.list(session, &[("description", description.to_owned())]).await
}

/// Returns the visible floating IPs with one of these descriptions.
pub async fn described(session: &Session, descriptions: &[String]) -> Result<Vec<FloatingIp>> {
    KIND.any_of(session, "description", descriptions).await
}

/// Returns the floating IPs that are mapped to this port.
pub async fn of_port(session: &Session, port_id: &str) -> Result<Vec<FloatingIp>> {
    KIND.list(session, &[("port_id", port_id.to_owned())]).await
}

/// Maps a floating IP to a port, or removes the mapping.
pub async fn associate(session: &Session, id: &str, port_id: Option<&str>) -> Result<FloatingIp> {
    KIND.update(session, id, json!({"port_id": port_id})).await
}

/// Releases a floating IP.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    KIND.delete(session, id).await
}
