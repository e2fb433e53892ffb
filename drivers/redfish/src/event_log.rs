//! The system event log (DSP0268 `LogService`, `LogEntry`).

use bmc::{BmcError, LogEntry, Result};
use serde_json::Value;

use crate::document::Document;
use crate::service::Service;

/// The most entries that are read of a log.
const MOST_ENTRIES: usize = 4096;

impl Service {
    /// Returns the newest `limit` entries, oldest first.
    pub(crate) async fn read_event_log(&self, limit: usize) -> Result<Vec<LogEntry>> {
        let system = self.system().await?.body;
        let mut services = self.log_services(&system).await?;
        // A log of the system is preferred; some BMCs keep the system's log with the manager.
        if services.iter().all(|service| rank(service) == 0) {
            for manager in self.managers(&system).await? {
                if let Some(manager) = self.find(&manager).await? {
                    services.extend(self.log_services(&manager.body).await?);
                }
            }
        }
        let best = services.iter().rev().max_by_key(|service| rank(service));
        let nothing = || BmcError::Unsupported { what: "show an event log".to_owned() };
        let entries = best.and_then(|service| self.link(service, "Entries")).ok_or_else(nothing)?;
        let entries = self.list(&entries, MOST_ENTRIES).await?.ok_or_else(nothing)?;
        Ok(newest(&self.each(&ends(entries, limit)).await?, limit))
    }

    async fn log_services(&self, of: &Value) -> Result<Vec<Value>> {
        match self.link(of, "LogServices") {
            Some(services) => self.members(&services).await,
            None => Ok(Vec::new()),
        }
    }
}

/// Ranks a log by how likely it is the system event log: IPMI's by type or name first, then HPE's by its name (Integrated Management Log),
/// then any log that is not about logins to the BMC.
fn rank(service: &Value) -> u8 {
    let name = format!("{} {}", service.word("Id"), service.word("Name")).to_ascii_lowercase();
    let named = |word: &str| name.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
    match service.word("LogEntryType") {
        "SEL" => 4,
        _ if named("sel") => 4,
        _ if named("iml") => 3,
        "Event" => 2,
        _ if name.contains("event") => 2,
        _ if name.contains("audit") || name.contains("dump") => 0,
        _ => 1,
    }
}

/// Returns the first and the last `limit` entries. A log is in ascending or in descending order, so its newest entries are among these, and
/// the others need not be fetched.
fn ends(mut entries: Vec<Value>, limit: usize) -> Vec<Value> {
    if entries.len() / 2 > limit {
        entries.drain(limit..entries.len() - limit);
    }
    entries
}

/// Sorts by time, because collections come in either order; entries with the same time keep their order.
fn newest(entries: &[Value], limit: usize) -> Vec<LogEntry> {
    let mut entries: Vec<LogEntry> = entries.iter().map(entry).collect();
    let ascending = entries.is_sorted_by_key(|entry| entry.at);
    if !ascending {
        entries.sort_by_key(|entry| entry.at);
    }
    entries.split_off(entries.len().saturating_sub(limit))
}

fn entry(entry: &Value) -> LogEntry {
    LogEntry {
        id: entry.text("Id").unwrap_or_default(),
        at: time(entry.word("Created")).or_else(|| time(entry.word("EventTimestamp"))),
        message: entry
            .text("Message")
            .or_else(|| entry.text("MessageId"))
            .or_else(|| entry.text("Name"))
            .unwrap_or_default(),
    }
}

/// DSP0266 §9.3.2: ISO 8601 with an offset. A BMC without a clock sends 1970 or nothing.
fn time(raw: &str) -> Option<i64> {
    let at = raw.trim().parse::<jiff::Timestamp>().ok()?.as_second();
    (at > 0).then_some(at)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(entries: Value, limit: usize, want: Expect) {
        let entries = newest(entries.as_array().unwrap(), limit);
        let lines = entries.iter().map(|e| format!("{} {:?} {}", e.id, e.at, e.message));
        want.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn the_newest_come_last_whatever_the_order() {
        let a = json!({"Id": "1", "Created": "2024-05-01T10:00:00Z", "Message": "fan removed"});
        let b = json!({"Id": "2", "Created": "2024-05-01T12:00:00+02:00", "Message": "same time"});
        let c = json!({"Id": "3", "Created": "2024-05-02T00:00:00-05:00", "MessageId": "X.1"});
        let want = || {
            expect![[r#"
                2 Some(1714557600) same time
                3 Some(1714626000) X.1"#]]
        };
        check(json!([a, b, c]), 2, want());
        check(json!([c, a, b]), 2, want());
    }

    #[test]
    fn entries_without_a_clock_keep_their_order() {
        check(
            json!([{"Id": "1", "Created": ""}, {"Id": "2", "Created": "1970-01-01T00:00:00Z"}, 7]),
            9,
            expect![[r#"
                1 None 
                2 None 
                 None "#]],
        );
        check(json!([]), 3, expect![""]);
    }

    #[test]
    fn only_the_ends_of_a_long_log_matter() {
        let log: Vec<Value> = (0..9).map(|id| json!(id)).collect();
        assert_eq!(json!(ends(log.clone(), 2)), json!([0, 1, 7, 8]));
        assert_eq!(ends(log.clone(), 4).len(), 9);
        assert_eq!(ends(log, 0).len(), 0);
    }

    #[test]
    fn the_system_event_log_is_preferred() {
        let ranked = |id: &str| rank(&json!({"Id": id}));
        assert!(ranked("Sel") > ranked("IML"));
        assert!(ranked("IML") > ranked("EventLog"));
        assert!(ranked("EventLog") > ranked("Lclog"));
        assert!(ranked("Lclog") > ranked("AuditLog"));
        assert_eq!(ranked("SelectionCriteria"), 1);
        assert_eq!(rank(&json!({"Id": "1", "LogEntryType": "SEL"})), 4);
    }

    proptest! {
        #[test]
        fn no_time_panics(raw: String) {
            let _ = time(&raw);
        }
    }
}
