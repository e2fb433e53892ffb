//! Hypervisors: what servers run on. For administrators.

use serde::Deserialize;

use super::services::{State, Status};
use super::{MICROVERSION, SERVICE};
use crate::error::CloudError;
use crate::session::Session;

/// A hypervisor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Hypervisor {
    /// Its id, and that of its resource provider in Placement.
    pub id: String,
    /// What it calls itself: the machine's full host name, as a rule.
    #[serde(rename = "hypervisor_hostname")]
    pub hostname: String,
    /// Whether its service reports.
    pub state: State,
    /// Whether it is given servers.
    pub status: Status,
    /// The service that looks after it.
    pub service: OfService,
}

/// The service that looks after a hypervisor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OfService {
    /// On which host.
    pub host: String,
}

/// The hypervisor of the compute service on the host of this name.
///
/// A host is listed once the cloud has discovered it into a cell, and calls itself by its service's name or by one that begins with that.
pub async fn find_by_host(session: &Session, host: &str) -> Result<Option<Hypervisor>, CloudError> {
    Ok(like(session, host).await?.into_iter().find(|one| one.service.host == host))
}

/// The hypervisor of this name.
pub async fn find(session: &Session, name: &str) -> Result<Option<Hypervisor>, CloudError> {
    Ok(like(session, name).await?.into_iter().find(|one| one.hostname == name))
}

/// Those whose names contain this: what Nova finds since 2.53.
async fn like(session: &Session, part: &str) -> Result<Vec<Hypervisor>, CloudError> {
    let call = session.get(SERVICE, &["os-hypervisors", "detail"]).microversion(MICROVERSION);
    let call = call.query("hypervisor_hostname_pattern", part);
    // Nova says 404 where the pattern fits none.
    let found: Option<Vec<Hypervisor>> = call.find_under("hypervisors").await?;
    Ok(found.unwrap_or_default())
}

/// All of them.
pub async fn list(session: &Session) -> Result<Vec<Hypervisor>, CloudError> {
    let call = session.get(SERVICE, &["os-hypervisors", "detail"]).microversion(MICROVERSION);
    call.all("hypervisors").await
}
