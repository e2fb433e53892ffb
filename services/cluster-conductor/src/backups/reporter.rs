//! A member that shows its report token.

use cluster_core::{ClaimUuid, Cluster, GroupRole, MemberName, NodeGroup};
use cluster_store::StoreError;
use sealing::Purpose;

use crate::cluster_secrets::ClusterSecrets;
use crate::member_configs;

/// A member that shows its report token, and its cluster.
pub(super) struct Reporter {
    pub(super) member: MemberName,
    pub(super) cluster: Cluster,
    pub(super) groups: Vec<NodeGroup>,
}

impl Reporter {
    /// Finds the member that shows this token; `None` if the token is wrong, or if the member is gone or got a newer claim.
    pub(super) async fn find(
        secrets: &ClusterSecrets,
        claim: &str,
        token: &str,
    ) -> Result<Option<Reporter>, StoreError> {
        let Ok(id) = claim.parse::<ClaimUuid>() else { return Ok(None) };
        if !secrets.keyring.verify(Purpose::Report, &id.to_string(), token) {
            return Ok(None);
        }
        let Some(claim) = secrets.store.find_claim(id).await? else { return Ok(None) };
        let found = member_configs::cluster_of_claim(&secrets.store, &claim).await?;
        let Some((cluster, groups)) = found else { return Ok(None) };
        let reports = secrets.store.machines_of(cluster.id).await?;
        let is_current = reports.iter().any(|report| report.claim == id);
        Ok(is_current.then_some(Reporter { member: claim.machine, cluster, groups }))
    }

    /// Whether the member belongs to the control plane.
    pub(super) fn is_control_plane(&self) -> bool {
        let of = |group: &&NodeGroup| group.name == self.member.group;
        self.groups.iter().find(of).is_some_and(|group| group.role == GroupRole::Master)
    }
}
