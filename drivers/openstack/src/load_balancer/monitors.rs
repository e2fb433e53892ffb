//! Monitors: the health checks of a pool's members.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ProvisioningStatus, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// A health monitor of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Monitor {
    pub id: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    pub provisioning_status: ProvisioningStatus,
    /// `TCP`, `HTTP`, `HTTPS`, `TLS-HELLO` …
    #[serde(default, rename = "type")]
    pub kind: String,
}

/// A monitor to create, as part of a load balancer or separately.
#[derive(Clone, Debug, Serialize)]
pub struct NewMonitor {
    pub name: String,
    /// `TCP`, `HTTP`, `HTTPS`, `TLS-HELLO` …
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds between two checks.
    pub delay: u32,
    /// Seconds until a check fails; less than `delay`.
    pub timeout: u32,
    /// Successful checks until a member is used again.
    pub max_retries: u32,
    /// Failed checks until a member is no longer used.
    pub max_retries_down: u32,
    /// Path of an HTTP check; `None` is `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// Successful HTTP statuses: `200`, `200-204`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_codes: Option<String>,
}

/// Adds a monitor to a pool. A conflict means that the pool has one.
pub async fn create(session: &Session, pool_id: &str, new: &NewMonitor) -> Result<Monitor> {
    let mut monitor = json!(new);
    monitor["pool_id"] = Value::String(pool_id.to_owned());
    let body = json!({"healthmonitor": monitor});
    session.post(SERVICE, &["healthmonitors"], body).under("healthmonitor").await
}

/// Returns the monitor with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Monitor>> {
    session.get(SERVICE, &["healthmonitors", id]).find_under("healthmonitor").await
}

/// Returns the monitor of a pool.
pub async fn find(session: &Session, pool_id: &str) -> Result<Option<Monitor>> {
    let call = session.get(SERVICE, &["healthmonitors"]).query("pool_id", pool_id);
    Ok(call.all("healthmonitors").await?.pop())
}

/// Deletes a monitor.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["healthmonitors", id]).await
}
