//! A value together with the JSON that it was read from.

use std::ops::Deref;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A value together with the JSON that it was read from, which may have more fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithJson<T> {
    pub json: Value,
    pub read: T,
}

impl<T> Deref for WithJson<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.read
    }
}

/// Writes the JSON, without a change.
impl<T> Serialize for WithJson<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for WithJson<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(deserializer)?;
        let read = T::deserialize(&json).map_err(D::Error::custom)?;
        Ok(WithJson { json, read })
    }
}
