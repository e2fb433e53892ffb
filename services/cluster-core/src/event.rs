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

words::words! {
    /// The severity of an event, with its name in the API and the database.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        Info = "info",
        /// Unexpected, but work goes on.
        Warning = "warning",
        /// Somebody has to act.
        Error = "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_severity_has_the_same_name_in_the_database_and_in_json() {
        for severity in Severity::ALL {
            let name = severity.as_str();
            assert_eq!(serde_json::to_string(&severity).unwrap(), format!("{name:?}"));
            assert_eq!(Severity::find(name), Some(severity));
        }
        assert_eq!(Severity::find("Info"), None);
    }
}
