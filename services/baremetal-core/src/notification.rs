//! The notifications about a change, with the types and the versioned payloads of Ironic's.
//!
//! A notification is written in the transaction of the change that it reports. So creations, updates and deletions have no `start`: when
//! one could be sent, the change is done. A refused request changes nothing and has no `error`.

mod node;
mod node_payload;
mod resource;

use cloud_event::{EventLevel, Notification};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::secret::is_secret;

pub use node::node_notifications;
pub use resource::{
    Notified, RecordChange, allocation_notification, port_notification, resource_notification,
};

/// Shown in place of a secret, as in the API.
const MASK: &str = "******";

/// The class and the version of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadVersion {
    pub name: &'static str,
    pub version: &'static str,
}

/// Returns a notification whose payload is a versioned object of Ironic.
fn versioned(
    kind: String,
    level: EventLevel,
    object: String,
    payload: PayloadVersion,
    data: Map<String, Value>,
) -> Notification {
    let mut data = Value::Object(data);
    mask(&mut data);
    let data = json!({
        "ironic_object.name": payload.name,
        "ironic_object.namespace": "ironic",
        "ironic_object.version": payload.version,
        "ironic_object.data": data,
    });
    Notification { kind, level, object, data }
}

/// Replaces the secrets in a value, at any depth, sealed ones too.
fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if is_secret(key) && !value.is_null() {
                    *value = MASK.into();
                } else {
                    mask(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The time as oslo.versionedobjects writes it, with whole seconds.
fn time(at: Timestamp) -> Value {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

fn maybe_time(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, time)
}

/// The fields of an object that `json!` made.
fn fields(object: Value) -> Map<String, Value> {
    if let Value::Object(fields) = object { fields } else { Map::new() }
}
