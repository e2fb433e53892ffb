//! Compute services: whether each host reports, and whether the scheduler uses it. Administrators only.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

lenient::words! {
    /// Whether a service reports.
    State {
        /// The service has reported recently.
        Up = "up",
        /// The service has not reported for a while, or was forced down.
        Down = "down",
    }
}

lenient::words! {
    /// Whether the scheduler uses a service.
    Status {
        Enabled = "enabled",
        /// The service gets no new servers.
        Disabled = "disabled",
    }
}

/// A service of Nova on a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ComputeService {
    pub id: String,
    /// Name of the program: `nova-compute`.
    pub binary: String,
    pub host: String,
    #[serde(default)]
    pub zone: Option<String>,
    pub state: State,
    pub status: Status,
    /// The time of the last report, by the cloud's clock.
    #[serde(default, deserialize_with = "lenient::time")]
    pub updated_at: Option<Timestamp>,
    /// The reason, if the service is disabled and a reason was given.
    #[serde(default)]
    pub disabled_reason: Option<String>,
}

/// Lists every `nova-compute`, sorted by host.
pub async fn list_compute(session: &Session) -> Result<Vec<ComputeService>> {
    let call = session.get(SERVICE, &["os-services"]).microversion(MICROVERSION);
    let mut found: Vec<ComputeService> =
        call.query("binary", "nova-compute").under("services").await?;
    found.retain(|one| one.binary == "nova-compute");
    found.sort_by(|one, other| one.host.cmp(&other.host));
    Ok(found)
}

/// Returns the `nova-compute` on the host of this name.
pub async fn find_compute(session: &Session, host: &str) -> Result<Option<ComputeService>> {
    let call = session.get(SERVICE, &["os-services"]).microversion(MICROVERSION);
    let call = call.query("host", host).query("binary", "nova-compute");
    let found: Vec<ComputeService> = call.under("services").await?;
    Ok(found.into_iter().find(|one| one.host == host && one.binary == "nova-compute"))
}

/// Enables a service: it gets new servers.
pub async fn enable(session: &Session, id: &str) -> Result<()> {
    let body = json!({"status": "enabled"});
    let call = session.put(SERVICE, &["os-services", id], body).microversion(MICROVERSION);
    call.done().await
}

/// Disables a service: it gets no new servers, and keeps the existing ones.
pub async fn disable(session: &Session, id: &str, reason: &str) -> Result<()> {
    let body = json!({"status": "disabled", "disabled_reason": reason});
    let call = session.put(SERVICE, &["os-services", id], body).microversion(MICROVERSION);
    call.done().await
}

/// Deletes a service whose host is gone, with its resource provider and its memberships in aggregates. Nova refuses while the host has
/// servers.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    let call = session.deleting(SERVICE, &["os-services", id]).microversion(MICROVERSION);
    call.done_or_gone().await
}
