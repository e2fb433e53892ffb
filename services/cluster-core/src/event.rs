//! Events of clusters.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ClusterUuid, EventUuid};

/// Something that happened to a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// `None` until the store writes the event and gives it an id.
    pub id: Option<EventUuid>,
    pub cluster: ClusterUuid,
    pub at: Timestamp,
    pub severity: Severity,
    /// A word for programs: `CreateRequested`, `ServerCreated`.
    pub reason: String,
    /// The same for people.
    pub message: String,
}

impl Event {
    /// Makes an event of the cluster with this id.
    pub fn new(
        cluster: ClusterUuid,
        severity: Severity,
        reason: &str,
        message: String,
        at: Timestamp,
    ) -> Self {
        Event { id: None, cluster, at, severity, reason: reason.to_owned(), message }
    }
}

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    /// Unexpected, but work goes on.
    Warning,
    /// Somebody has to act.
    Error,
}

impl Severity {
    /// Returns the name of the severity in the API and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }

    /// Returns the severity of this name.
    pub fn read(raw: &str) -> Option<Severity> {
        [Severity::Info, Severity::Warning, Severity::Error]
            .into_iter()
            .find(|it| it.as_str() == raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_severity_has_the_same_name_in_the_database_and_in_json() {
        for severity in [Severity::Info, Severity::Warning, Severity::Error] {
            let name = severity.as_str();
            assert_eq!(serde_json::to_string(&severity).unwrap(), format!("{name:?}"));
            assert_eq!(Severity::read(name), Some(severity));
        }
        assert_eq!(Severity::read("Info"), None);
    }
}
