//! A row of the trail: an entry with its number, time and hashes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hash::{Hash, Head};
use crate::{Entry, Outcome};

/// A row of the trail, as it is stored and shown.
///
/// The fields hold whatever the database contained, also after tampering; only the hash proves that they are the fields that were written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Counted from 1, without gaps.
    pub number: i64,
    /// When the row was written.
    pub at: Timestamp,
    /// The service that wrote the row: `baremetald` or `clusterd`.
    pub service: String,
    /// The word for an [`Outcome`].
    pub outcome: String,
    /// HTTP status of the answer; 0 as long as there is none.
    pub status: i64,
    /// How many requests the row counts.
    pub times: i64,
    /// When the first of several counted requests was made.
    pub since: Option<Timestamp>,
    /// The id of the request. [`Entry`] describes this field and the fields below.
    pub request_id: String,
    pub global_request_id: String,
    pub user_id: String,
    pub user_name: String,
    pub project_id: String,
    pub roles: String,
    pub service_user_id: String,
    pub source: String,
    pub method: String,
    pub route: String,
    pub target: String,
    pub action: String,
    /// Hash of the row before; the text of [`Hash::NONE`] in the first row.
    pub previous: String,
    /// Hash of this row, see [`Row::digest`].
    pub hash: String,
}

/// The trail records at most this many characters of a text, so that a caller cannot decide how large a row is.
const LONGEST: usize = 255;

/// First input of every hash. A new meaning of the fields needs a new word here, or old rows would verify under the new meaning.
const DOMAIN: &[u8] = b"bedplate audit 1";

impl Row {
    /// Makes the row that follows `before` and records `entry`.
    pub fn after(before: Head, service: &str, entry: Entry, at: Timestamp) -> Row {
        let mut row = Row {
            number: before.number.saturating_add(1),
            at: whole_micros(at),
            service: sanitized(service),
            outcome: entry.outcome.as_str().to_owned(),
            status: i64::from(entry.status),
            times: i64::from(entry.times),
            since: entry.since.map(whole_micros),
            request_id: sanitized(&entry.request_id),
            global_request_id: sanitized(&entry.global_request_id),
            user_id: sanitized(&entry.user_id),
            user_name: sanitized(&entry.user_name),
            project_id: sanitized(&entry.project_id),
            roles: sanitized(&entry.roles),
            service_user_id: sanitized(&entry.service_user_id),
            source: sanitized(&entry.source),
            method: sanitized(&entry.method),
            route: sanitized(&entry.route),
            target: sanitized(&entry.target),
            action: sanitized(&entry.action),
            previous: before.hash.to_string(),
            hash: String::new(),
        };
        row.hash = row.digest().to_string();
        row
    }

    /// Computes the hash of the row: SHA-256 over a fixed text, then over every field except `hash` in the order of declaration. Each input
    /// is preceded by its length in bytes. Numbers, times (microseconds since 1970) and lengths are 8 bytes, big-endian.
    pub fn digest(&self) -> Hash {
        let Row { number, at, service, outcome, status, times, since, .. } = self;
        let Row { request_id, global_request_id, user_id, user_name, project_id, roles, .. } = self;
        let Row { service_user_id, source, method, route, target, action, previous, .. } = self;
        let mut hash = Sha256::new();
        let mut put = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        put(DOMAIN);
        put(&number.to_be_bytes());
        put(&at.as_microsecond().to_be_bytes());
        put(service.as_bytes());
        put(outcome.as_bytes());
        put(&status.to_be_bytes());
        put(&times.to_be_bytes());
        match since {
            Some(since) => put(&since.as_microsecond().to_be_bytes()),
            None => put(&[]),
        }
        for text in [
            request_id,
            global_request_id,
            user_id,
            user_name,
            project_id,
            roles,
            service_user_id,
            source,
            method,
            route,
            target,
            action,
            previous,
        ] {
            put(text.as_bytes());
        }
        Hash(hash.finalize().into())
    }

    /// Whether the row announces a request, in contrast to a row with the result of a request.
    pub fn is_asked(&self) -> bool {
        self.outcome == Outcome::Asked.as_str()
    }
}

/// Cuts a time to microseconds, the precision that a database keeps.
fn whole_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

/// Replaces control characters, which PostgreSQL cannot store (NUL) or which would control a terminal, and cuts the text to [`LONGEST`].
fn sanitized(text: &str) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(LONGEST).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(outcome: Outcome) -> Row {
        let entry = Entry {
            since: Some("2026-11-24T08:00:00.000001999Z".parse().unwrap()),
            ..Entry::new(outcome)
        };
        Row::after(Head::NONE, "clusterd", entry, "2026-11-24T09:00:00.123456789Z".parse().unwrap())
    }

    #[test]
    fn times_are_cut_to_what_a_database_keeps() {
        let row = row(Outcome::Refused);
        assert_eq!(row.at.to_string(), "2026-11-24T09:00:00.123456Z");
        assert_eq!(row.since.unwrap().to_string(), "2026-11-24T08:00:00.000001Z");
    }

    #[test]
    fn only_the_row_of_a_request_is_asked() {
        assert!(row(Outcome::Asked).is_asked());
        for outcome in [Outcome::Answered, Outcome::Abandoned, Outcome::Refused] {
            assert!(!row(outcome).is_asked(), "{outcome:?}");
        }
    }
}
