//! Kubernetes objects, as they are applied.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A Kubernetes object, as it is to be. It may hold secrets, so it prints only which object it is.
#[derive(Clone, PartialEq)]
pub struct Document(Value);

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectRef {
    /// `apps/v1`.
    pub api_version: String,
    /// `DaemonSet`.
    pub kind: String,
    /// `kube-system`; none, where the kind has no namespaces.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Document {
    pub(crate) fn new(value: Value) -> Document {
        Document(value)
    }

    /// All of it, secrets too.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    /// All of it, secrets too.
    pub fn into_value(self) -> Value {
        self.0
    }

    /// Which object it is.
    pub fn reference(&self) -> ObjectRef {
        let text = |pointer: &str| self.0.pointer(pointer).and_then(Value::as_str);
        ObjectRef {
            api_version: text("/apiVersion").unwrap_or_default().to_owned(),
            kind: text("/kind").unwrap_or_default().to_owned(),
            namespace: text("/metadata/namespace").map(str::to_owned),
            name: text("/metadata/name").unwrap_or_default().to_owned(),
        }
    }

    /// In which order documents are applied: what others need comes first. An `APIService` comes last, for while nobody serves it, all who
    /// ask the API what there is are told of an error.
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

    /// The images that its pods run.
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

/// A SHA-256 of what values say, however their fields are ordered.
pub(crate) fn digest<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let mut hash = Sha256::new();
    for value in values {
        hash.update(sorted(value).to_string());
        hash.update("\n");
    }
    hex::encode(hash.finalize())
}

/// The same, with the fields of objects in the order of their names.
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
    fn a_document_prints_which_object_it_is_and_nothing_in_it() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aHVudGVyMg=="},
            "metadata": {"name": "s", "namespace": "n"}});
        let document = Document::new(secret);
        assert_eq!(format!("{document:?}"), "Document(Secret n/s)");
    }

    #[test]
    fn a_digest_is_of_what_is_said_and_not_of_how() {
        let one: Value = serde_json::from_str(r#"{"a": 1, "b": [{"c": 2, "d": 3}]}"#).unwrap();
        let same: Value = serde_json::from_str(r#"{"b": [{"d": 3, "c": 2}], "a": 1}"#).unwrap();
        let other = json!({"a": 1, "b": [{"c": 2, "d": 4}]});
        assert_eq!(digest([&one]), digest([&same]));
        assert_ne!(digest([&one]), digest([&other]));
    }
}
