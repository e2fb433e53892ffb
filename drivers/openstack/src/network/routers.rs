//! Routers: the ways between networks.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::json;

use super::ports::{self, PortQuery};
use super::{Kind, SERVICE};
use crate::body::without_nulls;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "routers", one: "router", many: "routers" };

/// A router.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Router {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// `ACTIVE`, `BUILD`, `ERROR` …
    #[serde(default)]
    pub status: String,
    /// The way out.
    #[serde(default, rename = "external_gateway_info")]
    pub gateway: Option<Gateway>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A router's way out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Gateway {
    /// The external network.
    pub network_id: String,
    /// Its addresses there: what the world sees of those behind it.
    #[serde(default, rename = "external_fixed_ips")]
    pub addresses: Vec<GatewayAddress>,
}

/// An address of a router on an external network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GatewayAddress {
    /// The address.
    pub ip_address: IpAddr,
}

/// Makes a router, with a way out where one is given. Derive the name from what the router is for.
///
/// After an error whose outcome is unknown look for it by [`find`].
pub async fn create(
    session: &Session,
    name: &str,
    external_network_id: Option<&str>,
) -> Result<Router, CloudError> {
    let gateway = external_network_id.map(|id| json!({"network_id": id}));
    let body = json!({"name": name, "external_gateway_info": gateway});
    KIND.create(session, without_nulls(body)).await
}

/// The router with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Router>, CloudError> {
    KIND.show(session, id).await
}

/// Those of this name that we may see.
pub async fn find(session: &Session, name: &str) -> Result<Vec<Router>, CloudError> {
    KIND.list(session, &[("name", name.to_owned())]).await
}

/// Puts a router on a subnet, at its gateway's address. That it is there already is what was wanted.
pub async fn add_subnet(session: &Session, id: &str, subnet_id: &str) -> Result<(), CloudError> {
    let body = json!({"subnet_id": subnet_id});
    match session.put(SERVICE, &["routers", id, "add_router_interface"], body).done().await {
        // Neutron answers 400 to a second one.
        Err(CloudError::Refused(told)) if is_on(session, id, subnet_id).await? => {
            tracing::debug!("the router was there already: {told}");
            Ok(())
        }
        other => other,
    }
}

/// Takes a router off a subnet. That it is not there is what was wanted; floating IPs behind it are a conflict.
pub async fn remove_subnet(session: &Session, id: &str, subnet_id: &str) -> Result<(), CloudError> {
    let body = json!({"subnet_id": subnet_id});
    session.put(SERVICE, &["routers", id, "remove_router_interface"], body).done_or_gone().await
}

async fn is_on(session: &Session, id: &str, subnet_id: &str) -> Result<bool, CloudError> {
    let query = PortQuery { device_id: Some(id), ..PortQuery::default() };
    let ports = ports::list(session, &query).await?;
    let mut addresses = ports.iter().flat_map(|port| &port.fixed_ips);
    Ok(addresses.any(|address| address.subnet_id == subnet_id))
}

/// Deletes a router. One that is on subnets is a conflict.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    KIND.delete(session, id).await
}
