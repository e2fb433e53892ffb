//! The controllers and the scheduler, which run immediately after each change.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::selector::{fits_template, is_true, labels_match};
use super::state::{ObjectKey, Objects, place};
use super::{requests, schedule};
use crate::object::ReadFields;
use crate::world::{short_id, stamp};

/// More rounds than this mean that the controllers have a bug.
const MOST_ROUNDS: usize = 64;

/// Runs all controllers until nothing changes any more.
pub(super) fn settle(objects: &mut Objects) {
    for _ in 0..MOST_ROUNDS {
        if !std::mem::take(&mut objects.is_unsettled) {
            return;
        }
        namespaces(objects);
        garbage(objects);
        volumes(objects);
        deployments(objects);
        replica_sets(objects);
        daemon_sets(objects);
        schedule::schedule(objects);
        budgets(objects);
        requests::decide(objects);
    }
}

/// Deletes an object, or marks it as being deleted if a controller or kubelet has to act first.
pub(super) fn delete(objects: &mut Objects, at: &ObjectKey, grace: Option<u64>) {
    let Some(object) = objects.shared(at) else { return };
    let waits = match at.1.as_str() {
        "namespaces" => true,
        // The kubelet stops a running pod first.
        "pods" => {
            let bound = object["spec"]["nodeName"].is_string();
            let ended = ["Succeeded", "Failed"].iter().any(|it| object["status"]["phase"] == *it);
            bound && !ended && grace != Some(0)
        }
        "persistentvolumes" | "persistentvolumeclaims" => true,
        _ => false,
    };
    if !waits {
        objects.remove(at);
        return;
    }
    objects.change(at, |object| {
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!(stamp());
        }
        if at.1 == "namespaces" {
            object["status"]["phase"] = json!("Terminating");
        }
    });
}

fn is_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Deletes the objects of a terminating namespace, then the namespace.
fn namespaces(objects: &mut Objects) {
    let going = objects.places(("v1", "namespaces", ""), is_deleted);
    for namespace in going {
        let inside: Vec<ObjectKey> =
            objects.every().map(|(at, _)| at).filter(|at| at.2 == namespace.3).cloned().collect();
        if inside.is_empty() {
            objects.remove(&namespace);
        }
        for at in inside {
            if objects.get(&at).is_some_and(|object| !is_deleted(object)) {
                delete(objects, &at, None);
            }
        }
    }
}

/// Deletes objects whose owners are gone, pods whose node is gone, and custom objects whose definition is gone.
fn garbage(objects: &mut Objects) {
    if !std::mem::take(&mut objects.may_have_garbage) {
        return;
    }
    let uids: BTreeSet<&str> =
        objects.every().filter_map(|(_, object)| object["metadata"]["uid"].as_str()).collect();
    let orphan = |at: &ObjectKey, object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        let owners = owners.filter(|owners| !owners.is_empty());
        let lost = owners.is_some_and(|owners| {
            !owners.iter().any(|it| it["uid"].as_str().is_some_and(|uid| uids.contains(uid)))
        });
        let node = object["spec"]["nodeName"].as_str().filter(|_| at.1 == "pods");
        let homeless =
            node.is_some_and(|node| objects.get(&place("v1", "nodes", "", node)).is_none());
        (lost, homeless)
    };
    let going = objects.every().map(|(at, object)| (at, orphan(at, object)));
    let going = going.filter(|(_, (lost, homeless))| *lost || *homeless);
    let going: Vec<_> = going.map(|(at, (_, homeless))| (at.clone(), homeless)).collect();
    for (at, homeless) in going {
        if homeless || objects.get(&at).is_some_and(|object| !is_deleted(object)) {
            delete(objects, &at, homeless.then_some(0));
        }
    }
    let mut undefined: Vec<ObjectKey> = Vec::new();
    // The objects are sorted by resource, so each resource is looked up once.
    let mut last = None;
    for (at, _) in objects.every() {
        let resource = (&at.0, &at.1);
        let is_defined = match last {
            Some((before, is_defined)) if before == resource => is_defined,
            _ => super::discovery::find(objects, &at.0, &at.1).is_some(),
        };
        last = Some((resource, is_defined));
        if !is_defined {
            undefined.push(at.clone());
        }
    }
    for at in undefined {
        objects.remove(&at);
    }
}

