//! What resources there are.

use serde_json::{Value, json};

/// Group and version, resource, kind, whether it is namespaced, short name.
pub(super) const RESOURCES: [(&str, &str, &str, bool, &str); 31] = [
    ("v1", "nodes", "Node", false, "no"),
    ("v1", "namespaces", "Namespace", false, "ns"),
    ("v1", "pods", "Pod", true, "po"),
    ("v1", "services", "Service", true, "svc"),
    ("v1", "endpoints", "Endpoints", true, "ep"),
    ("v1", "configmaps", "ConfigMap", true, "cm"),
    ("v1", "secrets", "Secret", true, ""),
    ("v1", "serviceaccounts", "ServiceAccount", true, "sa"),
    ("v1", "events", "Event", true, "ev"),
    ("v1", "persistentvolumes", "PersistentVolume", false, "pv"),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim", true, "pvc"),
    ("apps/v1", "deployments", "Deployment", true, "deploy"),
    ("apps/v1", "daemonsets", "DaemonSet", true, "ds"),
    ("apps/v1", "statefulsets", "StatefulSet", true, "sts"),
    ("apps/v1", "replicasets", "ReplicaSet", true, "rs"),
    ("batch/v1", "jobs", "Job", true, ""),
    ("rbac.authorization.k8s.io/v1", "roles", "Role", true, ""),
    ("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding", true, ""),
    ("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", false, ""),
    ("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", false, ""),
    (
        "certificates.k8s.io/v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        false,
        "csr",
    ),
    ("storage.k8s.io/v1", "storageclasses", "StorageClass", false, "sc"),
    ("storage.k8s.io/v1", "csidrivers", "CSIDriver", false, ""),
    ("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", false, ""),
    ("coordination.k8s.io/v1", "leases", "Lease", true, ""),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", true, "pdb"),
    ("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", true, "netpol"),
    ("networking.k8s.io/v1", "ingresses", "Ingress", true, "ing"),
    ("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", false, ""),
    (
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
        "crd",
    ),
    ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", false, "pc"),
];

/// A resource's kind and whether it is namespaced.
pub(super) fn find(group: &str, resource: &str) -> Option<(&'static str, bool)> {
    let row = RESOURCES
        .iter()
        .find(|(its_group, its_name, ..)| *its_group == group && *its_name == resource);
    row.map(|(_, _, kind, namespaced, _)| (*kind, *namespaced))
}

/// `GET /api/v1` and `GET /apis/GROUP/VERSION`.
pub(super) fn resources(group: &str) -> Option<Value> {
    let verbs = ["create", "delete", "get", "list", "patch", "update"];
    let mut all = Vec::new();
    for (_, name, kind, namespaced, short) in RESOURCES.iter().filter(|row| row.0 == group) {
        let mut entry = json!({"name": name, "singularName": kind.to_ascii_lowercase(), "namespaced": namespaced, "kind": kind, "verbs": verbs});
        if !short.is_empty() {
            entry["shortNames"] = json!([short]);
        }
        all.push(entry);
        all.push(json!({"name": format!("{name}/status"), "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "patch", "update"]}));
    }
    if group == "v1" {
        all.push(json!({"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]}));
    }
    (!all.is_empty()).then(|| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": all}))
}

/// `GET /apis`.
pub(super) fn groups() -> Value {
    let mut names: Vec<&str> =
        RESOURCES.iter().map(|row| row.0).filter(|group| group.contains('/')).collect();
    names.dedup();
    let groups: Vec<Value> = names.iter().map(|group| one_group(group)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn one_group(group: &str) -> Value {
    let (name, version) = group.split_once('/').unwrap_or((group, ""));
    let version = json!({"groupVersion": group, "version": version});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

/// `GET /apis/GROUP`.
pub(super) fn group(name: &str) -> Option<Value> {
    let row = RESOURCES
        .iter()
        .find(|row| row.0.split_once('/').is_some_and(|(group, _)| group == name))?;
    let mut body = one_group(row.0);
    body["kind"] = json!("APIGroup");
    body["apiVersion"] = json!("v1");
    Some(body)
}
