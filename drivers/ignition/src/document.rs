//! Somebody's own config: bounded, of a version that is known, and without a mistake that can be seen from here.

use std::fmt;

use ignition_config::v3_3::Config;
use ignition_config::{v3_4, v3_5, v3_6};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::check::{Mistake, check_value};

/// What a document may ask of us at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of the text.
    pub bytes: usize,
    /// Files, units, users and whatever else is an entry of a list.
    pub entries: usize,
}

impl Default for Limits {
    /// More than Nova takes, less than hurts.
    fn default() -> Self {
        Limits { bytes: 1 << 20, entries: 4096 }
    }
}

/// A valid config that is not ours. It may hold secrets, so it prints only its version.
#[derive(Clone, PartialEq)]
pub struct Document {
    version: String,
    value: Value,
}

/// Why a document is refused. None of these repeats more of it than a name, for it may hold secrets.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Longer than allowed.
    #[error("the document has {length} bytes, and {most} are allowed")]
    TooLong {
        /// Its length.
        length: usize,
        /// What is allowed.
        most: usize,
    },
    /// More entries than allowed.
    #[error("the document has more than {most} entries in its lists")]
    TooMany {
        /// What is allowed.
        most: usize,
    },
    /// Not JSON.
    #[error("the document is not JSON: line {line}, column {column}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// No version, or one that is not known.
    #[error("ignition.version: {what}")]
    Version {
        /// What is wrong with it.
        what: String,
    },
    /// A value is of the wrong kind.
    #[error("{path}: not what the specification has there")]
    Shape {
        /// Its JSON path.
        path: String,
    },
    /// A field that the specification does not have, and Ignition would silently leave out.
    #[error("{path}: the specification has no such field in version {version}")]
    Unknown {
        /// Its JSON path.
        path: String,
        /// The document's version.
        version: String,
    },
    /// Of the right shape, and still wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Mistakes(Vec<Mistake>),
}

impl Document {
    /// Reads a document, or says what is wrong with it and where.
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
            "3.4.0" => shape::<v3_4::Config>(text, &value, &version),
            "3.5.0" => shape::<v3_5::Config>(text, &value, &version),
            "3.6.0" => shape::<v3_6::Config>(text, &value, &version),
            _ => shape::<Config>(text, &value, &version),
        }?;
        let mistakes = check_value(&value);
        if mistakes.is_empty() {
            Ok(Document { version, value })
        } else {
            Err(DocumentError::Mistakes(mistakes))
        }
    }

    /// The version of the specification it is written in.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The document as a config of 3.3.0, to be merged with another; `None` if it is of a later version.
    pub fn config(&self) -> Option<Config> {
        let mut config: Config = serde_json::from_value(self.value.clone()).ok()?;
        let known = matches!(self.version.as_str(), "3.0.0" | "3.1.0" | "3.2.0" | "3.3.0");
        config.ignition.version = Some(crate::SPEC.to_owned());
        known.then_some(config)
    }

    /// The document as JSON.
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
        None => "a version is wanted, such as 3.3.0".to_owned(),
        Some(old) if old.starts_with("2.") || old.starts_with("1.") => {
            "specification 2 is of the old CoreOS; Fedora CoreOS reads 3".to_owned()
        }
        Some(_) => "not one of 3.0.0 to 3.6.0".to_owned(),
    };
    Err(DocumentError::Version { what })
}

/// That the text is of this type, and has nothing besides.
fn shape<T: DeserializeOwned + Serialize>(
    text: &str,
    value: &Value,
    version: &str,
) -> Result<(), DocumentError> {
    let reader = &mut serde_json::Deserializer::from_str(text);
    let typed: T = serde_path_to_error::deserialize(reader)
        .map_err(|error| DocumentError::Shape { path: error.path().to_string() })?;
    let understood = serde_json::to_value(&typed).expect("a config is JSON");
    match lost(value, &understood, String::new()) {
        Some(path) => Err(DocumentError::Unknown { path, version: version.to_owned() }),
        None => Ok(()),
    }
}

/// The first field that is in `given` and not in `understood`.
fn lost(given: &Value, understood: &Value, path: String) -> Option<String> {
    match (given, understood) {
        (Value::Object(given), understood) => given.iter().find_map(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match understood.get(name) {
                None if value.is_null() => None,
                None => Some(path),
                Some(other) => lost(value, other, path),
            }
        }),
        (Value::Array(given), Value::Array(understood)) => {
            let pairs = given.iter().zip(understood).enumerate();
            pairs.into_iter().find_map(|(index, (a, b))| lost(a, b, format!("{path}[{index}]")))
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
