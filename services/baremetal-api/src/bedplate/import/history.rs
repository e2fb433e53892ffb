//! Parses the history that another service recorded of a node.

use baremetal_core::{HistoryEntry, HistoryUuid, NodeUuid, Severity};
use newtype_uuid::GenericUuid;
use openstack_api::ApiError;
use serde_json::{Map, Value};

use crate::value::{integer, text, time, uuid};

/// The longest event in bytes, as in Ironic's database.
const LONGEST_EVENT: usize = 1 << 16;
/// The longest of all other texts in bytes, as in Ironic's database.
const LONGEST_WORD: usize = 255;

/// Parses an entry as Ironic shows it in detail, without links.
pub(super) fn entry(node: NodeUuid, body: Map<String, Value>) -> Result<HistoryEntry, ApiError> {
    let mut fields = Fields(body);
    let id = uuid("uuid", fields.take("uuid"))?.ok_or_else(|| required("uuid"))?;
    let at = time("created_at", fields.take("created_at"))?;
    let entry = HistoryEntry {
        id: Some(HistoryUuid::from_untyped_uuid(id)),
        node,
        at: at.ok_or_else(|| required("created_at"))?,
        severity: severity(fields.word("severity")?)?,
        from: fields.word("state")?.unwrap_or_default(),
        to: fields.word("event_type")?.unwrap_or_default(),
        target: fields.word("target_provision_state")?,
        seconds: seconds(&fields.take("duration_seconds"))?,
        event: text("event", fields.take("event"), LONGEST_EVENT)?.unwrap_or_default(),
        user: fields.word("user")?,
        project: fields.word("project")?,
    };
    match fields.0.keys().next() {
        Some(other) => {
            let other: String = other.chars().take(64).collect();
            Err(ApiError::bad_request(format!("{other}: unknown field of a history entry")))
        }
        None => Ok(entry),
    }
}

/// The fields that are not parsed yet.
struct Fields(Map<String, Value>);

impl Fields {
    /// Removes a field; a missing one is null.
    fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_default()
    }

    fn word(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        text(name, self.take(name), LONGEST_WORD)
    }
}

/// Ironic records no other severities (ironic, `node_history_record`).
fn severity(word: Option<String>) -> Result<Severity, ApiError> {
    let Some(word) = word else { return Ok(Severity::Info) };
    Severity::find(&word).ok_or_else(|| ApiError::bad_field("severity", "must be INFO or ERROR"))
}

fn seconds(value: &Value) -> Result<Option<i64>, ApiError> {
    if value.is_null() { Ok(None) } else { integer("duration_seconds", value).map(Some) }
}

fn required(name: &str) -> ApiError {
    ApiError::bad_field(name, "is required")
}
