//! Workarounds for defects of API servers.

use serde_json::{Value, json};

/// Kinds that have containers, and Service.
const WITH_PORTS: [&str; 9] = [
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "ReplicaSet",
    "ReplicationController",
    "Service",
    "StatefulSet",
];

/// Kubernetes 1.20 identifies a port by number and protocol, and fails (500) if the protocol is left to its default. So the protocol is
/// added to every port.
pub(super) fn with_protocols(kind: &str, mut body: Value) -> Value {
    if WITH_PORTS.contains(&kind) {
        complete(&mut body["spec"]);
    }
    body
}

fn complete(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        for (key, value) in map {
            if key == "ports" {
                value.as_array_mut().into_iter().flatten().for_each(say_protocol);
            } else {
                complete(value);
            }
        }
    } else if let Some(list) = value.as_array_mut() {
        list.iter_mut().for_each(complete);
    }
}

fn say_protocol(port: &mut Value) {
    if let Some(port) = port.as_object_mut() {
        port.entry("protocol").or_insert(json!("TCP"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_gets_its_protocol() {
        let service = json!({"spec": {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}});
        assert_eq!(
            with_protocols("Service", service),
            json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}})
        );
        let pods = |port: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "ports": [port]}]}}}});
        assert_eq!(
            with_protocols("Deployment", pods(json!({"containerPort": 80}))),
            pods(json!({"containerPort": 80, "protocol": "TCP"}))
        );
    }

    #[test]
    fn ports_of_other_kinds_stay_unchanged() {
        let policy = json!({"spec": {"ports": [{"port": 80}]}});
        assert_eq!(with_protocols("NetworkPolicy", policy.clone()), policy);
        let without = json!({"metadata": {"name": "a"}, "data": {"ports": "x"}});
        assert_eq!(with_protocols("ConfigMap", without.clone()), without);
    }
}
