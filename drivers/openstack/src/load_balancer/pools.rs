//! Pools: the members behind a listener.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::monitors::NewMonitor;
use super::{ProvisioningStatus, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// A pool of members.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Pool {
    pub id: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    pub provisioning_status: ProvisioningStatus,
    /// `TCP`, `PROXY`, `HTTP` …
    #[serde(default)]
    pub protocol: String,
    #[serde(default)]
    pub healthmonitor_id: Option<String>,
}

/// A member of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Member {
    pub id: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    pub provisioning_status: ProvisioningStatus,
    /// The result of health checks: `ONLINE`, `ERROR`, `NO_MONITOR` …
    #[serde(default)]
    pub operating_status: String,
    pub address: IpAddr,
    #[serde(default)]
    pub protocol_port: u16,
}

/// A pool to create, as part of a load balancer or separately.
#[derive(Clone, Debug, Serialize)]
pub struct NewPool {
    /// Derive the name from the pool's purpose: the pool is found again by its name.
    pub name: String,
    /// `TCP`, `PROXY`, `HTTP` …
    pub protocol: String,
    /// `ROUND_ROBIN`, `LEAST_CONNECTIONS`, `SOURCE_IP`; OVN's driver supports only `SOURCE_IP_PORT`.
    pub lb_algorithm: String,
    pub members: Vec<NewMember>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthmonitor: Option<NewMonitor>,
}

/// A member to add to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewMember {
    pub name: String,
    /// Address and port number identify the member.
    pub address: IpAddr,
    pub protocol_port: u16,
    /// The subnet from which the member is reached; `None` is the load balancer's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
}

/// Creates a pool for a listener, without members and monitor.
///
/// A conflict means that the listener has a pool, possibly this one: look with [`find`].
pub async fn create(session: &Session, listener_id: &str, new: &NewPool) -> Result<Pool> {
    let mut pool = json!(new);
    if let Some(object) = pool.as_object_mut() {
        object.remove("members");
        object.remove("healthmonitor");
        object.insert("listener_id".to_owned(), Value::String(listener_id.to_owned()));
    }
    session.post(SERVICE, &["pools"], json!({"pool": pool})).under("pool").await
}

/// Returns the pool with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Pool>> {
    session.get(SERVICE, &["pools", id]).find_under("pool").await
}

/// Returns the pools of this load balancer with this name.
pub async fn find(session: &Session, load_balancer_id: &str, name: &str) -> Result<Vec<Pool>> {
    let call = session.get(SERVICE, &["pools"]).query("loadbalancer_id", load_balancer_id);
    call.query("name", name).all("pools").await
}

/// Lists the members of a pool.
pub async fn members(session: &Session, id: &str) -> Result<Vec<Member>> {
    session.get(SERVICE, &["pools", id, "members"]).all("members").await
}

/// Replaces all members at once: a member with the same address and port number is kept, others are added and removed.
pub async fn set_members(session: &Session, id: &str, members: &[NewMember]) -> Result<()> {
    let body = json!({"members": members});
    session.put(SERVICE, &["pools", id, "members"], body).done().await
}

/// Deletes a pool with its members and its monitor.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["pools", id]).await
}
