//! Pools: who serves what a listener takes.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::monitors::NewMonitor;
use super::{ProvisioningStatus, SERVICE};
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Pool {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// How far it is.
    pub provisioning_status: ProvisioningStatus,
    /// `TCP`, `PROXY`, `HTTP` …
    #[serde(default)]
    pub protocol: String,
    /// The monitor that looks after it.
    #[serde(default)]
    pub healthmonitor_id: Option<String>,
}

/// A member of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Member {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// How far it is.
    pub provisioning_status: ProvisioningStatus,
    /// Whether it answers, by the pool's monitor: `ONLINE`, `ERROR`, `NO_MONITOR` …
    #[serde(default)]
    pub operating_status: String,
    /// Its address.
    pub address: IpAddr,
    /// The port number.
    #[serde(default)]
    pub protocol_port: u16,
}

/// A pool to be made, as part of a load balancer or on its own.
#[derive(Clone, Debug, Serialize)]
pub struct NewPool {
    /// Its name. Derive it from what it is for: it is how it is found again.
    pub name: String,
    /// `TCP`, `PROXY`, `HTTP` …
    pub protocol: String,
    /// `ROUND_ROBIN`, `LEAST_CONNECTIONS`, `SOURCE_IP`; OVN's driver knows `SOURCE_IP_PORT` alone.
    pub lb_algorithm: String,
    /// Who serves.
    pub members: Vec<NewMember>,
    /// Who looks after them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthmonitor: Option<NewMonitor>,
}

/// A member of a pool to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewMember {
    /// Its name.
    pub name: String,
    /// Its address: with the port number, what makes it this member.
    pub address: IpAddr,
    /// The port number.
    pub protocol_port: u16,
    /// The subnet that leads to it; the load balancer's own if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
}

/// Makes a pool, without members and monitor, that serves a listener.
///
/// A conflict says that the listener has one, this one perhaps: look for it by [`find`].
pub async fn create(
    session: &Session,
    listener_id: &str,
    new: &NewPool,
) -> Result<Pool, CloudError> {
    let mut pool = json!(new);
    if let Some(object) = pool.as_object_mut() {
        object.remove("members");
        object.remove("healthmonitor");
        object.insert("listener_id".to_owned(), Value::String(listener_id.to_owned()));
    }
    session.post(SERVICE, &["pools"], json!({"pool": pool})).under("pool").await
}

/// The pool with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Pool>, CloudError> {
    session.get(SERVICE, &["pools", id]).find_under("pool").await
}

/// Those of this name, of this load balancer.
pub async fn find(
    session: &Session,
    load_balancer_id: &str,
    name: &str,
) -> Result<Vec<Pool>, CloudError> {
    let call = session.get(SERVICE, &["pools"]).query("loadbalancer_id", load_balancer_id);
    call.query("name", name).all("pools").await
}

/// Who serves.
pub async fn members(session: &Session, id: &str) -> Result<Vec<Member>, CloudError> {
    session.get(SERVICE, &["pools", id, "members"]).all("members").await
}

/// Sets who serves, all at once: members are kept by address and port number, the others come and go.
pub async fn set_members(
    session: &Session,
    id: &str,
    members: &[NewMember],
) -> Result<(), CloudError> {
    let body = json!({"members": members});
    session.put(SERVICE, &["pools", id, "members"], body).done().await
}

/// Deletes a pool, its members and its monitor with it.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["pools", id]).await
}
