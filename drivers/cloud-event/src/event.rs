//! A notification, and its JSON as a CloudEvent. <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md>

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

/// The media type of an event in structured mode.
pub const CONTENT_TYPE: &str = "application/cloudevents+json; charset=utf-8";

/// A notification about a change of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The type of the event, in the words of OpenStack's services.
    pub kind: String,
    pub level: EventLevel,
    /// The id of the object. Notifications about one object are sent in the order of the changes.
    pub object: String,
    pub data: Value,
}

/// The severity of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLevel {
    Info,
    Error,
}

/// A notification with its identity.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudEvent<'n> {
    /// The same for every attempt and every webhook, so that a receiver recognises repetitions.
    pub id: Uuid,
    /// The program that made the change, as a URI reference.
    pub source: &'n str,
    pub at: Timestamp,
    /// The header `traceparent` of the request or turn that made the change.
    pub traceparent: Option<&'n str>,
    pub notification: &'n Notification,
}

impl EventLevel {
    /// The level in the words of OpenStack's services.
    pub const fn as_str(self) -> &'static str {
        match self {
            EventLevel::Info => "info",
            EventLevel::Error => "error",
        }
    }
}

impl CloudEvent<'_> {
    /// Writes the event as JSON, without its sequence number.
    pub fn json(&self) -> String {
        let Notification { kind, level, object, data } = self.notification;
        let mut event = json!({
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": kind,
            "subject": object,
            "time": self.at.to_string(),
            "datacontenttype": "application/json",
            "level": level.as_str(),
            "data": data,
        });
        // Extension "Distributed Tracing" of CloudEvents.
        if let (Some(traceparent), Some(event)) = (self.traceparent, event.as_object_mut()) {
            event.insert("traceparent".to_owned(), traceparent.into());
        }
        event.to_string()
    }
}

/// Adds the sequence number to an event of [`CloudEvent::json`]. Extension "Sequence" of CloudEvents: numbers compare as text.
pub fn with_sequence(event: &str, number: i64) -> String {
    format!("{{\"sequence\":\"{number:020}\",{}", event.get(1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_attributes_of_the_specification() {
        let notification = Notification {
            kind: "baremetal.node.power_set.start".to_owned(),
            level: EventLevel::Info,
            object: "n".to_owned(),
            data: json!({"a": 1}),
        };
        let event = CloudEvent {
            id: Uuid::nil(),
            source: "/baremetald/r1",
            at: Timestamp::UNIX_EPOCH,
            traceparent: Some("00-1-2-01"),
            notification: &notification,
        };
        let sent: Value = serde_json::from_str(&with_sequence(&event.json(), 7)).unwrap();
        let want = json!({
            "specversion": "1.0", "id": "00000000-0000-0000-0000-000000000000", "source": "/baremetald/r1",
            "type": "baremetal.node.power_set.start", "subject": "n", "time": "1970-01-01T00:00:00Z",
            "datacontenttype": "application/json", "level": "info", "traceparent": "00-1-2-01",
            "sequence": "00000000000000000007", "data": {"a": 1},
        });
        assert_eq!(sent, want);
        let without = CloudEvent { traceparent: None, ..event };
        assert!(!without.json().contains("traceparent"));
    }
}
