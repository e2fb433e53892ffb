//! A user's own Ignition config for the servers of a node group, which replaces the bootstrap config.

use cluster_core::{Cluster, NodeGroup};
use ignition::{Document, DocumentError, Limits};

use super::MemberConfigError;
use crate::handle::{Conductor, ConductorContext, KeysError};

/// Why a config is not stored.
#[derive(Debug, thiserror::Error)]
pub enum OwnConfigError {
    /// Not a valid Ignition config.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The config cannot be sealed or stored.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

impl Conductor {
    /// Stores a config for servers of this group that are created from now on. The config is sealed, because it may contain secrets.
    /// Returns its version.
    pub async fn set_own_config(
        &self,
        cluster: &Cluster,
        group: &NodeGroup,
        text: &str,
    ) -> Result<String, OwnConfigError> {
        let document = Document::parse(text, Limits::default())?;
        let (context, name) = (&self.context, name(group));
        let sealed = context.keys.seal(&place(cluster, &name), document.json().as_bytes());
        let sealed = sealed.map_err(KeysError::Seal)?;
        context.store.save_secret(cluster.id, &name, &sealed).await.map_err(KeysError::Store)?;
        Ok(document.version().to_owned())
    }

    /// Deletes the config of a group, if it has one.
    pub async fn remove_own_config(
        &self,
        cluster: &Cluster,
        group: &NodeGroup,
    ) -> Result<(), OwnConfigError> {
        let removed = self.context.store.delete_secret(cluster.id, &name(group)).await;
        Ok(removed.map_err(KeysError::Store)?)
    }
}

/// Returns the config that replaces the bootstrap config of this group.
pub(super) async fn own_config(
    context: &ConductorContext,
    cluster: &Cluster,
    group: &NodeGroup,
) -> Result<Option<Document>, MemberConfigError> {
    let name = name(group);
    let Some(sealed) = context.store.find_secret(cluster.id, &name).await? else { return Ok(None) };
    let opened = context.keys.open_sealed(&place(cluster, &name), &sealed)?;
    let read = Document::parse(&String::from_utf8_lossy(&opened), Limits::default());
    Ok(Some(read.map_err(MemberConfigError::OwnConfig)?))
}

/// The name contains the group's id, so that a later group of the same name does not inherit the config.
fn name(group: &NodeGroup) -> String {
    format!("ignition/{}", group.id)
}

fn place(cluster: &Cluster, name: &str) -> String {
    format!("{}/{name}", cluster.id)
}
