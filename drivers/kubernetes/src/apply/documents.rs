//! Documents: Kubernetes objects as written in YAML.

use std::fmt;

use serde_json::Value;

/// The desired state of an object. `Debug` does not print the content, because the object may be a Secret.
#[derive(Clone, PartialEq)]
pub struct Document {
    body: Value,
    api_version: String,
    kind: String,
    name: String,
    namespace: Option<String>,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} {} {})", self.api_version, self.kind, self.name)
    }
}

/// The reasons why documents cannot be read. No message quotes a document, because documents may hold secrets.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("the documents cannot be read at line {line}, column {column}")]
    Malformed {
        /// Counted from 1; 0 if unknown.
        line: u64,
        /// Counted from 1; 0 if unknown.
        column: u64,
    },
    #[error("document {number} has no {field}")]
    Missing {
        /// Position of the document, counted from 1.
        number: usize,
        field: &'static str,
    },
}

/// Reads all documents in a YAML text. Empty documents are skipped, and lists are replaced by their entries.
pub fn documents(text: &str) -> Result<Vec<Document>, DocumentError> {
    // `on`, `no` and `n` are strings, as in YAML 1.2, because they may be names.
    let options = serde_saphyr::options! { strict_booleans: true };
    let values = serde_saphyr::from_multiple_with_options::<Value>(text, options);
    let values = values.map_err(|error| {
        let place = error.location();
        DocumentError::Malformed {
            line: place.map_or(0, |place| place.line()),
            column: place.map_or(0, |place| place.column()),
        }
    })?;
    let mut all = Vec::new();
    for (at, value) in values.into_iter().enumerate() {
        add(at + 1, value, &mut all)?;
    }
    Ok(all)
}

fn add(number: usize, value: Value, all: &mut Vec<Document>) -> Result<(), DocumentError> {
    if value.is_null() {
        return Ok(());
    }
    if value["apiVersion"] == "v1" && value["kind"] == "List" {
        let entries = value["items"].as_array().cloned().unwrap_or_default();
        return entries.into_iter().try_for_each(|entry| add(number, entry, all));
    }
    all.push(
        Document::try_from(value)
            .map_err(|Missing(field)| DocumentError::Missing { number, field })?,
    );
    Ok(())
}

/// A required field is missing.
#[derive(Debug, thiserror::Error)]
#[error("it has no {0}")]
pub struct Missing(pub &'static str);

impl TryFrom<Value> for Document {
    type Error = Missing;

    fn try_from(mut body: Value) -> Result<Document, Missing> {
        let text = |pointer: &str, field: &'static str| {
            let found = body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            found.filter(|it| !it.is_empty()).ok_or(Missing(field))
        };
        let api_version = text("/apiVersion", "apiVersion")?;
        let kind = text("/kind", "kind")?;
        let name = text("/metadata/name", "metadata.name")?;
        let namespace = text("/metadata/namespace", "metadata.namespace").ok();
        // Generators write these fields, and an apply request must not contain them.
        if let Some(metadata) = body["metadata"].as_object_mut() {
            for key in ["managedFields", "creationTimestamp", "resourceVersion", "uid"] {
                metadata.remove(key);
            }
        }
        Ok(Document { body, api_version, kind, name, namespace })
    }
}

impl Document {
    /// Group and version: `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The kind of the object.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace, if the document has one.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(crate) fn body(&self) -> &Value {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_hold_many_documents_and_lists_of_them() {
        let text = "# made by a generator
---
apiVersion: v1
kind: Namespace
metadata: {name: n, creationTimestamp: null}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n}}
- {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {on: yes, port: '0123'}}
";
        let all = documents(text).unwrap();
        let reported: Vec<String> = all
            .iter()
            .map(|it| {
                format!("{} {} {:?}/{}", it.api_version(), it.kind(), it.namespace(), it.name())
            })
            .collect();
        assert_eq!(
            reported,
            [r#"v1 Namespace None/n"#, r#"apps/v1 Deployment Some("n")/d"#, r#"v1 Secret None/s"#]
        );
        assert_eq!(all[0].body()["metadata"], serde_json::json!({"name": "n"}));
        assert_eq!(all[2].body()["stringData"], serde_json::json!({"on": "yes", "port": "0123"}));
    }

    #[test]
    fn errors_name_only_the_place() {
        let reported = |text: &str| documents(text).unwrap_err().to_string();
        let broken = reported("kind: Secret\nstringData: {a: hunter2");
        assert!(broken.starts_with("the documents cannot be read at line "), "{broken}");
        assert_eq!(reported("apiVersion: v1\nkind: Secret"), "document 1 has no metadata.name");
        assert_eq!(reported("--- {kind: A}\n--- {b: c}"), "document 1 has no apiVersion");
        assert_eq!(reported("- hunter2"), "document 1 has no apiVersion");
    }
}
