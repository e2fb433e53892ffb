//! Somebody's own config for the machines of a node group, in place of what would make them nodes.

use cluster_core::{Cluster, NodeGroup};
use ignition::{Document, DocumentError, Limits};

use super::MachinesError;
use crate::handle::{Conductor, KeysError, World};

/// Why a config is not kept for a group.
#[derive(Debug, thiserror::Error)]
pub enum OwnConfigError {
    /// It is none that a machine would take.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It cannot be kept.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

impl Conductor {
    /// Keeps a config for machines of this group that are asked for from now on; sealed, for it may hold secrets. The
    /// answer is its version.
    pub async fn set_own_config(
        &self,
        cluster: &Cluster,
        group: &NodeGroup,
        text: &str,
    ) -> Result<String, OwnConfigError> {
        let document = Document::parse(text, Limits::default())?;
        let (world, name) = (&self.world, name(group));
        let sealed = world.keys.seal(&place(cluster, &name), document.json().as_bytes());
        let sealed = sealed.map_err(KeysError::Seal)?;
        world.store.save_secret(cluster.id, &name, &sealed).await.map_err(KeysError::Store)?;
        Ok(document.version().to_owned())
    }

    /// Forgets the config of a group, if it has one.
    pub async fn remove_own_config(
        &self,
        cluster: &Cluster,
        group: &NodeGroup,
    ) -> Result<(), OwnConfigError> {
        let removed = self.world.store.delete_secret(cluster.id, &name(group)).await;
        Ok(removed.map_err(KeysError::Store)?)
    }
}

/// The config that machines of this group get in place of ours.
pub(super) async fn own_config(
    world: &World,
    cluster: &Cluster,
    group: &NodeGroup,
) -> Result<Option<Document>, MachinesError> {
    let name = name(group);
    let Some(sealed) = world.store.find_secret(cluster.id, &name).await? else { return Ok(None) };
    let opened = world.keys.open_sealed(&place(cluster, &name), &sealed)?;
    let read = Document::parse(&String::from_utf8_lossy(&opened), Limits::default());
    Ok(Some(read.map_err(MachinesError::OwnConfig)?))
}

/// By the group's id: another group of that name is another.
fn name(group: &NodeGroup) -> String {
    format!("ignition/{}", group.id)
}

fn place(cluster: &Cluster, name: &str) -> String {
    format!("{}/{name}", cluster.id)
}
