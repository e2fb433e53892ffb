//! Deletes the objects of backups that are no longer kept.

use std::time::Duration;

use cluster_core::{BackupUuid, Cluster, backups_to_delete};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::backups::delete_objects;
use crate::causes::chain;
use crate::context::ConductorContext;

/// How long the store may take to delete a backup. The rest of the turn waits for it, and repairs nothing meanwhile.
const DELETE_TIMEOUT: Duration = Duration::from_secs(30);

/// Deletes the objects that are due. Returns the backups of which the store has nothing any more.
pub(super) async fn delete(context: &ConductorContext, cluster: &Cluster) -> Vec<BackupUuid> {
    let due = backups_to_delete(cluster, (context.settings.clock)());
    let Some(store) = &context.backup_store else {
        warn!(
            "cannot delete {} backups of cluster {}: clusterd has no store for backups ([backups] in its configuration)",
            due.len(),
            cluster.id
        );
        return Vec::new();
    };
    let mut deleted = Vec::with_capacity(due.len());
    for backup in due {
        let fence = context.membership.fence();
        let deletion = timeout(DELETE_TIMEOUT, delete_objects(store, cluster.id, backup));
        match fence.hold(deletion).await {
            Ok(Ok(())) => {
                info!("deleted backup {backup} of cluster {}", cluster.id);
                deleted.push(backup);
            }
            Ok(Err(error)) => warn!("{}", chain(&error)),
            Err(_) => {
                warn!("the store of backups does not answer; a later turn deletes backup {backup}");
                return deleted;
            }
        }
    }
    deleted
}
