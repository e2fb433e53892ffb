//! What a rotation of the authorities asks of a cluster's Kubernetes.

use cluster_core::{RotationStep, Seen, waiting};
use kubernetes::{KubernetesError, cluster_info, workloads};

use super::{Answers, Nodes};

/// Where what every cluster needs runs.
const NAMESPACE: &str = "kube-system";
/// What pods of a template are of another revision by.
const ANNOTATION: &str = "bedplate/authorities";

impl Nodes<'_> {
    /// Once all machines hold a revision that changes whom pods trust, has those of kube-system started again, for they read that once;
    /// and tells machines to come whom to believe.
    pub(super) async fn renew_trust(&self, seen: &mut Seen) {
        let now = self.spec.cluster.authorities;
        let is_due = !now.is_settled() && now.has_to_renew() && waiting(self.spec, seen).is_empty();
        if !is_due {
            return;
        }
        let Some(answers) = &self.answers else {
            seen.authorities.trouble = Some("the cluster's API does not answer".to_owned());
            return;
        };
        match self.renew(answers).await {
            Ok(left) if left.is_empty() => seen.authorities.renewed = Some(now.revision),
            Ok(left) => {
                seen.authorities.trouble = Some(format!("{} is started again", left.join(", ")));
            }
            Err(error) => {
                tracing::warn!("cannot make the new authorities known in the cluster: {error}");
                seen.authorities.trouble = Some(error.to_string());
            }
        }
    }

    /// What is not yet as it should be.
    async fn renew(&self, answers: &Answers) -> Result<Vec<String>, KubernetesError> {
        let (cluster, client) = (self.spec.cluster, &answers.client);
        let trusted = match self.world.pki(cluster).await {
            Ok(pki) => pki.cluster.certificate,
            Err(error) => {
                tracing::error!("the cluster's keys cannot be read: {error}");
                return Ok(vec!["cluster-info".to_owned()]);
            }
        };
        if cluster.authorities.step() == RotationStep::TrustNew {
            cluster_info::set_authority(client, &trusted).await?;
        }
        if !cluster_info::pods_believe(client, NAMESPACE, &trusted).await? {
            return Ok(vec!["kube-root-ca.crt".to_owned()]);
        }
        let revision = cluster.authorities.revision.to_string();
        workloads::restart(client, NAMESPACE, ANNOTATION, &revision).await
    }
}
