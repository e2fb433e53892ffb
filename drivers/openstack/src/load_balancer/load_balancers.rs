//! Load balancers, created with all parts in one request and deleted in one.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::listeners::NewListener;
use super::{ProvisioningStatus, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// A load balancer in Octavia.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadBalancer {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    pub provisioning_status: ProvisioningStatus,
    /// The result of health checks: `ONLINE`, `OFFLINE`, `DEGRADED`, `ERROR`, `NO_MONITOR`.
    #[serde(default)]
    pub operating_status: String,
    #[serde(default)]
    pub vip_address: Option<IpAddr>,
    /// The Neutron port of the address.
    #[serde(default)]
    pub vip_port_id: Option<String>,
    #[serde(default)]
    pub vip_subnet_id: Option<String>,
    /// The driver: `amphora`, `ovn` …
    #[serde(default)]
    pub provider: Option<String>,
    #[serde(default)]
    pub listeners: Vec<Part>,
    #[serde(default)]
    pub pools: Vec<Part>,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A reference to a part of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Part {
    pub id: String,
}

/// A load balancer to create, with all its parts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewLoadBalancer {
    /// Derive the name from the load balancer's purpose: the load balancer is found again by its name.
    pub name: String,
    pub description: String,
    /// A port of the caller for the address; Octavia does not delete it. Exactly one of this and `vip_subnet_id` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_port_id: Option<String>,
    /// The subnet of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_subnet_id: Option<String>,
    /// The address; `None` takes any address of the subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_address: Option<IpAddr>,
    /// The driver; `None` is the cloud's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavor_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    pub tags: Vec<String>,
    pub listeners: Vec<NewListener>,
}

/// Requests a load balancer with its listeners, pools, members and monitors; Octavia creates it in the background.
///
/// After an error with unknown outcome, look for the load balancer with [`find`]. An active load balancer may have inactive listeners:
/// Octavia 11 (2022) without a jobboard forgets the listeners of such a request, and they stay `PENDING_CREATE`. So check them with
/// [`listeners::show`](super::listeners::show) too, and delete one that makes no progress.
pub async fn create(session: &Session, new: &NewLoadBalancer) -> Result<LoadBalancer> {
    let body = json!({"loadbalancer": new});
    session.post(SERVICE, &["loadbalancers"], body).under("loadbalancer").await
}

/// Returns the load balancer with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<LoadBalancer>> {
    session.get(SERVICE, &["loadbalancers", id]).find_under("loadbalancer").await
}

/// Returns the load balancers with this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<LoadBalancer>> {
    list(session, "name", name).await
}

/// Returns the load balancers whose address is in this subnet.
pub async fn on_subnet(session: &Session, id: &str) -> Result<Vec<LoadBalancer>> {
    list(session, "vip_subnet_id", id).await
}

async fn list(session: &Session, by: &str, value: &str) -> Result<Vec<LoadBalancer>> {
    let call = session.get(SERVICE, &["loadbalancers"]).query(by, value);
    call.all("loadbalancers").await
}

/// Requests the deletion of a load balancer with all its parts; Octavia deletes it in the background.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.deleting(SERVICE, &["loadbalancers", id]).query("cascade", "true").done_or_gone().await
}
