//! The part of a reboot that happens within the cluster's Kubernetes.

use cluster_core::{ClusterObservation, RebootPhase, machine_name};

use super::Nodes;
use crate::cloud::Result;

impl Nodes<'_> {
    /// Uncordons the Kubernetes node of a member that has rebooted, or could not be drained, so that it gets pods again.
    pub(crate) async fn end_reboot(&self, seen: &mut ClusterObservation) -> Result<()> {
        let (cluster, answers) = (self.spec.cluster, self.answers.as_ref());
        let is_over = |phase| matches!(phase, RebootPhase::Ended | RebootPhase::Failed);
        let reboot = cluster.reboot.as_ref().filter(|it| is_over(it.phase));
        let (Some(reboot), Some(answers)) = (reboot, answers) else { return Ok(()) };
        let name = machine_name(cluster, &reboot.machine);
        if answers.nodes.iter().any(|node| node.name == name) {
            kubernetes::nodes::uncordon(&answers.client, &name).await?;
        }
        seen.uncordoned = Some(reboot.machine.clone());
        Ok(())
    }
}
