//! Emptying a node, pass by pass.

use reqwest::StatusCode;
use serde_json::json;

use crate::apply::resource;
use crate::client::{Body, Client};
use crate::error::KubernetesError;
use crate::pods::{Pod, PodName};
use crate::{nodes, object};

/// How a kubelet marks its account of a pod that it has from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// What a refusal says that a `PodDisruptionBudget` caused.
const BUDGET: &str = "DisruptionBudget";

/// What is left on a node after a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Told to go in this pass.
    pub evicted: Vec<PodName>,
    /// Told to go earlier, and not yet gone. Where the kubelet is dead they stay until the node is deleted.
    pub leaving: Vec<PodName>,
    /// Not told to go: a `PodDisruptionBudget` keeps them for now, or the server failed.
    pub held: Vec<Held>,
}

/// A pod that was not told to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which.
    pub pod: PodName,
    /// Why, in the server's words.
    pub reason: String,
}

impl Left {
    /// Whether the node is empty.
    pub fn is_nothing(&self) -> bool {
        let Left { evicted, leaving, held } = self;
        evicted.is_empty() && leaving.is_empty() && held.is_empty()
    }
}

/// One pass: no new pods on the node, and its pods are told to go, as far as their budgets allow.
///
/// All go, also those that nobody starts anew elsewhere and those with data in `emptyDir`, for the machine goes too; but for those of
/// DaemonSets, those the kubelet has from files, and those that have ended.
pub async fn drain(client: &Client, node: &str) -> Result<Left, KubernetesError> {
    nodes::cordon(client, node).await?;
    let here = [("fieldSelector", format!("spec.nodeName={node}"))];
    let pods: Vec<Pod> = object::list(client, &["api", "v1", "pods"], &here).await?;
    let mut left = Left::default();
    for pod in pods.iter().filter(|pod| must_go(pod)) {
        if pod.metadata.deletion_timestamp.is_some() {
            left.leaving.push(pod.called());
            continue;
        }
        match evict(client, pod).await {
            Ok(()) => left.evicted.push(pod.called()),
            Err(error) if error.is_not_found() => {}
            Err(error) if is_for_this_pod(&error) => {
                let reason = error.refusal().map(|it| it.message.clone()).unwrap_or_default();
                left.held.push(Held { pod: pod.called(), reason });
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

/// Whether a refusal concerns this pod alone, so that the others may still be told to go.
fn is_for_this_pod(error: &KubernetesError) -> bool {
    match error {
        // The server itself says 429 as well, when it has too much to do.
        KubernetesError::Busy { answer, .. } => {
            answer.status == StatusCode::TOO_MANY_REQUESTS
                && answer.causes.iter().any(|it| it == BUDGET)
        }
        // Two budgets for a pod are a 500, a pod that has just changed a 409.
        KubernetesError::Failed(_) | KubernetesError::Changed(_) => true,
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

async fn evict(client: &Client, pod: &Pod) -> Result<(), KubernetesError> {
    // `policy/v1` evicts from 1.22 on, `policy/v1beta1` up to 1.24: the server says what it has.
    let offered = resource(client, "v1", |it| it.name == "pods/eviction").await?;
    let version = offered.map(|it| it.version).filter(|it| !it.is_empty());
    let version = version.as_deref().unwrap_or("v1");
    let PodName { namespace, name } = pod.called();
    // A pod of the same name may have come up on another node since the list was made.
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
