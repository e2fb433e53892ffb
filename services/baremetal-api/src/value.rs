//! Parses the value of a field, and names the mistake if the value is wrong.

use baremetal_core::{InvalidValue, NodeIdent, parse_flag, parse_object, parse_text};
use hardware::MacAddress;
use jiff::Timestamp;
use openstack_api::ApiError;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Why a part of a path does not identify a resource.
pub(crate) fn malformed(ident: &str, expected: &str) -> String {
    let shown: String = ident.chars().take(64).collect();
    format!("expected {expected}, and received {shown:?}")
}

/// Text of at most `longest` bytes. Empty text counts as null.
pub(crate) fn text(name: &str, value: Value, longest: usize) -> Result<Option<String>, ApiError> {
    parse_text(value, longest).map_err(|why| ApiError::bad_field(name, why))
}

/// An object; null is an empty object.
pub(crate) fn object(name: &str, value: Value) -> Result<Map<String, Value>, ApiError> {
    parse_object(value).map_err(|why| ApiError::bad_field(name, why))
}

/// A list of at most `most` elements; null is an empty list.
pub(crate) fn list(name: &str, value: Value, most: usize) -> Result<Vec<Value>, ApiError> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) if list.len() > most => {
            Err(ApiError::bad_field(name, format!("at most {most} are allowed")))
        }
        Value::Array(list) => Ok(list),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            Err(wrong(name, "a list", &other))
        }
    }
}

/// A boolean or null; also accepts booleans as text.
pub(crate) fn boolean(name: &str, value: Value) -> Result<Option<bool>, ApiError> {
    parse_flag(value).map_err(|why| ApiError::bad_field(name, why))
}

/// A boolean or null, and no text.
pub(crate) fn strict_boolean(name: &str, value: &Value) -> Result<Option<bool>, ApiError> {
    let read = if value.is_null() { Some(None) } else { value.as_bool().map(Some) };
    read.ok_or_else(|| wrong(name, "a boolean", value))
}

pub(crate) fn integer(name: &str, value: &Value) -> Result<i64, ApiError> {
    value.as_i64().ok_or_else(|| wrong(name, "a whole number", value))
}

/// Text of at most 255 bytes that is not empty.
pub(crate) fn required_text(name: &str, value: Value) -> Result<String, ApiError> {
    text(name, value, 255)?.ok_or_else(|| ApiError::bad_field(name, "is required"))
}

/// A name that is legal in a URL and is no UUID, or null.
pub(crate) fn name(field: &str, value: Value) -> Result<Option<String>, ApiError> {
    let Some(raw) = text(field, value, 255)? else { return Ok(None) };
    match raw.parse() {
        Ok(NodeIdent::Name(_)) => Ok(Some(raw)),
        Ok(NodeIdent::Id(_)) | Err(_) => {
            Err(ApiError::bad_field(field, format!("{raw:?} is not a valid name")))
        }
    }
}

/// A MAC address, or null. As in Ironic, any address is valid, also a multicast one, which no machine sends from.
pub(crate) fn mac_address(name: &str, value: Value) -> Result<Option<MacAddress>, ApiError> {
    let Some(raw) = text(name, value, 64)? else { return Ok(None) };
    raw.parse().map(Some).map_err(|why| ApiError::bad_field(name, why))
}

/// A UUID or null.
pub(crate) fn uuid(name: &str, value: Value) -> Result<Option<Uuid>, ApiError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Uuid::parse_str(&text)
            .map(Some)
            .map_err(|_| ApiError::bad_field(name, "must be a UUID")),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(wrong(name, "a UUID", &other))
        }
    }
}

/// A time with its offset from UTC, as OpenStack writes times, or null.
pub(crate) fn time(name: &str, value: Value) -> Result<Option<Timestamp>, ApiError> {
    let Some(raw) = text(name, value, 64)? else { return Ok(None) };
    let malformed =
        |_| ApiError::bad_field(name, "must be a time such as 2026-01-31T23:59:59+00:00");
    raw.parse().map(Some).map_err(malformed)
}

/// The id of a VIF, which is a UUID or a name as in Ironic.
pub(crate) fn check_vif(name: &str, vif: &str) -> Result<(), ApiError> {
    match vif.parse::<NodeIdent>() {
        Ok(NodeIdent::Id(_) | NodeIdent::Name(_)) => Ok(()),
        Err(_) => Err(ApiError::bad_field(name, "must be a UUID or a name")),
    }
}

/// The VIF in the internal information of a port or a port group. All other internal information is Ironic's own and is refused.
pub(crate) fn attached_vif(name: &str, value: Value) -> Result<Option<String>, ApiError> {
    const VIF: &str = "tenant_vif_port_id";
    let mut info = object(name, value)?;
    let place = format!("{name}.{VIF}");
    let vif = text(&place, info.remove(VIF).unwrap_or_default(), 255)?;
    if let Some(other) = info.keys().next() {
        let other: String = other.chars().take(64).collect();
        return Err(ApiError::bad_field(&format!("{name}.{other}"), "cannot be imported"));
    }
    vif.iter().try_for_each(|vif| check_vif(&place, vif))?;
    Ok(vif)
}

fn wrong(name: &str, wanted: &str, got: &Value) -> ApiError {
    ApiError::bad_field(name, InvalidValue::kind(wanted, got))
}
