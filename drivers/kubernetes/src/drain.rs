//! Drains a node, pass by pass.

use reqwest::StatusCode;
use serde_json::json;

use crate::apply::resource;
use crate::client::{Body, Client};
use crate::error::{KubernetesError, Result};
use crate::pods::{Pod, PodName};
use crate::{nodes, object};

/// The annotation of a mirror pod, which a kubelet creates for a pod from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The cause in a refusal that comes from a `PodDisruptionBudget`.
const BUDGET: &str = "DisruptionBudget";

/// The pods that are left on a node after a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemainingPods {
    /// Pods that were evicted in this pass.
    pub evicted: Vec<PodName>,
    /// Pods that were evicted earlier and still exist. If the kubelet is dead, they exist until the node is deleted.
    pub leaving: Vec<PodName>,
    /// Pods that were not evicted: a `PodDisruptionBudget` blocks the eviction for now, or the server failed.
    pub held: Vec<BlockedPod>,
}

/// A pod that was not evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedPod {
    pub pod: PodName,
    /// The reason, in the server's words.
    pub reason: String,
}

impl RemainingPods {
    /// Whether the node is empty.
    pub fn is_empty(&self) -> bool {
        let RemainingPods { evicted, leaving, held } = self;
        evicted.is_empty() && leaving.is_empty() && held.is_empty()
    }
}

/// Runs one pass: cordons the node and evicts its pods, as far as their budgets allow.
///
/// All pods are evicted, also those without a controller and those with data in `emptyDir`, because the member is about to be deleted.
/// Exceptions are pods of DaemonSets, mirror pods, and pods that have ended.
pub async fn drain(client: &Client, node: &str) -> Result<RemainingPods> {
    nodes::cordon(client, node).await?;
    let here = [("fieldSelector", format!("spec.nodeName={node}"))];
    let pods: Vec<Pod> = object::list(client, &["api", "v1", "pods"], &here).await?;
    let mut left = RemainingPods::default();
    for pod in pods.iter().filter(|pod| must_go(pod)) {
        if pod.metadata.deletion_timestamp.is_some() {
            left.leaving.push(pod.pod_name());
            continue;
        }
        match evict(client, pod).await {
            Ok(()) => left.evicted.push(pod.pod_name()),
            Err(error) if error.is_not_found() => {}
            Err(error) if is_for_this_pod(&error) => {
                let reason = error.refusal().map(|it| it.message.clone()).unwrap_or_default();
                left.held.push(BlockedPod { pod: pod.pod_name(), reason });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(left)
}

fn must_go(pod: &Pod) -> bool {
    let mut owners = pod.metadata.owner_references.iter();
    let of_daemon_set = owners.any(|owner| owner.controller && owner.kind == "DaemonSet");
    let mirror = pod.metadata.annotations.contains_key(MIRROR);
    !of_daemon_set && !mirror && !pod.has_ended()
}

/// Whether a refusal concerns only this pod, so that others can still be evicted.
fn is_for_this_pod(error: &KubernetesError) -> bool {
    match error {
        // An overloaded server answers 429 too.
        KubernetesError::Busy { answer, .. } => {
            answer.status == StatusCode::TOO_MANY_REQUESTS
                && answer.causes.iter().any(|it| it == BUDGET)
        }
        // A pod with two budgets gives a 500, a pod that has just changed a 409.
        KubernetesError::Failed(_) | KubernetesError::Conflict(_) => true,
        KubernetesError::Unreachable { .. }
        | KubernetesError::Untrusted { .. }
        | KubernetesError::Unauthorized(_)
        | KubernetesError::Forbidden(_)
        | KubernetesError::NotFound(_)
        | KubernetesError::Exists(_)
        | KubernetesError::Refused(_)
        | KubernetesError::Malformed { .. }
        | KubernetesError::NoSuchKind { .. }
        | KubernetesError::Etcd { .. }
        | KubernetesError::InvalidName { .. } => false,
    }
}

async fn evict(client: &Client, pod: &Pod) -> Result<()> {
    // `policy/v1` evicts from 1.22 on, `policy/v1beta1` up to 1.24. The server reports which one it has.
    let offered = resource(client, "v1", |it| it.name == "pods/eviction").await?;
    let version = offered.map(|it| it.version).filter(|it| !it.is_empty());
    let version = version.as_deref().unwrap_or("v1");
    let PodName { namespace, name } = pod.pod_name();
    // A pod of the same name may have started on another node since the list was read.
    let options = json!({"preconditions": {"uid": pod.metadata.uid}});
    let body = json!({
        "apiVersion": format!("policy/{version}"),
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": options,
    });
    let path = ["api", "v1", "namespaces", &namespace, "pods", &name, "eviction"];
    client.post(&path).body(Body::Json(body)).done().await
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn pod(metadata: Value, phase: &str) -> Pod {
        serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap()
    }

    #[test]
    fn pods_that_belong_to_the_node_stay() {
        let owned = |kind: &str| json!({"name": "p", "ownerReferences": [{"kind": kind, "controller": true}]});
        assert!(!must_go(&pod(owned("DaemonSet"), "Running")));
        assert!(!must_go(&pod(
            json!({"name": "etcd-cp-1", "annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [{"kind": "Node", "controller": true}]}),
            "Running",
        )));
        assert!(!must_go(&pod(owned("Job"), "Succeeded")));
        assert!(!must_go(&pod(json!({"name": "p"}), "Failed")));
        for phase in ["Running", "Pending", "Unknown"] {
            assert!(must_go(&pod(owned("ReplicaSet"), phase)));
            assert!(must_go(&pod(json!({"name": "p"}), phase)), "nobody's, too");
        }
    }
}
