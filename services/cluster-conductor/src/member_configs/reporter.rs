//! The member that sends a report, found by its claim.

use cluster_core::{ClaimUuid, Cluster, MemberName, NodeGroup};
use cluster_store::Store;

use super::Result;
use super::redeem::of;

/// A member that uses its newest claim, with its cluster as it is now.
pub(super) struct Reporter {
    pub(super) machine: MemberName,
    pub(super) cluster: Cluster,
    pub(super) groups: Vec<NodeGroup>,
}

/// Returns the member with this claim, if both still exist. A member that got a newer claim no longer uses this one.
pub(super) async fn find_reporter(store: &Store, id: ClaimUuid) -> Result<Option<Reporter>> {
    let Some(claim) = store.find_claim(id).await? else { return Ok(None) };
    let Some((cluster, groups)) = of(store, &claim).await? else { return Ok(None) };
    let is_used = store.machines_of(cluster.id).await?.iter().any(|report| report.claim == id);
    Ok(is_used.then_some(Reporter { machine: claim.machine, cluster, groups }))
}
