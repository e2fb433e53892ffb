//! The part of a CA rotation that happens within the cluster's Kubernetes.

use cluster_core::{ClusterObservation, RotationStep, members_without_revision};
use kubernetes::{KubernetesError, cluster_info, workloads};

use super::{Answers, Nodes};

/// The namespace of the pods that every cluster needs.
const NAMESPACE: &str = "kube-system";
/// The annotation of pod templates that triggers a restart when it changes.
const ANNOTATION: &str = "bedplate/authorities";

impl Nodes<'_> {
    /// Once all members hold a revision that changes the trusted CAs, restarts the pods in kube-system, because they read the
    /// CAs at their start. Also updates the CAs that joining nodes trust.
    pub(super) async fn renew_trust(&self, seen: &mut ClusterObservation) {
        let now = self.spec.cluster.authorities;
        let is_due = !now.is_settled()
            && now.has_to_renew()
            && members_without_revision(self.spec, seen).is_empty();
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
                seen.authorities.trouble = Some(format!("restarting {}", left.join(", ")));
            }
            Err(error) => {
                tracing::warn!(
                    "cannot publish the new certificate authorities in the cluster: {error}"
                );
                seen.authorities.trouble = Some(error.to_string());
            }
        }
    }

    /// Returns what is not updated yet.
    async fn renew(&self, answers: &Answers) -> Result<Vec<String>, KubernetesError> {
        let (cluster, client) = (self.spec.cluster, &answers.client);
        let trusted = match self.secrets.pki(cluster).await {
            Ok(pki) => pki.cluster.certificate,
            Err(error) => {
                tracing::error!("cannot read the cluster's keys: {error}");
                return Ok(vec!["cluster-info".to_owned()]);
            }
        };
        if cluster.authorities.step() == RotationStep::TrustNew {
            cluster_info::set_authority(client, &trusted).await?;
        }
        if !cluster_info::pods_trust(client, NAMESPACE, &trusted).await? {
            return Ok(vec!["kube-root-ca.crt".to_owned()]);
        }
        let revision = cluster.authorities.revision.to_string();
        workloads::restart(client, NAMESPACE, ANNOTATION, &revision).await
    }
}
