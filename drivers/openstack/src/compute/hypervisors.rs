//! Hypervisors, on which servers run. Administrators only.

use serde::Deserialize;

use super::services::{State, Status};
use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::session::Session;

/// A hypervisor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Hypervisor {
    /// The id of its resource provider in Placement, too.
    pub id: String,
    /// The hypervisor's own name, usually the host's full host name.
    #[serde(rename = "hypervisor_hostname")]
    pub hostname: String,
    /// Whether its compute service reports.
    pub state: State,
    /// Whether the scheduler uses the hypervisor.
    pub status: Status,
    pub service: HypervisorService,
}

/// The compute service of a hypervisor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HypervisorService {
    pub host: String,
}

/// Returns the hypervisor of the compute service on the host of this name.
///
/// A host appears once the cloud has discovered it into a cell. The hypervisor's name equals the service's host or begins with it.
pub async fn find_by_host(session: &Session, host: &str) -> Result<Option<Hypervisor>> {
    Ok(like(session, host).await?.into_iter().find(|one| one.service.host == host))
}

/// Returns the hypervisor of this name.
pub async fn find(session: &Session, name: &str) -> Result<Option<Hypervisor>> {
    Ok(like(session, name).await?.into_iter().find(|one| one.hostname == name))
}

/// Lists the hypervisors whose names contain `part`, the only search that Nova has since 2.53.
async fn like(session: &Session, part: &str) -> Result<Vec<Hypervisor>> {
    let call = session.get(SERVICE, &["os-hypervisors", "detail"]).microversion(MICROVERSION);
    let call = call.query("hypervisor_hostname_pattern", part);
    // Nova answers 404 if no hypervisor matches the pattern.
    let found: Option<Vec<Hypervisor>> = call.find_under("hypervisors").await?;
    Ok(found.unwrap_or_default())
}

/// Lists all hypervisors.
pub async fn list(session: &Session) -> Result<Vec<Hypervisor>> {
    let call = session.get(SERVICE, &["os-hypervisors", "detail"]).microversion(MICROVERSION);
    call.all("hypervisors").await
}
