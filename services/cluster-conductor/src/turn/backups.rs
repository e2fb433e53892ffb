//! Deletes the objects of backups that are no longer kept.

use cluster_core::{BackupUuid, Cluster, backups_to_delete};
use tracing::{info, warn};

use crate::backups::delete_objects;
use crate::context::ConductorContext;

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
        match fence.hold(delete_objects(store, cluster.id, backup)).await {
            Ok(()) => {
                info!("deleted backup {backup} of cluster {}", cluster.id);
                deleted.push(backup);
            }
            Err(error) => warn!("{error}: {}", source(&error)),
        }
    }
    deleted
}

fn source(error: &dyn std::error::Error) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}
