//! Load balancers, made whole in one request and deleted whole in one.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::listeners::NewListener;
use super::{ProvisioningStatus, SERVICE};
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// A load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadBalancer {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// How far it is.
    pub provisioning_status: ProvisioningStatus,
    /// Whether it works, by its health checks: `ONLINE`, `OFFLINE`, `DEGRADED`, `ERROR`, `NO_MONITOR`.
    #[serde(default)]
    pub operating_status: String,
    /// Its address.
    #[serde(default)]
    pub vip_address: Option<IpAddr>,
    /// The port that has it.
    #[serde(default)]
    pub vip_port_id: Option<String>,
    /// The subnet it is of.
    #[serde(default)]
    pub vip_subnet_id: Option<String>,
    /// Who makes it: `amphora`, `ovn` …
    #[serde(default)]
    pub provider: Option<String>,
    /// Its listeners.
    #[serde(default)]
    pub listeners: Vec<Part>,
    /// Its pools.
    #[serde(default)]
    pub pools: Vec<Part>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Something that belongs to something else.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Part {
    /// Its id.
    pub id: String,
}

/// A load balancer to be made, with all that it consists of.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewLoadBalancer {
    /// Its name. Derive it from what it is for: it is how it is found again.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The port that is to have its address, one of the maker's own; Octavia leaves it behind. One of this and
    /// `vip_subnet_id` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_port_id: Option<String>,
    /// The subnet its address is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_subnet_id: Option<String>,
    /// Its address; any of the subnet's if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_address: Option<IpAddr>,
    /// Who makes it; the cloud's default if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its flavor's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavor_id: Option<String>,
    /// Where it is to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// What it listens on.
    pub listeners: Vec<NewListener>,
}

/// Asks for a load balancer with its listeners, pools, members and monitors; it is made while you look.
///
/// After an error whose outcome is unknown look for it by [`find`]. That it is active does not say that its listeners
/// are: Octavia 11 (2022) without a jobboard forgets those that came with it, and they stay `PENDING_CREATE`. Look at
/// [`listeners::show`](super::listeners::show) as well, and delete one that does not get on.
pub async fn create(session: &Session, new: &NewLoadBalancer) -> Result<LoadBalancer, CloudError> {
    let body = json!({"loadbalancer": new});
    session.post(SERVICE, &["loadbalancers"], body).under("loadbalancer").await
}

/// The load balancer with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<LoadBalancer>, CloudError> {
    session.get(SERVICE, &["loadbalancers", id]).find_under("loadbalancer").await
}

/// Those of this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<LoadBalancer>, CloudError> {
    list(session, "name", name).await
}

/// Those with this tag: ours, and those that a cluster's own cloud provider made, if it was told to.
pub async fn tagged(session: &Session, tag: &str) -> Result<Vec<LoadBalancer>, CloudError> {
    list(session, "tags", tag).await
}

/// Those whose address is of this subnet.
pub async fn on_subnet(session: &Session, id: &str) -> Result<Vec<LoadBalancer>, CloudError> {
    list(session, "vip_subnet_id", id).await
}

async fn list(session: &Session, by: &str, value: &str) -> Result<Vec<LoadBalancer>, CloudError> {
    let call = session.get(SERVICE, &["loadbalancers"]).query(by, value);
    call.all("loadbalancers").await
}

/// Deletes a load balancer with all that it consists of, which takes its time.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.deleting(SERVICE, &["loadbalancers", id]).query("cascade", "true").done_or_gone().await
}
