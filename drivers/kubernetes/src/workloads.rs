//! Restarts the pods of Deployments, DaemonSets and StatefulSets.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Body, Client};
use crate::error::Result;
use crate::lenient;
use crate::object::{self, Metadata};

const KINDS: [&str; 3] = ["deployments", "daemonsets", "statefulsets"];

/// The used fields of the `apps/v1` workloads.
#[derive(Deserialize)]
struct Workload {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    /// `None` for a DaemonSet, whose pods are counted by nodes.
    replicas: Option<i64>,
    template: Template,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template {
    #[serde(deserialize_with = "lenient::or_default")]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    #[serde(deserialize_with = "lenient::or_default")]
    observed_generation: i64,
    #[serde(deserialize_with = "lenient::or_default")]
    updated_replicas: i64,
    #[serde(deserialize_with = "lenient::or_default")]
    updated_number_scheduled: i64,
    #[serde(deserialize_with = "lenient::or_default")]
    desired_number_scheduled: i64,
}

/// Restarts the pods of all workloads in a namespace whose template lacks this value of the annotation, like `kubectl rollout restart`.
/// Returns the workloads that still have old pods; call again until the list is empty.
pub async fn restart(
    client: &Client,
    namespace: &str,
    annotation: &str,
    value: &str,
) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for kind in KINDS {
        let path = ["apis", "apps", "v1", "namespaces", namespace, kind];
        for found in object::list::<Value>(client, &path, &[]).await? {
            let generation = found["metadata"]["generation"].as_i64().unwrap_or_default();
            let Ok(workload) = serde_json::from_value::<Workload>(found) else { continue };
            let name = &workload.metadata.name;
            let is_asked = workload.spec.template.metadata.annotations.get(annotation)
                == Some(&value.to_owned());
            if !is_asked {
                let template = json!({"metadata": {"annotations": {annotation: value}}});
                let patch = json!({"spec": {"template": template}});
                let path = ["apis", "apps", "v1", "namespaces", namespace, kind, name];
                client.patch(&path).body(Body::Merge(patch)).done().await?;
            }
            if !is_asked || !workload.is_updated(generation) {
                left.push(name.clone());
            }
        }
    }
    Ok(left)
}

impl Workload {
    /// Whether the controller has seen the current template, and all pods are made from it.
    fn is_updated(&self, generation: i64) -> bool {
        let Status {
            observed_generation,
            updated_replicas,
            updated_number_scheduled,
            desired_number_scheduled,
        } = self.status;
        let wanted = self.spec.replicas.unwrap_or(desired_number_scheduled);
        observed_generation >= generation
            && updated_replicas.max(updated_number_scheduled) >= wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: Value, want: bool) {
        let workload: Workload = serde_json::from_value(body).unwrap();
        assert_eq!(workload.is_updated(2), want);
    }

    #[test]
    fn a_workload_is_updated_when_its_controller_says_so_of_its_newest_template() {
        let meta = json!({"name": "a"});
        let of =
            |spec: Value, status: Value| json!({"metadata": meta, "spec": spec, "status": status});
        let two = json!({"replicas": 2});
        check(of(two.clone(), json!({"observedGeneration": 2, "updatedReplicas": 2})), true);
        check(of(two.clone(), json!({"observedGeneration": 2, "updatedReplicas": 1})), false);
        check(of(two.clone(), json!({"observedGeneration": 1, "updatedReplicas": 2})), false);
        check(of(two, json!({})), false);
        let three = json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3});
        check(of(json!({}), three), true);
        let two = json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 2});
        check(of(json!({"template": {"metadata": null}}), two), false);
    }
}
