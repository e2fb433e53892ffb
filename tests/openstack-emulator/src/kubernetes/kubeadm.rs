//! The objects that `kubeadm init` creates in a new cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::state::{Objects, place};
use crate::object::ReadFields;

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const JOINING: &str = "system:bootstrappers:kubeadm:default-node-token";

/// Initialises the cluster for its first control-plane member. For later members the cluster is initialised already.
pub(super) fn initialise(objects: &mut Objects, release: &str, init: &Value, cluster: &Value) {
    if !objects.release.is_empty() {
        return;
    }
    objects.release = release.to_owned();
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        objects.put(place("v1", "namespaces", "", name), json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"kubernetes.io/metadata.name": name}}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}));
    }
    let text = cluster.to_string();
    objects.put(
        place("v1", "configmaps", "kube-system", "kubeadm-config"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"ClusterConfiguration": text}}),
    );
    let nodes = "system:certificates.k8s.io:certificatesigningrequests";
    for (name, role, group) in [
        ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper".to_owned(), JOINING),
        ("kubeadm:node-autoapprove-bootstrap", format!("{nodes}:nodeclient"), JOINING),
        (
            "kubeadm:node-autoapprove-certificate-rotation",
            format!("{nodes}:selfnodeclient"),
            "system:nodes",
        ),
    ] {
        objects.put(place(RBAC, "clusterrolebindings", "", name), json!({
            "apiVersion": RBAC, "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "Group", "name": group}],
        }));
    }
    for token in init.list("bootstrapTokens").iter() {
        put_token(objects, token);
    }
}

fn put_token(objects: &mut Objects, token: &Value) {
    let Some((id, secret)) = token["token"].as_str().and_then(|it| it.split_once('.')) else {
        return;
    };
    let words = |key: &str| token.list(key).iter().filter_map(Value::as_str);
    let data = |text: &str| json!(STANDARD.encode(text));
    let mut all = json!({"token-id": data(id), "token-secret": data(secret)});
    for usage in words("usages") {
        all[format!("usage-bootstrap-{usage}")] = data("true");
    }
    all["auth-extra-groups"] = data(&words("groups").collect::<Vec<_>>().join(","));
    let ttl = token["ttl"].as_str().and_then(|ttl| ttl.parse::<SignedDuration>().ok());
    let ttl = ttl.unwrap_or(SignedDuration::from_hours(24));
    if !ttl.is_zero()
        && let Ok(end) = Timestamp::now().checked_add(ttl)
    {
        all["expiration"] = data(&end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    let at = place("v1", "secrets", "kube-system", &format!("bootstrap-token-{id}"));
    let object = json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "data": all});
    objects.put(at, object);
}
