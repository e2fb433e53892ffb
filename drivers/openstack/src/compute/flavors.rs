//! Flavors: the sizes that servers come in.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{MICROVERSION, SERVICE};
use crate::error::CloudError;
use crate::session::Session;

/// A size that servers come in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    /// Its id.
    pub id: String,
    /// Its name, which no other has.
    #[serde(default)]
    pub name: String,
    /// Processors.
    #[serde(default)]
    pub vcpus: u64,
    /// MiB.
    #[serde(default)]
    pub ram: u64,
    /// GiB; zero means as large as the image.
    #[serde(default)]
    pub disk: u64,
    /// What hosts it needs: `resources:VGPU`, `pci_passthrough:alias`, `trait:…`.
    #[serde(default)]
    pub extra_specs: BTreeMap<String, String>,
}

/// All that we may use.
pub async fn list(session: &Session) -> Result<Vec<Flavor>, CloudError> {
    let call = session.get(SERVICE, &["flavors", "detail"]).microversion(MICROVERSION);
    call.all("flavors").await
}

/// The flavor with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Flavor>, CloudError> {
    let call = session.get(SERVICE, &["flavors", id]).microversion(MICROVERSION);
    call.find_under("flavor").await
}

/// The flavor of this name or id.
pub async fn find(session: &Session, name_or_id: &str) -> Result<Option<Flavor>, CloudError> {
    let mut flavors = list(session).await?;
    let at = flavors.iter().position(|flavor| flavor.id == name_or_id);
    let at = at.or_else(|| flavors.iter().position(|flavor| flavor.name == name_or_id));
    Ok(at.map(|at| flavors.swap_remove(at)))
}
