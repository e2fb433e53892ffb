//! Lists as tables, which kubectl prints.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The objects as a `meta.k8s.io/v1` Table.
pub(super) fn table(resource: &str, objects: &[&Value], version: &str) -> Value {
    let column = |name: &str, kind: &str, priority: i32| json!({"name": name, "type": kind, "format": if name == "Name" { "name" } else { "" }, "description": "", "priority": priority});
    let mut columns = vec![column("Name", "string", 0)];
    match resource {
        "nodes" => {
            columns.extend(
                ["Status", "Roles", "Age", "Version"].map(|name| column(name, "string", 0)),
            );
            columns.extend(
                ["Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"]
                    .map(|name| column(name, "string", 1)),
            );
        }
        "certificatesigningrequests" => columns.extend(
            ["Age", "SignerName", "Requestor", "Condition"].map(|name| column(name, "string", 0)),
        ),
        _ => columns.push(column("Age", "string", 0)),
    }
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
                let all = object["status"]["addresses"].as_array().into_iter().flatten();
                let found = all
                    .filter(|address| address["type"] == kind)
                    .find_map(|address| address["address"].as_str());
                json!(found.unwrap_or("<none>"))
            };
            vec![
                name,
                json!(status(object)),
                json!(roles(object)),
                age,
                info["kubeletVersion"].clone(),
                address("InternalIP"),
                address("ExternalIP"),
                info["osImage"].clone(),
                info["kernelVersion"].clone(),
                info["containerRuntimeVersion"].clone(),
            ]
        }
        "certificatesigningrequests" => {
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let mut words: Vec<&str> =
                conditions.filter_map(|condition| condition["type"].as_str()).collect();
            if words.is_empty() {
                words.push("Pending");
            }
            if object["status"]["certificate"].is_string() {
                words.push("Issued");
            }
            vec![
                name,
                age,
                object["spec"]["signerName"].clone(),
                object["spec"]["username"].clone(),
                json!(words.join(",")),
            ]
        }
        _ => vec![name, age],
    }
}

fn status(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions
        .filter(|condition| condition["type"] == "Ready")
        .any(|condition| condition["status"] == "True");
    let word = if ready { "Ready" } else { "NotReady" };
    if node["spec"]["unschedulable"] == true {
        format!("{word},SchedulingDisabled")
    } else {
        word.to_owned()
    }
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
