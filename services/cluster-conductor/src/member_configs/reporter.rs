//! The member that sends a report, found by its claim.

use cluster_core::{ClaimUuid, Cluster, GroupRole, MemberName, NodeGroup};
use cluster_store::{Store, StoreError};
use sealing::Purpose;

use super::redeem::of;
use crate::cluster_secrets::ClusterSecrets;

/// A member that uses its newest claim, with its cluster as it is now.
pub(crate) struct Reporter {
    pub(crate) machine: MemberName,
    pub(crate) cluster: Cluster,
    pub(crate) groups: Vec<NodeGroup>,
}

impl Reporter {
    /// Finds the member that shows this report token; `None` if the token is wrong, or if [`find_reporter`] finds none.
    pub(crate) async fn with_token(
        secrets: &ClusterSecrets,
        claim: &str,
        token: &str,
    ) -> Result<Option<Reporter>, StoreError> {
        let Ok(id) = claim.parse::<ClaimUuid>() else { return Ok(None) };
        if !secrets.keyring.verify(Purpose::Report, &id.to_string(), token) {
            return Ok(None);
        }
        find_reporter(&secrets.store, id).await
    }

    /// Whether the member belongs to the control plane.
    pub(crate) fn is_control_plane(&self) -> bool {
        let of = |group: &&NodeGroup| group.name == self.machine.group;
        self.groups.iter().find(of).is_some_and(|group| group.role == GroupRole::Master)
    }
}

/// Returns the member with this claim, if both still exist. A member that got a newer claim no longer uses this one.
pub(super) async fn find_reporter(
    store: &Store,
    id: ClaimUuid,
) -> Result<Option<Reporter>, StoreError> {
    let Some(claim) = store.find_claim(id).await? else { return Ok(None) };
    let Some((cluster, groups)) = of(store, &claim).await? else { return Ok(None) };
    let is_used = store.machines_of(cluster.id).await?.iter().any(|report| report.claim == id);
    Ok(is_used.then_some(Reporter { machine: claim.machine, cluster, groups }))
}
