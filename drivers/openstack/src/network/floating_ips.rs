//! Floating IPs: addresses that the world can reach, and whose they are now.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::json;

use super::Kind;
use crate::body::without_nulls;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "floatingips", one: "floatingip", many: "floatingips" };

/// A floating IP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FloatingIp {
    /// Its id.
    pub id: String,
    /// The address.
    #[serde(rename = "floating_ip_address")]
    pub address: IpAddr,
    /// What it is for: it has no name, so this is how it is found again.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// `ACTIVE`, `DOWN` or `ERROR`.
    #[serde(default)]
    pub status: String,
    /// The network it comes from.
    #[serde(default)]
    pub floating_network_id: String,
    /// The port it leads to.
    #[serde(default)]
    pub port_id: Option<String>,
    /// The address it leads to.
    #[serde(default)]
    pub fixed_ip_address: Option<IpAddr>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Takes a floating IP of an external network. Derive the description from what it is for: it has no name.
///
/// After an error whose outcome is unknown look for it by [`find`].
pub async fn create(
    session: &Session,
    external_network_id: &str,
    description: &str,
    port_id: Option<&str>,
) -> Result<FloatingIp, CloudError> {
    let body = json!({
        "floating_network_id": external_network_id,
        "description": description,
        "port_id": port_id,
    });
    KIND.create(session, without_nulls(body)).await
}

/// The floating IP with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<FloatingIp>, CloudError> {
    KIND.show(session, id).await
}

/// Those with this description that we may see.
pub async fn find(session: &Session, description: &str) -> Result<Vec<FloatingIp>, CloudError> {
    KIND.list(session, &[("description", description.to_owned())]).await
}

/// Those with one of these descriptions that we may see.
pub async fn described(
    session: &Session,
    descriptions: &[String],
) -> Result<Vec<FloatingIp>, CloudError> {
    KIND.any_of(session, "description", descriptions).await
}

/// Those that lead to this port.
pub async fn of_port(session: &Session, port_id: &str) -> Result<Vec<FloatingIp>, CloudError> {
    KIND.list(session, &[("port_id", port_id.to_owned())]).await
}

/// Leads a floating IP to a port, or to nowhere.
pub async fn lead_to(
    session: &Session,
    id: &str,
    port_id: Option<&str>,
) -> Result<FloatingIp, CloudError> {
    KIND.update(session, id, json!({"port_id": port_id})).await
}

/// Gives a floating IP back.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    KIND.delete(session, id).await
}
