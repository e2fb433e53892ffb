//! Monitors: how a pool learns which of its members answer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ProvisioningStatus, SERVICE};
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// A monitor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Monitor {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// How far it is.
    pub provisioning_status: ProvisioningStatus,
    /// `TCP`, `HTTP`, `HTTPS`, `TLS-HELLO` …
    #[serde(default, rename = "type")]
    pub kind: String,
}

/// A monitor to be made, as part of a load balancer or on its own.
#[derive(Clone, Debug, Serialize)]
pub struct NewMonitor {
    /// Its name.
    pub name: String,
    /// `TCP`, `HTTP`, `HTTPS`, `TLS-HELLO` …
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds between two looks.
    pub delay: u32,
    /// Seconds an answer may take; less than `delay`.
    pub timeout: u32,
    /// How many good answers bring a member back.
    pub max_retries: u32,
    /// How many bad ones take it out.
    pub max_retries_down: u32,
    /// What HTTP asks for; `/` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// What a good answer is: `200`, `200-204`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_codes: Option<String>,
}

/// Gives a pool a monitor. A conflict says that it has one.
pub async fn create(
    session: &Session,
    pool_id: &str,
    new: &NewMonitor,
) -> Result<Monitor, CloudError> {
    let mut monitor = json!(new);
    monitor["pool_id"] = Value::String(pool_id.to_owned());
    let body = json!({"healthmonitor": monitor});
    session.post(SERVICE, &["healthmonitors"], body).under("healthmonitor").await
}

/// The monitor with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Monitor>, CloudError> {
    session.get(SERVICE, &["healthmonitors", id]).find_under("healthmonitor").await
}

/// That of a pool, if it has one.
pub async fn find(session: &Session, pool_id: &str) -> Result<Option<Monitor>, CloudError> {
    let call = session.get(SERVICE, &["healthmonitors"]).query("pool_id", pool_id);
    Ok(call.all("healthmonitors").await?.pop())
}

/// Deletes a monitor.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["healthmonitors", id]).await
}