/// Binds claims to volumes, and deletes claims and volumes once nothing uses them.
fn volumes(objects: &mut Objects) {
    for (at, claim) in objects.all("v1", "persistentvolumeclaims") {
        let held = objects.list("v1", "pods", &at.2).iter().any(|pod| {
            let volumes = pod["spec"].list("volumes").iter();
            let mut names = volumes.map(|it| &it["persistentVolumeClaim"]["claimName"]);
            names.any(|name| *name == at.3.as_str())
        });
        if is_deleted(&claim) && !held {
            objects.remove(&at);
            continue;
        }
        let volume = claim["spec"].text("volumeName");
        let volume = place("v1", "persistentvolumes", "", volume);
        if objects.get(&volume).is_some() {
            objects.change(&at, |claim| claim["status"]["phase"] = json!("Bound"));
            objects.change(&volume, |volume| {
                volume["spec"]["claimRef"] = json!({"kind": "PersistentVolumeClaim", "namespace": at.2, "name": at.3, "uid": claim["metadata"]["uid"]});
                volume["status"]["phase"] = json!("Bound");
            });
        }
    }
    let volumes = objects.places(("v1", "persistentvolumes", ""), |_| true);
    for at in volumes {
        let Some(volume) = objects.get(&at) else { continue };
        let claim = &volume["spec"]["claimRef"];
        let text = |key: &str| claim.text(key).to_owned();
        let claim = place("v1", "persistentvolumeclaims", &text("namespace"), &text("name"));
        if is_deleted(volume) && objects.get(&claim).is_none() {
            objects.remove(&at);
        }
    }
}

fn deployments(objects: &mut Objects) {
    for (at, deployment) in objects.all("apps/v1", "deployments") {
        let template = &deployment["spec"]["template"];
        let digest = Sha256::digest(template.to_string());
        let hash: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        let own = place("apps/v1", "replicasets", &at.2, &format!("{}-{hash}", at.3));
        let replicas = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
        if objects.get(&own).is_none() {
            let mut template = template.clone();
            template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
            let mut selector = deployment["spec"]["selector"].clone();
            selector["matchLabels"]["pod-template-hash"] = json!(hash);
            let labels = template["metadata"]["labels"].clone();
            objects.put(own.clone(), json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"labels": labels, "ownerReferences": owner(&deployment, "apps/v1", "Deployment")},
                "spec": {"replicas": replicas, "selector": selector, "template": template},
            }));
        }
        let sets =
            objects.places(("apps/v1", "replicasets", &at.2), |set| is_owned(set, &deployment));
        for set in &sets {
            let count = if *set == own { replicas } else { 0 };
            objects.change(set, |set| set["spec"]["replicas"] = json!(count));
        }
        let ready = objects.get(&own).and_then(|it| it["status"]["readyReplicas"].as_u64());
        let ready = ready.unwrap_or(0);
        objects.change(&at, |it| {
            it["status"] = json!({
                "observedGeneration": it["metadata"]["generation"], "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": ready, "availableReplicas": ready,
                "conditions": [{"type": "Available", "status": if ready >= replicas { "True" } else { "False" }}],
            });
        });
    }
}

fn replica_sets(objects: &mut Objects) {
    for (at, set) in objects.all("apps/v1", "replicasets") {
        let want = usize::try_from(set["spec"]["replicas"].as_u64().unwrap_or(1)).unwrap_or(1);
        let pods = pods_of(objects, &at.2, &set);
        for pod in pods.iter().skip(want) {
            delete(objects, pod, None);
        }
        for _ in pods.len()..want {
            put_pod(objects, &at, pod(&set, "ReplicaSet"));
        }
        let (pods, ready) = counts(objects, &at.2, &set);
        objects.change(&at, |it| {
            it["status"] = json!({"observedGeneration": it["metadata"]["generation"], "replicas": pods, "readyReplicas": ready, "availableReplicas": ready});
        });
    }
}

fn daemon_sets(objects: &mut Objects) {
    for (at, set) in objects.all("apps/v1", "daemonsets") {
        let template = pod(&set, "DaemonSet");
        let nodes: Vec<String> = objects
            .list("v1", "nodes", "")
            .into_iter()
            .filter(|node| schedule::tolerates(&template, node) && schedule::wants(&template, node))
            .filter_map(|node| node["metadata"]["name"].as_str().map(str::to_owned))
            .collect();
        let pods = pods_of(objects, &at.2, &set);
        let there = pods.iter().filter_map(|pod| objects.get(pod)?["spec"]["nodeName"].as_str());
        let there: BTreeSet<String> = there.map(str::to_owned).collect();
        for node in &nodes {
            if !there.contains(node) {
                let mut pod = template.clone();
                pod["spec"]["nodeName"] = json!(node);
                put_pod(objects, &at, pod);
            }
        }
        let (pods, ready) = counts(objects, &at.2, &set);
        objects.change(&at, |it| {
            it["status"] = json!({
                "observedGeneration": it["metadata"]["generation"], "desiredNumberScheduled": nodes.len(), "currentNumberScheduled": pods,
                "updatedNumberScheduled": pods, "numberReady": ready, "numberAvailable": ready, "numberMisscheduled": 0,
            });
        });
    }
}

