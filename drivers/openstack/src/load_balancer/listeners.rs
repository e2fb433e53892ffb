//! Listeners: what a load balancer takes, and where it goes.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::pools::NewPool;
use super::{ProvisioningStatus, SERVICE};
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Listener {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// How far it is.
    pub provisioning_status: ProvisioningStatus,
    /// `TCP`, `UDP`, `HTTP` …
    #[serde(default)]
    pub protocol: String,
    /// The port number.
    #[serde(default)]
    pub protocol_port: u16,
    /// The pool that serves it.
    #[serde(default)]
    pub default_pool_id: Option<String>,
    /// Who may come: `10.0.0.0/8`. Everyone if empty.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub allowed_cidrs: Vec<String>,
}

/// A listener to be made, as part of a load balancer or on its own.
#[derive(Clone, Debug, Serialize)]
pub struct NewListener {
    /// Its name. Derive it from what it is for: it is how it is found again.
    pub name: String,
    /// `TCP`, `UDP`, `HTTP` …
    pub protocol: String,
    /// The port number, which no other listener of its load balancer and protocol has.
    pub protocol_port: u16,
    /// Who may come: `10.0.0.0/8`. Everyone if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_cidrs: Vec<String>,
    /// How long a silent client is borne, in milliseconds; as the cloud likes if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_client_data: Option<u32>,
    /// How long a silent member is borne, in milliseconds; as the cloud likes if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_member_data: Option<u32>,
    /// The pool that serves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool: Option<NewPool>,
}

/// Adds a listener to a load balancer; its pool comes by itself, with [`pools::create`](super::pools::create).
///
/// A conflict says that its port number is taken, by itself perhaps: look for it by [`find`].
pub async fn create(
    session: &Session,
    load_balancer_id: &str,
    new: &NewListener,
) -> Result<Listener, CloudError> {
    let mut listener = json!(new);
    listener["loadbalancer_id"] = Value::String(load_balancer_id.to_owned());
    if let Some(object) = listener.as_object_mut() {
        object.remove("default_pool");
    }
    let body = json!({"listener": listener});
    session.post(SERVICE, &["listeners"], body).under("listener").await
}

/// The listener with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Listener>, CloudError> {
    session.get(SERVICE, &["listeners", id]).find_under("listener").await
}

/// Those of this name, of this load balancer.
pub async fn find(
    session: &Session,
    load_balancer_id: &str,
    name: &str,
) -> Result<Vec<Listener>, CloudError> {
    let call = session.get(SERVICE, &["listeners"]).query("load_balancer_id", load_balancer_id);
    call.query("name", name).all("listeners").await
}

/// Sets who may come; everyone if empty.
pub async fn set_allowed_cidrs(
    session: &Session,
    id: &str,
    cidrs: &[String],
) -> Result<Listener, CloudError> {
    let body = json!({"listener": {"allowed_cidrs": cidrs}});
    session.put(SERVICE, &["listeners", id], body).under("listener").await
}

/// Deletes a listener; its pool stays.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["listeners", id]).await
}
