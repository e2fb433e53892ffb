//! Helpers for request bodies.

use serde_json::Value;

/// Removes null fields: most services take null as a value, and often refuse it.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            Value::Object(object.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => other,
    }
}
