//! Schedules pods to Kubernetes nodes.

use serde_json::{Value, json};

use super::selector::{expression, is_true, labels_match};
use super::state::Objects;
use crate::object::ReadFields;

/// Binds each unbound pod to the node with the fewest pods among those that accept the pod.
pub(super) fn schedule(objects: &mut Objects) {
    let unbound = objects.places(("v1", "pods", ""), |pod| pod["spec"]["nodeName"].is_null());
    for at in unbound {
        let Some(pod) = objects.get(&at) else { continue };
        let nodes = objects.list("v1", "nodes", "");
        let taking = nodes.into_iter().filter(|node| takes(node, pod));
        let mut taking: Vec<&str> =
            taking.filter_map(|node| node["metadata"]["name"].as_str()).collect();
        let load = |name: &str| {
            let pods = objects.list("v1", "pods", "");
            pods.iter().filter(|pod| pod["spec"]["nodeName"] == name).count()
        };
        taking.sort_by_cached_key(|name| load(name));
        if let Some(node) = taking.first().map(|name| (*name).to_owned()) {
            objects.change(&at, |pod| pod["spec"]["nodeName"] = json!(node));
        }
    }
}

fn takes(node: &Value, pod: &Value) -> bool {
    let is_open = is_true(node, "Ready") && node["spec"]["unschedulable"] != true;
    is_open && tolerates(pod, node) && wants(pod, node)
}

pub(super) fn tolerates(pod: &Value, node: &Value) -> bool {
    let taints = node["spec"].list("taints").iter();
    let mut hard = taints.filter(|taint| taint["effect"] != "PreferNoSchedule");
    hard.all(|taint| {
        let tolerations = pod["spec"].list("tolerations").iter();
        tolerations.into_iter().any(|it| {
            let exists = it["operator"] == "Exists";
            let key = it["key"] == taint["key"] || (exists && it["key"].is_null());
            let value = exists || it.text("value") == taint.text("value");
            let effect = it["effect"].is_null() || it["effect"] == taint["effect"];
            key && value && effect
        })
    })
}

/// Whether a node satisfies the node affinity of a pod.
pub(super) fn wants(pod: &Value, node: &Value) -> bool {
    let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"];
    let any = terms.as_array().is_none_or(|terms| {
        terms.iter().any(|term| {
            let all = term.list("matchExpressions").iter();
            all.into_iter().all(|it| expression(it, &node["metadata"]["labels"]))
        })
    });
    any && labels_match(&pod["spec"]["nodeSelector"], node)
}
