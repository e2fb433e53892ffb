//! Masks secrets in `driver_info` and `instance_info`, and keeps the stored secret if a client sends the mask back.

use std::sync::LazyLock;

use baremetal_core::is_secret;
use openstack_api::ApiError;
use sealing::is_sealed;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

/// Shown in place of a secret.
const MASK: &str = "******";

/// Serializes an object with its secrets masked at any depth.
pub(crate) struct Masked<'a>(pub(crate) &'a Map<String, Value>);

/// Serializes a value like [`Masked`].
pub(crate) struct MaskedValue<'a>(pub(crate) &'a Value);

impl Serialize for Masked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0 {
            let hidden = is_secret(key) && !value.is_null();
            if hidden {
                object.serialize_entry(key, MASK)?;
            } else {
                object.serialize_entry(key, &MaskedValue(value))?;
            }
        }
        object.end()
    }
}

impl Serialize for MaskedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(object) => Masked(object).serialize(serializer),
            Value::Array(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&MaskedValue(value))?;
                }
                list.end()
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                plain.serialize(serializer)
            }
        }
    }
}

/// Whether the value is the mask of a secret.
pub(crate) fn is_mask(value: &Value) -> bool {
    value == MASK
}

/// Replaces each mask in `after` by the sealed secret of `before`.
///
/// A mask without a stored secret is refused, because the mask would become the password. A value that looks sealed is refused as well,
/// unless it is the stored one.
pub(crate) fn restore_masked(
    field: &str,
    before: &Map<String, Value>,
    after: &mut Map<String, Value>,
) -> Result<(), ApiError> {
    for (key, value) in after {
        let known = before.get(key);
        match value {
            Value::String(text) => {
                if let Some(secret) = restored(text, key, known)
                    .map_err(|problem| ApiError::bad_field(&secret_field(field, key), problem))?
                {
                    *value = secret.clone();
                }
            }
            Value::Object(inner) => {
                restore_masked(&format!("{field}.{key}"), object(known), inner)?;
            }
            Value::Array(values) => {
                let known = known.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                for (at, value) in values.iter_mut().enumerate() {
                    let Value::Object(inner) = value else { continue };
                    restore_masked(&format!("{field}.{key}[{at}]"), object(known.get(at)), inner)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Ok(())
}

/// Returns the stored secret that `text` is the mask of; `None`: the text is stored as it is.
fn restored<'k>(
    text: &str,
    key: &str,
    known: Option<&'k Value>,
) -> Result<Option<&'k Value>, &'static str> {
    // Such a value would later be taken for a secret that this service sealed.
    if is_sealed(text) && known.is_none_or(|known| known != text) {
        return Err("must not look like a sealed secret");
    }
    if text != MASK || !is_secret(key) {
        return Ok(None);
    }
    let missing = "is the mask ******, but no secret is stored: send the secret itself";
    known.map(Some).ok_or(missing)
}

/// The name of a field in a message, with the caller's key cut to 64 characters.
fn secret_field(field: &str, key: &str) -> String {
    let key: String = key.chars().take(64).collect();
    format!("{field}.{key}")
}

/// The object of a stored value, which is empty when the value is none.
fn object(known: Option<&Value>) -> &Map<String, Value> {
    static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    known.and_then(Value::as_object).unwrap_or(&NOTHING)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn secrets_are_masked_at_any_depth() {
        let info = object(json!({
            "redfish_address": "https://10.0.0.1", "redfish_password": "s3cret", "Agent_TOKEN": 5, "ipmi_password": null,
            "nested": {"list": [{"snmp_secret": {"a": 1}}]},
        }));
        assert_eq!(
            serde_json::to_value(Masked(&info)).unwrap(),
            json!({
                "redfish_address": "https://10.0.0.1", "redfish_password": "******", "Agent_TOKEN": "******",
                "ipmi_password": null, "nested": {"list": [{"snmp_secret": "******"}]},
            }),
        );
    }

    #[test]
    fn a_mask_is_never_stored() {
        let before = object(json!({"redfish_password": "s3cret", "nested": [{"token": "t"}]}));
        let mut after = object(
            json!({"redfish_password": "******", "nested": [{"token": "******"}], "note": "******"}),
        );
        restore_masked("driver_info", &before, &mut after).unwrap();
        assert_eq!(
            after,
            object(
                json!({"redfish_password": "s3cret", "nested": [{"token": "t"}], "note": "******"})
            )
        );

        let mut after = object(json!({"ipmi_password": "******"}));
        let why = restore_masked("driver_info", &before, &mut after).unwrap_err();
        assert_eq!(
            why.message,
            "driver_info.ipmi_password: is the mask ******, but no secret is stored: send the secret itself"
        );
    }
}
