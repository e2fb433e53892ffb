//! Flavors: the sizes of servers.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::session::Session;

/// A flavor, the size of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    pub id: String,
    /// Unique among flavors.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub vcpus: u64,
    /// Size of the memory in MiB.
    #[serde(default)]
    pub ram: u64,
    /// Size of the disk in GiB; 0 means the size of the image.
    #[serde(default)]
    pub disk: u64,
    /// Requirements on the host: `resources:VGPU`, `pci_passthrough:alias`, `trait:…`.
    #[serde(default)]
    pub extra_specs: BTreeMap<String, String>,
}

/// Lists all flavors that we may use.
pub async fn list(session: &Session) -> Result<Vec<Flavor>> {
    let call = session.get(SERVICE, &["flavors", "detail"]).microversion(MICROVERSION);
    call.all("flavors").await
}

/// Returns the flavor with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Flavor>> {
    let call = session.get(SERVICE, &["flavors", id]).microversion(MICROVERSION);
    call.find_under("flavor").await
}

/// Returns the flavor with this name or id.
pub async fn find(session: &Session, name_or_id: &str) -> Result<Option<Flavor>> {
    let mut flavors = list(session).await?;
    let at = flavors.iter().position(|flavor| flavor.id == name_or_id);
    let at = at.or_else(|| flavors.iter().position(|flavor| flavor.name == name_or_id));
    Ok(at.map(|at| flavors.swap_remove(at)))
}
