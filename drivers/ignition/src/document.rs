//! Configs from callers: limited in size, of a known version, and without a mistake that this crate can find.

use std::fmt;

use ignition_config::v3_3::Config;
use ignition_config::{v3_4, v3_5, v3_6};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::check::{Mistake, check_value};

/// Size limits of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Length of the text in bytes.
    pub bytes: usize,
    /// Number of entries in all lists: files, units, users and so on.
    pub entries: usize,
}

impl Default for Limits {
    /// More than fits into Nova's user data, and little enough memory for a service to parse.
    fn default() -> Self {
        Limits { bytes: 1 << 20, entries: 4096 }
    }
}

/// A valid config that a caller supplied. `Debug` prints only the version, because the config may hold secrets.
#[derive(Clone, PartialEq)]
pub struct Document {
    version: String,
    value: Value,
}

/// The reasons why a document is refused. No message repeats more of the document than a field name, because the document may hold secrets.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("the document has {length} bytes; at most {most} are allowed")]
    TooLong { length: usize, most: usize },
    #[error("the document has more than {most} entries in its lists")]
    TooMany { most: usize },
    #[error("the document is not JSON: line {line}, column {column}")]
    Syntax {
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// The version is missing or unknown.
    #[error("ignition.version: {what}")]
    Version { what: String },
    #[error("{path}: the value has the wrong type")]
    Shape { path: String },
    /// The specification has no such field. Ignition would ignore the field without a message.
    #[error("{path}: version {version} of the specification has no such field")]
    Unknown { path: String, version: String },
    /// The types are right, and a rule of `check` is violated.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Mistakes(Vec<Mistake>),
}

impl Document {
    /// Parses and checks a document; an error names the mistake and its place.
    pub fn parse(text: &str, limits: Limits) -> Result<Self, DocumentError> {
        if text.len() > limits.bytes {
            return Err(DocumentError::TooLong { length: text.len(), most: limits.bytes });
        }
        let value: Value = serde_json::from_str(text).map_err(|error| DocumentError::Syntax {
            line: error.line(),
            column: error.column(),
        })?;
        if entries(&value) > limits.entries {
            return Err(DocumentError::TooMany { most: limits.entries });
        }
        let version = version(&value)?;
        match version.as_str() {
            "3.4.0" => check_type::<v3_4::Config>(text, &value, &version),
            "3.5.0" => check_type::<v3_5::Config>(text, &value, &version),
            "3.6.0" => check_type::<v3_6::Config>(text, &value, &version),
            _ => check_type::<Config>(text, &value, &version),
        }?;
        let mistakes = check_value(&value);
        if mistakes.is_empty() {
            Ok(Document { version, value })
        } else {
            Err(DocumentError::Mistakes(mistakes))
        }
    }

    /// The version of the specification that the document declares.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the document as a config of version 3.3.0 for a merge; `None` if the document has a later version.
    pub fn config(&self) -> Option<Config> {
        let mut config: Config = serde_json::from_value(self.value.clone()).ok()?;
        let known = matches!(self.version.as_str(), "3.0.0" | "3.1.0" | "3.2.0" | "3.3.0");
        config.ignition.version = Some(crate::SPEC.to_owned());
        known.then_some(config)
    }

    /// Returns the document as JSON text.
    pub fn json(&self) -> String {
        self.value.to_string()
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({})", self.version)
    }
}

fn version(value: &Value) -> Result<String, DocumentError> {
    let version = value.get("ignition").and_then(|it| it.get("version")).and_then(Value::as_str);
    let what = match version {
        Some(known @ ("3.0.0" | "3.1.0" | "3.2.0" | "3.3.0" | "3.4.0" | "3.5.0" | "3.6.0")) => {
            return Ok(known.to_owned());
        }
        None => "a version is missing, such as 3.3.0".to_owned(),
        Some(old) if old.starts_with("2.") || old.starts_with("1.") => {
            "specification 2 is of the old CoreOS; Fedora CoreOS reads 3".to_owned()
        }
        Some(_) => "not one of 3.0.0 to 3.6.0".to_owned(),
    };
    Err(DocumentError::Version { what })
}

/// Checks that the text deserializes into type `T` and has no field that `T` lacks.
fn check_type<T: DeserializeOwned + Serialize>(
    text: &str,
    value: &Value,
    version: &str,
) -> Result<(), DocumentError> {
    let reader = &mut serde_json::Deserializer::from_str(text);
    let typed: T = serde_path_to_error::deserialize(reader)
        .map_err(|error| DocumentError::Shape { path: error.path().to_string() })?;
    let understood = serde_json::to_value(&typed).expect("a config is JSON");
    match first_unknown_field(value, &understood, String::new()) {
        Some(path) => Err(DocumentError::Unknown { path, version: version.to_owned() }),
        None => Ok(()),
    }
}

/// Returns the path of the first field that is in `given` and not in `understood`.
fn first_unknown_field(given: &Value, understood: &Value, path: String) -> Option<String> {
    match (given, understood) {
        (Value::Object(given), understood) => given.iter().find_map(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match understood.get(name) {
                None if value.is_null() => None,
                None => Some(path),
                Some(other) => first_unknown_field(value, other, path),
            }
        }),
        (Value::Array(given), Value::Array(understood)) => {
            let pairs = given.iter().zip(understood).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (a, b))| first_unknown_field(a, b, format!("{path}[{index}]")))
        }
        (_, _) => None,
    }
}

fn entries(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(entries).sum(),
        Value::Array(list) => list.len() + list.iter().map(entries).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests;
