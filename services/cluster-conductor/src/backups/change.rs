//! Changes the record of a cluster for the request of a member.

use cluster_core::{Cluster, ClusterUuid, Event};
use cluster_store::{ClusterChange, StoreError};

use crate::context::ConductorContext;

/// How often a change of a cluster is tried while others change the cluster too.
const ATTEMPTS: usize = 8;

/// The record of a cluster after an attempt to change it.
pub(super) enum Changed {
    Yes(Cluster),
    /// Nothing had to change.
    No(Cluster),
    /// The cluster is deleted.
    Gone,
}

/// Changes the record of a cluster, in competition with the turns of the cluster and with requests.
pub(super) async fn change(
    context: &ConductorContext,
    cluster: ClusterUuid,
    decide: impl Fn(&Cluster) -> Option<(Cluster, Vec<Event>)>,
) -> Result<Changed, StoreError> {
    for _ in 0..ATTEMPTS {
        let Some(cluster) = context.cluster(cluster).await? else { return Ok(Changed::Gone) };
        let Some((changed, events)) = decide(&cluster) else { return Ok(Changed::No(cluster)) };
        let change = ClusterChange { events, ..ClusterChange::of(changed) };
        match context.store.change_cluster(&change).await {
            Err(StoreError::Stale) => {}
            written => return written.map(Changed::Yes),
        }
    }
    Err(StoreError::Stale)
}
