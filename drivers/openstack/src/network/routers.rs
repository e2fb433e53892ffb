//! Routers, which connect networks.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::json;

use super::ports::{self, PortQuery};
use super::{Kind, SERVICE};
use crate::body::without_nulls;
use crate::error::{CloudError, Result};
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "routers", one: "router", many: "routers" };

/// A router in Neutron.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Router {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// `ACTIVE`, `BUILD`, `ERROR` …
    #[serde(default)]
    pub status: String,
    #[serde(default, rename = "external_gateway_info")]
    pub gateway: Option<Gateway>,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// The external gateway of a router.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Gateway {
    /// The id of the external network.
    pub network_id: String,
    /// The router's external addresses, the source of connections from behind it.
    #[serde(default, rename = "external_fixed_ips")]
    pub addresses: Vec<GatewayAddress>,
}

/// An address of a router on an external network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GatewayAddress {
    pub ip_address: IpAddr,
}

/// Creates a router, optionally with an external gateway. Derive the name from the router's purpose.
///
/// After an error with unknown outcome, look for the router with [`find`].
pub async fn create(
    session: &Session,
    name: &str,
    external_network_id: Option<&str>,
) -> Result<Router> {
    let gateway = external_network_id.map(|id| json!({"network_id": id}));
    let body = json!({"name": name, "external_gateway_info": gateway});
    KIND.create(session, without_nulls(body)).await
}

/// Returns the router with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Router>> {
    KIND.show(session, id).await
}

/// Returns the visible routers with this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Router>> {
    KIND.list(session, &[("name", name.to_owned())]).await
}

/// Connects a router to a subnet, with the gateway's address. A router that is connected already is no error.
pub async fn add_subnet(session: &Session, id: &str, subnet_id: &str) -> Result<()> {
    let body = json!({"subnet_id": subnet_id});
    match session.put(SERVICE, &["routers", id, "add_router_interface"], body).done().await {
        // Neutron answers 400 if the router is connected already.
        Err(CloudError::Refused(reported)) if is_on(session, id, subnet_id).await? => {
            tracing::debug!("the router was connected already: {reported}");
            Ok(())
        }
        other => other,
    }
}

/// Disconnects a router from a subnet. A router that is not connected is no error; a conflict means that floating IPs depend on the
/// connection.
pub async fn remove_subnet(session: &Session, id: &str, subnet_id: &str) -> Result<()> {
    let body = json!({"subnet_id": subnet_id});
    session.put(SERVICE, &["routers", id, "remove_router_interface"], body).done_or_gone().await
}

async fn is_on(session: &Session, id: &str, subnet_id: &str) -> Result<bool> {
    let query = PortQuery { device_id: Some(id), ..PortQuery::default() };
    let ports = ports::list(session, &query).await?;
    let mut addresses = ports.iter().flat_map(|port| &port.fixed_ips);
    Ok(addresses.any(|address| address.subnet_id == subnet_id))
}

/// Deletes a router. A conflict means that the router is connected to subnets.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    KIND.delete(session, id).await
}
