//! Observes the control plane for a roll: the members that serve, and the version of kube-proxy.

use cluster_core::{ClusterObservation, NodeGroup, machine_name};
use kubernetes::{KubernetesError, control_plane};

use super::{Answers, Nodes};

impl Nodes<'_> {
    /// Adds the control plane to the observation. When Kubernetes does not tell, the roll waits.
    pub(super) async fn observe_control_plane(&self, seen: &mut ClusterObservation) {
        let Some(answers) = &self.answers else { return };
        if let Err(error) = self.control_plane(answers, seen).await {
            tracing::warn!("cannot observe the control plane: {error}");
        }
    }

    async fn control_plane(
        &self,
        answers: &Answers,
        seen: &mut ClusterObservation,
    ) -> Result<(), KubernetesError> {
        let serving = control_plane::serving_nodes(&answers.client).await?;
        let masters = self.spec.groups.iter().filter(|group| self.is_control_plane(group));
        let masters = masters.flat_map(NodeGroup::refs);
        let serves = |name: &str| serving.contains(name);
        seen.serving = masters.filter(|it| serves(&machine_name(self.spec.cluster, it))).collect();
        seen.kube_proxy = control_plane::kube_proxy_tag(&answers.client).await?;
        Ok(())
    }
}
