//! Lists as tables, which kubectl prints.

use serde_json::{Value, json};

use super::selector::is_true;
use crate::object::ReadFields;

use jiff::Timestamp;

/// The objects as a `meta.k8s.io/v1` Table.
pub(super) fn table(resource: &str, objects: &[&Value], version: &str) -> Value {
    let wide: &[&str] = match resource {
        "nodes" => {
            &["Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"]
        }
        _ => &[],
    };
    let usual: &[&str] = match resource {
        "nodes" => &["Name", "Status", "Roles", "Age", "Version"],
        "certificatesigningrequests" => &["Name", "Age", "SignerName", "Requestor", "Condition"],
        _ => &["Name", "Age"],
    };
    let column = |(name, priority): (&&str, i32)| json!({"name": name, "type": "string", "format": if *name == "Name" { "name" } else { "" }, "description": "", "priority": priority});
    let columns = usual.iter().map(|name| (name, 0)).chain(wide.iter().map(|name| (name, 1)));
    let columns: Vec<Value> = columns.map(column).collect();
    let rows = objects.iter().map(|object| {
        let metadata = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
        json!({"cells": cells(resource, object), "object": metadata})
    });
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version}, "columnDefinitions": columns, "rows": rows.collect::<Vec<_>>()})
}

fn cells(resource: &str, object: &Value) -> Vec<Value> {
    let (name, age) = (object["metadata"]["name"].clone(), json!(age(object)));
    match resource {
        "nodes" => {
            let info = &object["status"]["nodeInfo"];
            let address = |kind: &str| {
                let mut all = object["status"].list("addresses").iter();
                let found = all.find(|address| address["type"] == kind);
                found.map_or(json!("<none>"), |found| found["address"].clone())
            };
            let own = ["kubeletVersion", "osImage", "kernelVersion", "containerRuntimeVersion"];
            let [version, image, kernel, runtime] = own.map(|key| info[key].clone());
            let (status, roles) = (json!(status(object)), json!(roles(object)));
            let (inside, outside) = (address("InternalIP"), address("ExternalIP"));
            vec![name, status, roles, age, version, inside, outside, image, kernel, runtime]
        }
        "certificatesigningrequests" => {
            let conditions = object["status"].list("conditions").iter();
            let mut words: Vec<&str> =
                conditions.filter_map(|condition| condition["type"].as_str()).collect();
            if words.is_empty() {
                words.push("Pending");
            }
            if object["status"]["certificate"].is_string() {
                words.push("Issued");
            }
            let spec = &object["spec"];
            let (signer, user) = (spec["signerName"].clone(), spec["username"].clone());
            vec![name, age, signer, user, json!(words.join(","))]
        }
        _ => vec![name, age],
    }
}

fn status(node: &Value) -> String {
    let word = if is_true(node, "Ready") { "Ready" } else { "NotReady" };
    let more = if node["spec"]["unschedulable"] == true { ",SchedulingDisabled" } else { "" };
    format!("{word}{more}")
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: Vec<&str> =
        labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn age(object: &Value) -> String {
    let born: Option<Timestamp> =
        object["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse().ok());
    let seconds = born.map_or(0, |born| Timestamp::now().as_second() - born.as_second());
    if seconds < 120 { format!("{seconds}s") } else { format!("{}m", seconds / 60) }
}
