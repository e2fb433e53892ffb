//! The health of a cluster in Magnum's words, and the report of a client about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

words::words! {
    /// Magnum's health of a cluster, in Magnum's words.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum Health {
        /// All nodes are ready.
        Healthy = "HEALTHY",
        /// Some nodes are not ready.
        Unhealthy = "UNHEALTHY",
        /// Kubernetes could not be asked, or the cluster was never complete.
        #[default]
        Unknown = "UNKNOWN",
    }
}

/// The health that a client reported, such as an auto-healer that reaches the API of a private cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedHealth {
    pub status: Health,
    /// By a word of the client: `api`, `node-0.Ready`.
    pub reason: BTreeMap<String, String>,
}

impl ReportedHealth {
    /// Returns the report after a patch; `Some(None)` as status takes the report back.
    pub fn patched(
        before: Option<ReportedHealth>,
        status: Option<Option<Health>>,
        reason: Option<BTreeMap<String, String>>,
    ) -> Option<ReportedHealth> {
        let report = match status {
            Some(None) => return None,
            Some(Some(status)) => ReportedHealth { status, ..before.unwrap_or_default() },
            None if reason.is_none() => return before,
            None => before.unwrap_or_default(),
        };
        Some(match reason {
            Some(reason) => ReportedHealth { reason, ..report },
            None => report,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_a_part_of_a_report_or_takes_it_back() {
        let reason = |text: &str| BTreeMap::from([("api".to_owned(), text.to_owned())]);
        let report = |status, text| Some(ReportedHealth { status, reason: reason(text) });
        let patched = ReportedHealth::patched;
        let first = patched(None, Some(Some(Health::Unhealthy)), Some(reason("a")));
        assert_eq!(first, report(Health::Unhealthy, "a"));
        let second = patched(first.clone(), Some(Some(Health::Healthy)), None);
        assert_eq!(second, report(Health::Healthy, "a"));
        assert_eq!(patched(first.clone(), None, Some(reason("b"))), report(Health::Unhealthy, "b"));
        assert_eq!(patched(None, None, Some(reason("b"))), report(Health::Unknown, "b"));
        assert_eq!(patched(first.clone(), None, None), first);
        assert_eq!(patched(first, Some(None), Some(reason("b"))), None);
    }

    #[test]
    fn a_health_has_the_same_name_in_the_database_and_in_the_api() {
        for health in Health::ALL {
            let json = serde_json::to_string(&health).unwrap();
            assert_eq!(json, format!("{:?}", health.as_str()));
        }
    }
}
