//! The pod that runs `etcdctl`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::progress::Progress;
use crate::client::{Body, Client};
use crate::error::{KubernetesError, Result};
use crate::lenient;
use crate::object::{self, Grace};
use crate::pods::Pod;

const NAMESPACE: &str = "kube-system";
/// The directory of kubeadm's files for etcd, among them a client certificate for maintenance.
const PKI: &str = "/etc/kubernetes/pki/etcd";
const FILES: [(&str, &str); 3] = [
    ("ca", "ca.crt"),
    ("certificate", "healthcheck-client.crt"),
    ("key", "healthcheck-client.key"),
];
/// How long the pod may run, in seconds; a second is usual.
const DEADLINE: u32 = 45;
/// The maximum age of a pod that has not ended: its kubelet will not run it any more.
const PATIENCE: Duration = Duration::from_secs(120);
/// The maximum age of an outcome.
const FRESH: Duration = Duration::from_secs(300);
/// The most bytes of output that are read.
const LONGEST_OUTPUT: &str = "262144";

pub(super) struct CommandOutcome {
    pub(super) well: bool,
    pub(super) output: String,
    trouble: String,
}

impl CommandOutcome {
    pub(super) fn failure(&self, node: &str) -> KubernetesError {
        let said = lenient::plain(self.output.lines().last().unwrap_or_default(), 300);
        let reason = if said.is_empty() { self.trouble.clone() } else { said };
        KubernetesError::Etcd { node: node.to_owned(), reason }
    }
}

/// Starts the pod called `name`, or checks its progress; deletes it once it has ended.
pub(super) async fn run(
    client: &Client,
    node: &str,
    name: &str,
    words: &[&str],
) -> Result<Progress<CommandOutcome>> {
    let path = ["api", "v1", "namespaces", NAMESPACE, "pods", name];
    let answer = match client.get(&path).send().await {
        Err(error) if error.is_not_found() => {
            begin(client, node, name, words).await?;
            return Ok(Progress::Pending);
        }
        answer => answer?,
    };
    let pod: Pod = answer.json()?;
    if pod.metadata.deletion_timestamp.is_some() {
        return Ok(Progress::Pending);
    }
    let age = age(&pod, answer.date());
    let limit = if pod.has_ended() { FRESH } else { PATIENCE };
    let remove = || object::remove(client, &path, &pod.metadata.uid, Grace::None);
    // The pod is for another member, or too old: the next call starts a new one.
    if pod.spec.node_name != node || (pod.has_ended() && age > limit) {
        remove().await?;
        return Ok(Progress::Pending);
    }
    if !pod.has_ended() {
        if age <= limit {
            return Ok(Progress::Pending);
        }
        remove().await?;
        let reason =
            format!("it did not end within {} s: {}", limit.as_secs(), pod.failure_reason());
        return Err(KubernetesError::Etcd { node: node.to_owned(), reason });
    }
    let well = pod.status.phase == "Succeeded";
    let output = match output(client, name).await {
        // The container never started, so there is no log; the kubelet's reason in the pod's status explains why.
        Err(KubernetesError::Refused(_) | KubernetesError::NotFound(_)) if !well => String::new(),
        output => output?,
    };
    remove().await?;
    Ok(Progress::Done(CommandOutcome { well, output, trouble: pod.failure_reason() }))
}

/// Computes the pod's age by the API server's clock only, because ours may differ.
fn age(pod: &Pod, now: Option<Timestamp>) -> Duration {
    let (Some(now), Some(born)) = (now, pod.metadata.creation_timestamp) else {
        return Duration::ZERO;
    };
    Duration::try_from(now.duration_since(born)).unwrap_or_default()
}

async fn output(client: &Client, name: &str) -> Result<String> {
    let path = ["api", "v1", "namespaces", NAMESPACE, "pods", name, "log"];
    let call = client.get(&path).query("limitBytes", LONGEST_OUTPUT);
    Ok(call.send().await?.text())
}

async fn begin(client: &Client, node: &str, name: &str, words: &[&str]) -> Result<()> {
    // Uses the image of the etcd pod on the same node: it is already there, and its `etcdctl` has the same version.
    let beside = format!("etcd-{node}");
    let path = ["api", "v1", "namespaces", NAMESPACE, "pods", &beside];
    let member: Option<Pod> = client.get(&path).find().await?;
    let containers = member.map(|it| it.spec.containers).unwrap_or_default();
    let Some(etcd) = containers.into_iter().find(|it| it.name == "etcd") else {
        let reason = format!("the cluster knows no pod {beside} in {NAMESPACE}");
        return Err(KubernetesError::Etcd { node: node.to_owned(), reason });
    };
    let body = body(node, name, &etcd.image, words);
    let path = ["api", "v1", "namespaces", NAMESPACE, "pods"];
    match client.post(&path).body(Body::Json(body)).done().await {
        Err(error) if error.is_already_there() => Ok(()),
        other => other,
    }
}

fn body(node: &str, name: &str, image: &str, words: &[&str]) -> Value {
    let file = |file: &str| format!("{PKI}/{file}");
    let [ca, certificate, key] = FILES.map(|(_, name)| file(name));
    let own = [
        "etcdctl",
        "--endpoints=https://127.0.0.1:2379",
        "--cacert",
        &ca,
        "--cert",
        &certificate,
        "--key",
        &key,
        "--command-timeout=10s",
        "--write-out=json",
    ];
    let command: Vec<&str> = own.into_iter().chain(words.iter().copied()).collect();
    // Three files instead of the directory, which also has the authority's key.
    let volumes = FILES.map(
        |(volume, name)| json!({"name": volume, "hostPath": {"path": file(name), "type": "File"}}),
    );
    let mounts = FILES
        .map(|(volume, name)| json!({"name": volume, "mountPath": file(name), "readOnly": true}));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/name": "etcdctl", "app.kubernetes.io/managed-by": "bedplate"},
        },
        "spec": {
            "nodeName": node,
            "hostNetwork": true,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": DEADLINE,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": "etcdctl",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": command,
                "env": [{"name": "ETCDCTL_API", "value": "3"}],
                "volumeMounts": mounts,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
            "volumes": volumes,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authoritys_key_is_not_mounted() {
        let text = body("cp-1", "p", "etcd:1", &["member", "list"]).to_string();
        assert!(!text.contains("ca.key"));
        let pod: Pod = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (pod.spec.node_name.as_str(), pod.spec.containers[0].image.as_str()),
            ("cp-1", "etcd:1")
        );
    }

    #[test]
    fn an_age_is_by_the_servers_clock() {
        let metadata = json!({"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"});
        let pod: Pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let at = |text: &str| Some(text.parse().unwrap());
        assert_eq!(age(&pod, at("2026-01-01T00:01:00Z")), Duration::from_secs(60));
        assert_eq!(age(&pod, at("2025-12-31T23:59:00Z")), Duration::ZERO);
        assert_eq!(age(&pod, None), Duration::ZERO);
    }
}