/// Updates how many disruptions each disruption budget allows.
fn budgets(objects: &mut Objects) {
    for (at, budget) in objects.all("policy/v1", "poddisruptionbudgets") {
        let pods = objects.list("v1", "pods", &at.2);
        let meant: Vec<&&Value> =
            pods.iter().filter(|pod| fits_template(&budget["spec"]["selector"], pod)).collect();
        let healthy = meant.iter().filter(|pod| is_ready(pod)).count();
        let amount = |value: &Value| match value.as_str().and_then(|it| it.strip_suffix('%')) {
            Some(percent) => {
                percent.parse::<usize>().ok().map(|it| (meant.len() * it).div_ceil(100))
            }
            None => value.as_u64().and_then(|it| usize::try_from(it).ok()),
        };
        let least = amount(&budget["spec"]["minAvailable"]);
        let most = amount(&budget["spec"]["maxUnavailable"]);
        let desired =
            least.or(most.map(|it| meant.len().saturating_sub(it))).unwrap_or(meant.len());
        let status = json!({
            "observedGeneration": budget["metadata"]["generation"], "expectedPods": meant.len(), "currentHealthy": healthy,
            "desiredHealthy": desired, "disruptionsAllowed": healthy.saturating_sub(desired),
        });
        objects.change(&at, |budget| budget["status"] = status);
    }
}

/// Evicts a pod if every disruption budget that selects the pod allows one more disruption.
pub(super) fn evict(
    objects: &mut Objects,
    at: &ObjectKey,
    grace: Option<u64>,
) -> Result<(), String> {
    let Some(pod) = objects.shared(at) else { return Ok(()) };
    let counts = !is_deleted(&pod) && is_ready(&pod);
    for budget in objects.list("policy/v1", "poddisruptionbudgets", &at.2) {
        let allowed = budget["status"]["disruptionsAllowed"].as_u64().unwrap_or(0);
        if counts && fits_template(&budget["spec"]["selector"], &pod) && allowed == 0 {
            let name = budget["metadata"].text("name");
            return Err(format!("The disruption budget {name} needs all of its healthy pods"));
        }
    }
    delete(objects, at, grace);
    Ok(())
}

fn is_ready(pod: &Value) -> bool {
    !is_deleted(pod) && is_true(pod, "Ready")
}

fn owner(of: &Value, version: &str, kind: &str) -> Value {
    json!([{"apiVersion": version, "kind": kind, "name": of["metadata"]["name"], "uid": of["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}])
}

fn is_owned(object: &Value, by: &Value) -> bool {
    let owners = object["metadata"].list("ownerReferences").iter();
    owners.into_iter().any(|owner| owner["uid"] == by["metadata"]["uid"])
}

/// A pod made from the template of its owner.
fn pod(set: &Value, kind: &str) -> Value {
    let template = &set["spec"]["template"];
    let mut metadata = json!({"labels": template["metadata"]["labels"], "ownerReferences": owner(set, "apps/v1", kind)});
    if template["metadata"]["annotations"].is_object() {
        metadata["annotations"] = template["metadata"]["annotations"].clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}})
}

/// Stores a new pod of the set at this key.
fn put_pod(objects: &mut Objects, set: &ObjectKey, pod: Value) {
    let name = format!("{}-{}", set.3, &short_id()[..5]);
    objects.put(place("v1", "pods", &set.2, &name), pod);
}

/// How many pods a set has, and how many of them are ready.
fn counts(objects: &Objects, namespace: &str, set: &Value) -> (usize, usize) {
    let pods = pods_of(objects, namespace, set);
    (pods.len(), pods.iter().filter(|at| objects.get(at).is_some_and(is_ready)).count())
}

/// The pods of a set that have neither ended nor are being deleted.
fn pods_of(objects: &Objects, namespace: &str, set: &Value) -> Vec<ObjectKey> {
    let counts = |pod: &Value| {
        let ended = ["Succeeded", "Failed"].iter().any(|it| pod["status"]["phase"] == *it);
        is_owned(pod, set) && !is_deleted(pod) && !ended
    };
    let selector = &set["spec"]["selector"]["matchLabels"];
    objects.places(("v1", "pods", namespace), |pod| counts(pod) && labels_match(selector, pod))
}
