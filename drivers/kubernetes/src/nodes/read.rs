//! A node, as read from the cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lenient;
use crate::object::Metadata;

/// A Kubernetes node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Raw")]
pub struct Node {
    pub name: String,
    /// A new node of the same name has another uid.
    pub uid: String,
    /// The kubelet's own report.
    pub readiness: Readiness,
    /// Whether the node is cordoned.
    pub unschedulable: bool,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// The server of the node, as its cloud provider reports it: `openstack:///UUID`.
    pub provider_id: Option<String>,
    /// The node's addresses on the cluster's network.
    pub internal_addresses: Vec<IpAddr>,
    /// For example `v1.20.2`.
    pub kubelet_version: String,
    /// The time of the node's creation.
    pub created: Option<Timestamp>,
    /// The time of the deletion request.
    pub deleted: Option<Timestamp>,
    pub(super) resource_version: String,
}

/// Whether the kubelet reports that its node works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The node works.
    Ready { since: Option<Timestamp> },
    /// The kubelet reports a problem, or has stopped reporting.
    NotReady {
        /// Since when; since the node's creation if the kubelet has never reported.
        since: Option<Timestamp>,
        /// The cluster's reason code, such as `KubeletNotReady` or `NodeStatusUnknown`.
        reason: String,
    },
}

impl Readiness {
    /// Whether the node is ready.
    pub fn is_ready(&self) -> bool {
        matches!(self, Readiness::Ready { .. })
    }
}

/// A taint (`core/v1 Taint`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    /// Often absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// Set by the cluster on some of its own taints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

impl Taint {
    /// Makes a taint.
    pub fn new(key: &str, value: Option<&str>, effect: &str) -> Taint {
        Taint {
            key: key.to_owned(),
            value: value.map(str::to_owned),
            effect: effect.to_owned(),
            time_added: None,
        }
    }

    /// Whether a node can have only one of the two taints: key and effect are the same.
    pub(super) fn is_in_place_of(&self, other: &Taint) -> bool {
        (&self.key, &self.effect) == (&other.key, &other.effect)
    }
}

#[derive(Deserialize)]
struct Raw {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "lenient::or_default")]
    unschedulable: bool,
    #[serde(deserialize_with = "lenient::or_default")]
    taints: Vec<Taint>,
    #[serde(rename = "providerID", deserialize_with = "lenient::or_default")]
    provider_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    #[serde(deserialize_with = "lenient::or_default")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "lenient::or_default")]
    addresses: Vec<Address>,
    node_info: NodeInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    r#type: String,
    status: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    reason: String,
    #[serde(default, deserialize_with = "lenient::time")]
    last_transition_time: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Address {
    r#type: String,
    address: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeInfo {
    kubelet_version: String,
}

impl From<Raw> for Node {
    fn from(raw: Raw) -> Node {
        let Raw { metadata, spec, status } = raw;
        let inside = status.addresses.iter().filter(|it| it.r#type == "InternalIP");
        Node {
            readiness: readiness(&status.conditions, metadata.creation_timestamp),
            internal_addresses: inside.filter_map(|it| it.address.parse().ok()).collect(),
            name: metadata.name,
            uid: metadata.uid,
            unschedulable: spec.unschedulable,
            labels: metadata.labels,
            taints: spec.taints,
            provider_id: Some(spec.provider_id).filter(|id| !id.is_empty()),
            kubelet_version: status.node_info.kubelet_version,
            created: metadata.creation_timestamp,
            deleted: metadata.deletion_timestamp,
            resource_version: metadata.resource_version,
        }
    }
}

fn readiness(conditions: &[Condition], created: Option<Timestamp>) -> Readiness {
    let Some(condition) = conditions.iter().find(|it| it.r#type == "Ready") else {
        return Readiness::NotReady { since: created, reason: "NoStatus".to_owned() };
    };
    let since = condition.last_transition_time;
    // The cluster writes `Unknown` for a kubelet that has stopped reporting.
    match condition.status.as_str() {
        "True" => Readiness::Ready { since },
        _ => Readiness::NotReady { since, reason: lenient::plain(&condition.reason, 80) },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(status: Value) -> Node {
        let metadata = json!({"name": "n", "creationTimestamp": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    #[test]
    fn a_node_is_read() {
        let read: Node = serde_json::from_value(json!({
            "metadata": {
                "name": "worker-1", "uid": "u", "resourceVersion": "7",
                "labels": {"rack": "7"}, "creationTimestamp": "2026-01-01T00:00:00Z",
                "deletionTimestamp": "2026-01-02T00:00:00Z",
            },
            "spec": {
                "podCIDR": "10.244.0.0/24", "unschedulable": true, "providerID": "openstack:///m",
                "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
            },
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "10.0.0.7"},
                    {"type": "InternalIP", "address": "fd00::7"},
                    {"type": "ExternalIP", "address": "192.0.2.7"},
                    {"type": "Hostname", "address": "worker-1"},
                ],
                "conditions": [
                    {"type": "MemoryPressure", "status": "False"},
                    {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"},
                ],
                "nodeInfo": {"kubeletVersion": "v1.20.2", "osImage": "Debian"},
            },
        }))
        .unwrap();
        assert_eq!(
            read.readiness,
            Readiness::Ready { since: Some("2026-01-01T00:01:00Z".parse().unwrap()) }
        );
        assert_eq!((read.name.as_str(), read.kubelet_version.as_str()), ("worker-1", "v1.20.2"));
        assert_eq!((read.labels["rack"].as_str(), read.taints[0].key.as_str()), ("7", "k"));
        assert!(read.unschedulable && read.deleted.is_some());
        assert_eq!(read.provider_id.as_deref(), Some("openstack:///m"));
        assert_eq!(
            read.internal_addresses,
            ["10.0.0.7", "fd00::7"].map(|it| it.parse::<IpAddr>().unwrap())
        );
    }

    #[test]
    fn a_silent_kubelet_is_not_ready() {
        let condition = json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": "2026-01-01T00:05:00Z"});
        let since = Some("2026-01-01T00:05:00Z".parse().unwrap());
        let reason = "NodeStatusUnknown".to_owned();
        assert_eq!(
            node(json!({"conditions": [condition]})).readiness,
            Readiness::NotReady { since, reason }
        );
    }

    #[test]
    fn a_kubelet_that_never_spoke_is_not_ready_from_the_beginning() {
        let since = Some("2026-01-01T00:00:00Z".parse().unwrap());
        for status in [json!({}), json!({"conditions": null})] {
            assert_eq!(
                node(status).readiness,
                Readiness::NotReady { since, reason: "NoStatus".to_owned() }
            );
        }
    }
}
