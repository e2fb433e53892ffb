//! A row of the trail: an entry in its place.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hash::{Hash, Head};
use crate::{Entry, Outcome};

/// A row of the trail, as it is kept and shown.
///
/// Its fields are what was found, whatever it is: whether that is what was written, the hash says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its place, counted from 1 without gaps.
    pub number: i64,
    /// When it was written.
    pub at: Timestamp,
    /// The service that wrote it: `baremetald`, `clusterd`.
    pub service: String,
    /// How far the request had come: see [`Outcome`].
    pub outcome: String,
    /// The status of the answer; 0 before there is one.
    pub status: i64,
    /// How many requests it is about.
    pub times: i64,
    /// When the first of several was made.
    pub since: Option<Timestamp>,
    /// The request's own id. More on this and on what follows is said at [`Entry`].
    pub request_id: String,
    /// The id that whoever sent it gave it.
    pub global_request_id: String,
    /// Who asked.
    pub user_id: String,
    /// Their name.
    pub user_name: String,
    /// The project that their token is valid in.
    pub project_id: String,
    /// Their roles there.
    pub roles: String,
    /// The service that sent it on.
    pub service_user_id: String,
    /// Where it came from.
    pub source: String,
    /// The method.
    pub method: String,
    /// The route.
    pub route: String,
    /// What stood in the path for its parts that vary.
    pub target: String,
    /// What the route does.
    pub action: String,
    /// The hash of the row before: [`Hash::NONE`] before the first.
    pub previous: String,
    /// Its own.
    pub hash: String,
}

/// So much of a text is recorded, in characters. Whoever asks does not decide how large a row is.
const LONGEST: usize = 255;

/// What every hash begins with: another meaning of the fields is another word.
const DOMAIN: &[u8] = b"bedplate audit 1";

impl Row {
    /// The row after `before` that records `entry`.
    pub fn after(before: Head, service: &str, entry: Entry, at: Timestamp) -> Row {
        let mut row = Row {
            number: before.number.saturating_add(1),
            at: whole_micros(at),
            service: plain(service),
            outcome: entry.outcome.as_str().to_owned(),
            status: i64::from(entry.status),
            times: i64::from(entry.times),
            since: entry.since.map(whole_micros),
            request_id: plain(&entry.request_id),
            global_request_id: plain(&entry.global_request_id),
            user_id: plain(&entry.user_id),
            user_name: plain(&entry.user_name),
            project_id: plain(&entry.project_id),
            roles: plain(&entry.roles),
            service_user_id: plain(&entry.service_user_id),
            source: plain(&entry.source),
            method: plain(&entry.method),
            route: plain(&entry.route),
            target: plain(&entry.target),
            action: plain(&entry.action),
            previous: before.hash.to_string(),
            hash: String::new(),
        };
        row.hash = row.digest().to_string();
        row
    }

    /// The hash that the row has to have: SHA-256 over a word, then every field but the hash in the order of its declaration, each as
    /// its length in bytes and its bytes. Numbers and times (microseconds since 1970) are 8 bytes; lengths too, the highest byte first.
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

    /// Whether it says that a request was asked.
    pub fn is_asked(&self) -> bool {
        self.outcome == Outcome::Asked.as_str()
    }
}

/// As a database keeps it.
fn whole_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

/// Text that every database keeps as it is, and no terminal obeys.
fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(LONGEST).map(plain).collect()
}
