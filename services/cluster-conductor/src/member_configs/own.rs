//! A user's own Ignition config for the servers of a node group, which replaces the bootstrap config.

use cluster_core::{Cluster, NodeGroup};
use cluster_store::Store;
use ignition::{Document, DocumentError, Limits};

use super::{MemberConfigError, Result};
use crate::cluster_secrets::{ClusterSecrets, KeysError};
use crate::vm_user_data::ignition_config;

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

/// Stores a config for servers of this group that are created from now on. The config is sealed, because it may contain secrets. Returns its
/// version.
pub(crate) async fn set_own_config(
    secrets: &ClusterSecrets,
    cluster: &Cluster,
    group: &NodeGroup,
    text: &str,
) -> Result<String, OwnConfigError> {
    let document = Document::parse(text, Limits::default())?;
    let name = name(group);
    let sealed = secrets.keyring.seal(&place(cluster, &name), document.json().as_bytes());
    let sealed = sealed.map_err(KeysError::Seal)?;
    secrets.store.save_secret(cluster.id, &name, &sealed).await.map_err(KeysError::Store)?;
    Ok(document.version().to_owned())
}

/// Deletes the config of a group, if it has one.
pub(crate) async fn remove_own_config(
    store: &Store,
    cluster: &Cluster,
    group: &NodeGroup,
) -> Result<(), OwnConfigError> {
    let removed = store.delete_secret(cluster.id, &name(group)).await;
    Ok(removed.map_err(KeysError::Store)?)
}

/// Whether the group has a config of its own.
pub(crate) async fn has_own_config(
    store: &Store,
    cluster: &Cluster,
    group: &NodeGroup,
) -> Result<bool, OwnConfigError> {
    let found = store.find_secret(cluster.id, &name(group)).await;
    Ok(found.map_err(KeysError::Store)?.is_some())
}

/// Returns the config that replaces the bootstrap config of this group. The SSH key of the cluster's owner is added, as Nova adds a keypair.
pub(super) async fn own_config(
    secrets: &ClusterSecrets,
    cluster: &Cluster,
    group: &NodeGroup,
) -> Result<Option<Document>> {
    let name = name(group);
    let Some(sealed) = secrets.store.find_secret(cluster.id, &name).await? else { return Ok(None) };
    let opened = secrets.keyring.open_sealed(&place(cluster, &name), &sealed)?;
    let own = String::from_utf8_lossy(&opened);
    let read = match &cluster.ssh_key {
        None => Document::parse(&own, Limits::default()),
        Some(key) => {
            let with_key = ignition_config(std::slice::from_ref(key), Some(own.as_bytes()));
            Document::parse(&String::from_utf8_lossy(&with_key), Limits::default())
        }
    };
    Ok(Some(read.map_err(MemberConfigError::OwnConfig)?))
}

/// The name contains the group's id, so that a later group of the same name does not inherit the config.
fn name(group: &NodeGroup) -> String {
    format!("ignition/{}", group.id)
}

fn place(cluster: &Cluster, name: &str) -> String {
    format!("{}/{name}", cluster.id)
}
