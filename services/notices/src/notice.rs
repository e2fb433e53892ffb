//! A notice, in the form that receivers get it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The longest subject of a mail, in characters.
const LONGEST_SUBJECT: usize = 200;

/// A notification about an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The same for every attempt and every receiver, so that a receiver can recognise duplicates.
    pub id: Uuid,
    /// When the notice was written.
    pub at: Timestamp,
    /// The event in a form for programs: `lease.ends`.
    pub event: String,
    /// The event in one line.
    pub subject: String,
    /// The event in readable sentences, with what the reader can do about it.
    pub text: String,
    /// The project that owns the subject of the notice.
    pub project_id: Option<String>,
    pub about: NoticeSubject,
    /// Further facts about the event, for programs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// The cluster, VM or node that a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeSubject {
    /// `cluster`, `machine` or `node`.
    #[serde(rename = "type")]
    pub kind: String,
    pub id: String,
    pub name: String,
}

impl Notice {
    /// The subject as one line. Names come from other users, and a line break in a name must not start a new mail header.
    pub(crate) fn subject_line(&self) -> String {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        self.subject.chars().map(plain).take(LONGEST_SUBJECT).collect()
    }
}
