//! What is told, as receivers get it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The longest subject of a mail, in characters.
const LONGEST_SUBJECT: usize = 200;

/// Something that somebody is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Its id: who gets it twice knows it again.
    pub id: Uuid,
    /// When it was written.
    pub at: Timestamp,
    /// What happened, for programs: `lease.ends`.
    pub event: String,
    /// The same in a line.
    pub subject: String,
    /// The same for people, with what to do about it.
    pub text: String,
    /// Whose it is.
    pub project_id: Option<String>,
    /// What it is about.
    pub about: About,
    /// Further particulars, for programs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// What a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// `cluster`, `machine`, `node`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
}

impl Notice {
    /// The subject as one line: names are other people's, and a line break in one begins no header.
    pub(crate) fn subject_line(&self) -> String {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        self.subject.chars().map(plain).take(LONGEST_SUBJECT).collect()
    }
}
