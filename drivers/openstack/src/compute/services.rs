//! Compute services: what runs on each host, whether it reports, and whether it takes servers. For administrators.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::{MICROVERSION, SERVICE};
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

lenient::words! {
    /// Whether a service reports.
    State {
        /// It did lately.
        Up = "up",
        /// It did not for a while, or was said to be down.
        Down = "down",
    }
}

lenient::words! {
    /// Whether a service is used.
    Status {
        /// It is.
        Enabled = "enabled",
        /// Nothing new is given to it.
        Disabled = "disabled",
    }
}

/// A service of Nova's on a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ComputeService {
    /// Its id.
    pub id: String,
    /// What runs: `nova-compute`.
    pub binary: String,
    /// On which host.
    pub host: String,
    /// The host's availability zone.
    #[serde(default)]
    pub zone: Option<String>,
    /// Whether it reports.
    pub state: State,
    /// Whether it is used.
    pub status: Status,
    /// When it last reported, by the cloud's clock.
    #[serde(default, deserialize_with = "lenient::time")]
    pub updated_at: Option<Timestamp>,
    /// Why it is disabled, if it is and somebody said.
    #[serde(default)]
    pub disabled_reason: Option<String>,
}

/// Every `nova-compute`, by the names of their hosts.
pub async fn list_compute(session: &Session) -> Result<Vec<ComputeService>, CloudError> {
    let call = session.get(SERVICE, &["os-services"]).microversion(MICROVERSION);
    let mut found: Vec<ComputeService> =
        call.query("binary", "nova-compute").under("services").await?;
    found.retain(|one| one.binary == "nova-compute");
    found.sort_by(|one, other| one.host.cmp(&other.host));
    Ok(found)
}

/// The `nova-compute` on the host of this name.
pub async fn find_compute(
    session: &Session,
    host: &str,
) -> Result<Option<ComputeService>, CloudError> {
    let call = session.get(SERVICE, &["os-services"]).microversion(MICROVERSION);
    let call = call.query("host", host).query("binary", "nova-compute");
    let found: Vec<ComputeService> = call.under("services").await?;
    Ok(found.into_iter().find(|one| one.host == host && one.binary == "nova-compute"))
}

/// Has it be given servers.
pub async fn enable(session: &Session, id: &str) -> Result<(), CloudError> {
    let body = json!({"status": "enabled"});
    let call = session.put(SERVICE, &["os-services", id], body).microversion(MICROVERSION);
    call.done().await
}

/// Has it be given no more servers. Those it has stay.
pub async fn disable(session: &Session, id: &str, reason: &str) -> Result<(), CloudError> {
    let body = json!({"status": "disabled", "disabled_reason": reason});
    let call = session.put(SERVICE, &["os-services", id], body).microversion(MICROVERSION);
    call.done().await
}

/// Forgets a service whose host is gone, the host's resource provider, and in which aggregates it was. Nova refuses that while servers are
/// on it.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    let call = session.deleting(SERVICE, &["os-services", id]).microversion(MICROVERSION);
    call.done_or_gone().await
}
