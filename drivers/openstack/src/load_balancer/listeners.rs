//! Listeners: the ports on which a load balancer accepts connections.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::pools::NewPool;
use super::{ProvisioningStatus, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// A listener of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Listener {
    pub id: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    pub provisioning_status: ProvisioningStatus,
    /// `TCP`, `UDP`, `HTTP` …
    #[serde(default)]
    pub protocol: String,
    #[serde(default)]
    pub protocol_port: u16,
    #[serde(default)]
    pub default_pool_id: Option<String>,
    /// The networks that may connect: `10.0.0.0/8`. Empty allows all.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub allowed_cidrs: Vec<String>,
}

/// A listener to create, as part of a load balancer or separately.
#[derive(Clone, Debug, Serialize)]
pub struct NewListener {
    /// Derive the name from the listener's purpose: the listener is found again by its name.
    pub name: String,
    /// `TCP`, `UDP`, `HTTP` …
    pub protocol: String,
    /// Must be unique for load balancer and protocol.
    pub protocol_port: u16,
    /// The networks that may connect: `10.0.0.0/8`. Empty allows all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_cidrs: Vec<String>,
    /// Timeout of a silent client in milliseconds; `None` is the cloud's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_client_data: Option<u32>,
    /// Timeout of a silent member in milliseconds; `None` is the cloud's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_member_data: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool: Option<NewPool>,
}

/// Adds a listener to a load balancer; create its pool with [`pools::create`](super::pools::create).
///
/// A conflict means that the port is in use, possibly by this listener: look with [`find`].
pub async fn create(
    session: &Session,
    load_balancer_id: &str,
    new: &NewListener,
) -> Result<Listener> {
    let mut listener = json!(new);
    listener["loadbalancer_id"] = Value::String(load_balancer_id.to_owned());
    if let Some(object) = listener.as_object_mut() {
        object.remove("default_pool");
    }
    let body = json!({"listener": listener});
    session.post(SERVICE, &["listeners"], body).under("listener").await
}

/// Returns the listener with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Listener>> {
    session.get(SERVICE, &["listeners", id]).find_under("listener").await
}

/// Returns the listeners of this load balancer with this name.
pub async fn find(session: &Session, load_balancer_id: &str, name: &str) -> Result<Vec<Listener>> {
    let call = session.get(SERVICE, &["listeners"]).query("load_balancer_id", load_balancer_id);
    call.query("name", name).all("listeners").await
}

/// Deletes a listener; its pool stays.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["listeners", id]).await
}
