//! Documents: objects as somebody wrote them down.

use std::fmt;

use serde_json::Value;

/// An object as it shall be. It may be a Secret, so what is in it is not printed.
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

/// What is wrong with documents. They may hold secrets, of which nothing is said.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Not YAML.
    #[error("the documents cannot be read at line {line}, column {column}")]
    Malformed {
        /// Counted from 1; 0 if unknown.
        line: u64,
        /// Counted from 1; 0 if unknown.
        column: u64,
    },
    /// Something every object has is not there.
    #[error("document {number} has no {field}")]
    Missing {
        /// Which document, counted from 1.
        number: usize,
        /// What it has not.
        field: &'static str,
    },
}

/// The documents in a YAML text; empty ones are passed over, lists are their entries.
pub fn documents(text: &str) -> Result<Vec<Document>, DocumentError> {
    // `on`, `no`, `n` are words, as in YAML 1.2: a name may be one.
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

/// What an object has not.
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
        // Generators write these, and who applies an object may not.
        if let Some(metadata) = body["metadata"].as_object_mut() {
            for key in ["managedFields", "creationTimestamp", "resourceVersion", "uid"] {
                metadata.remove(key);
            }
        }
        Ok(Document { body, api_version, kind, name, namespace })
    }
}

impl Document {
    /// Its group and version, as `apps/v1`; the first group has no name: `v1`.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its namespace, if it says one.
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
        let told: Vec<String> = all
            .iter()
            .map(|it| {
                format!("{} {} {:?}/{}", it.api_version(), it.kind(), it.namespace(), it.name())
            })
            .collect();
        assert_eq!(
            told,
            [r#"v1 Namespace None/n"#, r#"apps/v1 Deployment Some("n")/d"#, r#"v1 Secret None/s"#]
        );
        assert_eq!(all[0].body()["metadata"], serde_json::json!({"name": "n"}));
        assert_eq!(all[2].body()["stringData"], serde_json::json!({"on": "yes", "port": "0123"}));
    }

    #[test]
    fn mistakes_are_told_by_their_place_alone() {
        let told = |text: &str| documents(text).unwrap_err().to_string();
        let broken = told("kind: Secret\nstringData: {a: hunter2");
        assert!(broken.starts_with("the documents cannot be read at line "), "{broken}");
        assert_eq!(told("apiVersion: v1\nkind: Secret"), "document 1 has no metadata.name");
        assert_eq!(told("--- {kind: A}\n--- {b: c}"), "document 1 has no apiVersion");
        assert_eq!(told("- hunter2"), "document 1 has no apiVersion");
    }
}
