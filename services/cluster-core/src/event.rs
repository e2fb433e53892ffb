//! What happened to a cluster.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ClusterUuid, EventUuid};

/// Something that happened to a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its id; given when it is written.
    pub id: Option<EventUuid>,
    /// To which cluster.
    pub cluster: ClusterUuid,
    /// When.
    pub at: Timestamp,
    /// How bad it is.
    pub severity: Severity,
    /// One word: `CreateAsked`, `ServerCreated`.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Info,
    /// Odd, and borne.
    Warning,
    /// Somebody has to do something.
    Error,
}

impl Severity {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }

    /// What was written so.
    pub fn read(raw: &str) -> Option<Severity> {
        [Severity::Info, Severity::Warning, Severity::Error]
            .into_iter()
            .find(|it| it.as_str() == raw)
    }
}
