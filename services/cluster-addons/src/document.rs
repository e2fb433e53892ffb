//! Kubernetes objects as they are sent to the API server.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The desired state of one Kubernetes object. `Debug` prints only kind, namespace and name, because a document may hold secrets.
#[derive(Clone, PartialEq)]
pub struct Document(Value);

/// Identifies a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectRef {
    /// For example `apps/v1`.
    pub api_version: String,
    /// For example `DaemonSet`.
    pub kind: String,
    /// For example `kube-system`; `None` if the kind has no namespaces.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub namespace: Option<String>,
    pub name: String,
}

impl Document {
    pub(crate) fn new(value: Value) -> Document {
        Document(value)
    }

    /// The whole object, secrets included.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    /// Converts the document into the whole object, secrets included.
    pub fn into_value(self) -> Value {
        self.0
    }

    /// Identifies the object by version, kind, namespace and name.
    pub fn reference(&self) -> ObjectRef {
        let text = |pointer: &str| self.0.pointer(pointer).and_then(Value::as_str);
        ObjectRef {
            api_version: text("/apiVersion").unwrap_or_default().to_owned(),
            kind: text("/kind").unwrap_or_default().to_owned(),
            namespace: text("/metadata/namespace").map(str::to_owned),
            name: text("/metadata/name").unwrap_or_default().to_owned(),
        }
    }

    /// The position of the document's kind in the order of applying: an object follows the objects that it needs. An `APIService` comes
    /// last: until its backend runs, every client that lists the API's resources gets an error.
    pub(crate) fn rank(&self) -> u8 {
        match self.0["kind"].as_str().unwrap_or_default() {
            "Namespace" => 0,
            "CustomResourceDefinition" => 1,
            "ServiceAccount" => 2,
            "ClusterRole" | "Role" => 3,
            "ClusterRoleBinding" | "RoleBinding" => 4,
            "ConfigMap" | "Secret" => 5,
            "CSIDriver" | "Service" | "StorageClass" => 6,
            "APIService" => 8,
            _workload => 7,
        }
    }

    /// The images of the object's pods.
    pub(crate) fn images(&self) -> impl Iterator<Item = &str> {
        let pod = &self.0["spec"]["template"]["spec"];
        let containers = ["initContainers", "containers"].into_iter().map(|list| &pod[list]);
        let containers = containers.filter_map(Value::as_array).flatten();
        containers.filter_map(|container| container["image"].as_str())
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({})", self.reference())
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// SHA-256 of JSON values, independent of the order of their fields.
pub(crate) fn digest<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let mut hash = Sha256::new();
    for value in values {
        hash.update(sorted(value).to_string());
        hash.update("\n");
    }
    hex::encode(hash.finalize())
}

/// A copy of `value` with the fields of all objects sorted by name.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            let fields = fields.into_iter().map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn debug_prints_the_reference_of_a_document_and_no_content() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aHVudGVyMg=="},
            "metadata": {"name": "s", "namespace": "n"}});
        let document = Document::new(secret);
        assert_eq!(format!("{document:?}"), "Document(Secret n/s)");
    }

    #[test]
    fn an_object_follows_the_objects_that_it_needs() {
        let mut kinds = [
            "APIService",
            "DaemonSet",
            "Deployment",
            "CSIDriver",
            "Service",
            "StorageClass",
            "ConfigMap",
            "Secret",
            "ClusterRoleBinding",
            "RoleBinding",
            "ClusterRole",
            "Role",
            "ServiceAccount",
            "CustomResourceDefinition",
            "Namespace",
        ];
        kinds.sort_by_key(|kind| Document::new(json!({"kind": kind})).rank());
        assert_eq!(
            kinds,
            [
                "Namespace",
                "CustomResourceDefinition",
                "ServiceAccount",
                "ClusterRole",
                "Role",
                "ClusterRoleBinding",
                "RoleBinding",
                "ConfigMap",
                "Secret",
                "CSIDriver",
                "Service",
                "StorageClass",
                "DaemonSet",
                "Deployment",
                "APIService",
            ]
        );
    }

    #[test]
    fn a_digest_does_not_depend_on_the_order_of_fields() {
        let one: Value = serde_json::from_str(r#"{"a": 1, "b": [{"c": 2, "d": 3}]}"#).unwrap();
        let same: Value = serde_json::from_str(r#"{"b": [{"d": 3, "c": 2}], "a": 1}"#).unwrap();
        let other = json!({"a": 1, "b": [{"c": 2, "d": 4}]});
        assert_eq!(digest([&one]), digest([&same]));
        assert_ne!(digest([&one]), digest([&other]));
    }
}
