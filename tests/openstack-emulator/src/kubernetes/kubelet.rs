//! Imitates the kubelet: joins the cluster and runs the pods of its Kubernetes node.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::auth::User;
use super::cluster::Cluster;
use super::layout::Layout;
use super::programs::{Run, run};
use super::requests;
use super::state::{Objects, place};
use crate::guest::GuestMachine;
use crate::object::ReadFields;
use crate::world::stamp;

/// How long a new Kubernetes node is NotReady.
const NOT_READY_TIME: Duration = Duration::from_millis(20);

/// Joins with a bootstrap token: requests a certificate and waits until the request is approved or denied.
pub(super) async fn bootstrap(cluster: &Cluster, name: &str, token: &str) -> Result<(), String> {
    // As `kubeadm join`, which retries while the token does not exist yet.
    let user = cluster.wait_until(|objects| User::by_token(objects, token)).await;
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{name}"));
    let pem = params.serialize_request(&key).and_then(|request| request.pem());
    let pem = pem.map_err(|error| error.to_string())?;
    let digest = Sha256::digest(&pem);
    let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let request = format!("node-csr-{digest}");
    let spec = json!({
        "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "key encipherment", "client auth"],
    });
    cluster.with(|objects| requests::ask(objects, &request, spec, &user));
    match cluster.wait_until(|objects| requests::outcome(objects, &request)).await {
        Ok(_) => Ok(()),
        Err(()) => Err(format!("certificate signing request {request} was denied")),
    }
}

/// Registers the Kubernetes node and, on a control-plane member, its static pods.
pub(super) async fn register(cluster: &Cluster, layout: &Layout, machine: &GuestMachine) {
    cluster.with(|objects| {
        let release = objects.release.clone();
        objects.register(layout.node(machine, &release));
        if layout.authority_key.is_some() {
            let address = machine.addresses.first().map_or("127.0.0.1", String::as_str);
            objects.members.up(&layout.name, address);
            mirror_pods(objects, layout);
        }
    });
    tokio::time::sleep(NOT_READY_TIME).await;
    cluster.with(|objects| objects.set_ready(&layout.name, true));
}

/// Runs the pods that are bound to this Kubernetes node, for ever.
pub(super) async fn run_pods(cluster: &Cluster, node: &str) {
    let mut changes = cluster.changes();
    loop {
        changes.mark_unchanged();
        cluster.with(|objects| tend(objects, node));
        // An error is impossible: the sender lives as long as the cluster.
        let _ = changes.changed().await;
        tokio::time::sleep(NOT_READY_TIME).await;
    }
}

fn tend(objects: &mut Objects, node: &str) {
    let is_going = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    let waits = |pod: &Value| ["Pending", ""].contains(&pod["status"].text("phase"));
    let asking = objects.places(("v1", "pods", ""), |pod| {
        pod["spec"]["nodeName"] == node && (is_going(pod) || waits(pod))
    });
    for at in asking {
        let Some(pod) = objects.shared(&at) else { continue };
        if is_going(&pod) {
            objects.remove(&at);
        } else {
            let status = match run(&mut objects.members, node, &pod) {
                Run::On => status("Running", "True"),
                Run::Ends(well, said) => {
                    let uid = pod["metadata"].text("uid");
                    objects.logs.insert(uid.to_owned(), said);
                    status(if well { "Succeeded" } else { "Failed" }, "False")
                }
            };
            objects.change(&at, |pod| pod["status"] = status);
        }
    }
}

fn status(phase: &str, ready: &str) -> Value {
    json!({"phase": phase, "startTime": stamp(), "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": stamp()}]})
}

/// Creates the mirror pods of the kubelet's static pods.
fn mirror_pods(objects: &mut Objects, layout: &Layout) {
    let node = place("v1", "nodes", "", &layout.name);
    let Some(uid) = objects.get(&node).map(|node| node["metadata"]["uid"].clone()) else { return };
    let release = objects.release.clone();
    let programs = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    for program in programs {
        let tag = if program == "etcd" { &layout.etcd_tag } else { &release };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "labels": {"component": program, "tier": "control-plane"},
                "annotations": {"kubernetes.io/config.mirror": "emulated", "kubernetes.io/config.source": "file"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": layout.name, "uid": uid, "controller": true}],
            },
            "spec": {
                "nodeName": layout.name, "hostNetwork": true, "priorityClassName": "system-node-critical", "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
                "containers": [{"name": program, "image": format!("{}/{program}:{tag}", layout.repository), "command": [program]}],
            },
            "status": status("Running", "True"),
        });
        let name = format!("{program}-{}", layout.name);
        objects.put(place("v1", "pods", "kube-system", &name), pod);
    }
}
