//! API discovery: the resources of the cluster.

use serde_json::{Value, json};

use super::state::Objects;
use crate::object::ReadFields;

const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io/v1", "customresourcedefinitions");

/// Each resource with its group and version, plural, kind, whether it is namespaced, and short name.
#[rustfmt::skip]
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
    ("certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest", false, "csr"),
    ("storage.k8s.io/v1", "storageclasses", "StorageClass", false, "sc"),
    ("storage.k8s.io/v1", "csidrivers", "CSIDriver", false, ""),
    ("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", false, ""),
    ("coordination.k8s.io/v1", "leases", "Lease", true, ""),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", true, "pdb"),
    ("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", true, "netpol"),
    ("networking.k8s.io/v1", "ingresses", "Ingress", true, "ing"),
    ("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", false, ""),
    ("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", false, "crd"),
    ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", false, "pc"),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    short: String,
}

/// API versions that depend on the release: the name in the release, and the name used here.
fn renamed(minor: u32) -> &'static [(&'static str, &'static str)] {
    match minor {
        // `policy/v1` came with 1.21.
        0..=20 => &[("policy/v1beta1", "policy/v1")],
        21..=24 => &[("policy/v1", "policy/v1"), ("policy/v1beta1", "policy/v1")],
        _ => &[("policy/v1", "policy/v1")],
    }
}

/// The name used here for an API version. `None` if the release does not serve the version.
pub(super) fn canonical(objects: &Objects, group: &str) -> Option<String> {
    let names = renamed(objects.minor());
    let meant = names.iter().find(|(name, _)| *name == group).map(|(_, meant)| *meant);
    let other = names.iter().any(|(_, meant)| *meant == group);
    meant.map(str::to_owned).or_else(|| (!other).then(|| group.to_owned()))
}

/// All resources, including custom resources.
fn all(objects: &Objects) -> Vec<Resource> {
    let own = RESOURCES.iter().map(|(group, name, kind, namespaced, short)| Resource {
        group: (*group).to_owned(),
        name: (*name).to_owned(),
        kind: (*kind).to_owned(),
        namespaced: *namespaced,
        short: (*short).to_owned(),
    });
    let definitions = objects.list(DEFINITIONS.0, DEFINITIONS.1, "");
    let defined = definitions.into_iter().flat_map(|definition| {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let versions = spec.list("versions").iter();
        let served = versions.filter(|version| version["served"] == true);
        served.map(move |version| Resource {
            group: format!("{}/{}", text(&spec["group"]), text(&version["name"])),
            name: text(&spec["names"]["plural"]),
            kind: text(&spec["names"]["kind"]),
            namespaced: spec["scope"] == "Namespaced",
            short: text(&spec["names"]["shortNames"][0]),
        })
    });
    own.chain(defined).collect()
}

pub(super) fn find(objects: &Objects, group: &str, resource: &str) -> Option<Resource> {
    all(objects).into_iter().find(|it| it.group == group && it.name == resource)
}

/// Answers `GET /api/v1` and `GET /apis/GROUP/VERSION`.
pub(super) fn resources(objects: &Objects, group: &str) -> Option<Value> {
    let verbs = ["create", "delete", "get", "list", "patch", "update"];
    let meant = canonical(objects, group)?;
    let mut rows = Vec::new();
    let row = |name: String, singular: &str, of: &Resource, verbs: &[&str]| json!({"name": name, "singularName": singular, "namespaced": of.namespaced, "kind": of.kind, "verbs": verbs});
    for one in all(objects).into_iter().filter(|it| it.group == meant) {
        let mut entry = row(one.name.clone(), &one.kind.to_ascii_lowercase(), &one, &verbs);
        if !one.short.is_empty() {
            entry["shortNames"] = json!([one.short]);
        }
        rows.push(entry);
        rows.push(row(format!("{}/status", one.name), "", &one, &["get", "patch", "update"]));
        match one.name.as_str() {
            "pods" => {
                rows.push(row("pods/log".to_owned(), "", &one, &["get"]));
                let version = if objects.minor() >= 22 { "v1" } else { "v1beta1" };
                rows.push(json!({"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": version, "kind": "Eviction", "verbs": ["create"]}));
            }
            "certificatesigningrequests" => {
                let name = format!("{}/approval", one.name);
                rows.push(row(name, "", &one, &["get", "patch", "update"]));
            }
            _ => {}
        }
    }
    (!rows.is_empty()).then(|| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": rows}))
}

/// The API versions that the release serves.
fn served(objects: &Objects) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for one in all(objects).into_iter().filter(|it| it.group.contains('/')) {
        let renamed = renamed(objects.minor()).iter().filter(|(_, meant)| *meant == one.group);
        let renamed: Vec<String> = renamed.map(|(name, _)| (*name).to_owned()).collect();
        for name in if renamed.is_empty() { vec![one.group] } else { renamed } {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Answers `GET /apis`.
pub(super) fn groups(objects: &Objects) -> Value {
    let mut names: Vec<String> = Vec::new();
    for group in served(objects) {
        let name = group.split('/').next().unwrap_or_default().to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let groups: Vec<Value> = names.iter().filter_map(|name| one_group(objects, name)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn one_group(objects: &Objects, name: &str) -> Option<Value> {
    let served = served(objects);
    let own = served.iter().filter_map(|group| group.split_once('/').filter(|it| it.0 == name));
    let versions: Vec<Value> = own
        .map(|(name, version)| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({"name": name, "versions": versions, "preferredVersion": preferred}))
}

/// Answers `GET /apis/GROUP`.
pub(super) fn group(objects: &Objects, name: &str) -> Option<Value> {
    let mut body = one_group(objects, name)?;
    body["kind"] = json!("APIGroup");
    body["apiVersion"] = json!("v1");
    Some(body)
}
