//! The promises of the store, tested on both databases.
#![expect(clippy::unwrap_used, reason = "a failed precondition ends the test")]

use std::time::Duration;

use console_store::{GuessLimit, NewSession, SCHEMA, SessionLimits, SessionUse, Store};
use database::scratch::Scratch;
use jiff::{SignedDuration, Timestamp};

const TIMEOUT: Duration = Duration::from_secs(10);
const HOUR: Duration = Duration::from_secs(3600);
const LIMITS: SessionLimits = SessionLimits { at_most: 2, idle_timeout: Duration::from_secs(10) };

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

async fn in_memory() -> Store {
    Store::open_within("sqlite::memory:", TIMEOUT).await.unwrap()
}

/// Two programs on one PostgreSQL.
async fn two() -> Option<(Scratch, Store, Store)> {
    let scratch = Scratch::postgres().await?;
    let open = async || Store::open_within(&scratch.url, TIMEOUT).await.unwrap();
    let (one, other) = (open().await, open().await);
    Some((scratch, one, other))
}

fn session(id: &str, lifetime: Duration) -> NewSession {
    NewSession { id: id.to_owned(), sealed: format!("sealed {id}"), lifetime }
}

#[tokio::test]
async fn an_idle_or_ended_session_is_not_found() {
    let store = in_memory().await;
    let twenty_five = Duration::from_secs(25);
    store.insert_session(&session("a", twenty_five), LIMITS, at(0)).await.unwrap();
    let find = async |id: &str, by, seconds| {
        store.find_session(id, by, LIMITS, at(seconds)).await.unwrap().is_some()
    };
    for seconds in [9, 18, 24] {
        assert!(find("a", SessionUse::Request, seconds).await, "{seconds}");
    }
    assert!(!find("a", SessionUse::Request, 25).await);
    store.insert_session(&session("b", HOUR), LIMITS, at(30)).await.unwrap();
    assert!(find("b", SessionUse::Check, 39).await);
    assert!(!find("b", SessionUse::Check, 41).await, "a check is no use");
    assert!(!find("c", SessionUse::Check, 30).await);
}

#[tokio::test]
async fn a_new_session_replaces_the_one_that_was_idle_longest() {
    let store = in_memory().await;
    for (id, seconds) in [("a", 0), ("b", 1)] {
        store.insert_session(&session(id, HOUR), LIMITS, at(seconds)).await.unwrap();
    }
    store.find_session("a", SessionUse::Request, LIMITS, at(3)).await.unwrap();
    store.insert_session(&session("c", HOUR), LIMITS, at(4)).await.unwrap();
    let mut there = Vec::new();
    for id in ["a", "b", "c"] {
        there.push(store.find_session(id, SessionUse::Check, LIMITS, at(4)).await.unwrap());
    }
    let sealed = |id: &str| Some(format!("sealed {id}"));
    assert_eq!(there, [sealed("a"), None, sealed("c")]);
    assert_eq!(store.remove_session("a").await.unwrap(), sealed("a"));
    assert_eq!(store.remove_session("a").await.unwrap(), None);
}

#[tokio::test]
async fn a_session_of_one_program_is_known_to_the_other() {
    let Some((_scratch, one, other)) = two().await else { return };
    assert!(one.is_shared());
    one.insert_session(&session("a", HOUR), LIMITS, at(0)).await.unwrap();
    let found = other.find_session("a", SessionUse::Request, LIMITS, at(0)).await.unwrap();
    assert_eq!(found.as_deref(), Some("sealed a"));
    other.remove_session("a").await.unwrap();
    assert_eq!(one.find_session("a", SessionUse::Check, LIMITS, at(0)).await.unwrap(), None);
}

fn limit(id: &str, at_once: u32) -> GuessLimit {
    GuessLimit { id: id.to_owned(), every: Duration::from_secs(3), at_once }
}

#[tokio::test]
async fn guesses_are_taken_until_a_bucket_is_empty() {
    let store = in_memory().await;
    let (narrow, wide) = (limit("ann", 2), limit("10.0.0.1", 4));
    let both = [narrow.clone(), wide.clone()];
    for _ in 0..2 {
        assert_eq!(store.take_guesses(&both, at(0)).await.unwrap(), Duration::ZERO);
    }
    let wait = store.take_guesses(&both, at(1)).await.unwrap();
    assert_eq!(wait, Duration::from_secs(2));
    // Nothing was taken from the other bucket, which has two left.
    let mut waits = Vec::new();
    for _ in 0..3 {
        waits.push(store.take_guesses(std::slice::from_ref(&wide), at(1)).await.unwrap());
    }
    assert_eq!(waits, [Duration::ZERO, Duration::ZERO, Duration::from_secs(2)]);
    let take = async || store.take_guesses(std::slice::from_ref(&narrow), at(3)).await.unwrap();
    assert_eq!(take().await, Duration::ZERO);
    assert_eq!(take().await, Duration::from_secs(3));
    store.give_back_guesses(std::slice::from_ref(&narrow)).await.unwrap();
    assert_eq!(take().await, Duration::ZERO);
}

#[tokio::test]
async fn programs_take_from_the_same_buckets() {
    let Some((_scratch, one, other)) = two().await else { return };
    let slow = GuessLimit { every: HOUR, ..limit("ann", 2) };
    for store in [&one, &other] {
        let taken = store.take_guesses(std::slice::from_ref(&slow), at(0)).await.unwrap();
        assert_eq!(taken, Duration::ZERO);
    }
    assert_ne!(one.take_guesses(&[slow], at(0)).await.unwrap(), Duration::ZERO);
}

/// The rows of each version, starting with version 1.
const FIXTURES: &[&str] = &[include_str!("fixtures/version-1.sql")];

#[test]
fn every_version_of_the_tables_has_a_fixture() {
    assert_eq!(FIXTURES.len(), SCHEMA.len(), "a new version needs tests/fixtures/version-N.sql");
}

#[test]
fn no_script_waits_for_older_consoles() {
    assert!(SCHEMA.iter().all(|sql| !sql.contains("-- needs schema")), "consoles have no leases");
}

#[tokio::test]
async fn every_version_is_opened_and_read() {
    for version in 1..=FIXTURES.len() {
        let mut scratches = vec![Scratch::sqlite()];
        scratches.extend(Scratch::postgres().await);
        for scratch in scratches {
            is_read(&scratch, version).await;
        }
    }
}

async fn is_read(scratch: &Scratch, version: usize) {
    scratch.fill(&SCHEMA[..version], FIXTURES[version - 1]).await;
    let store = Store::open_within(&scratch.url, TIMEOUT).await.unwrap();
    let forever = SessionLimits { idle_timeout: Duration::from_secs(4_000_000_000), ..LIMITS };
    let now = at(3_999_999_999);
    let found = store.find_session("a", SessionUse::Check, forever, now).await.unwrap();
    assert_eq!(found.as_deref(), Some("sealed a"), "version {version}");
    let limit = GuessLimit { id: "b".to_owned(), every: HOUR, at_once: 1 };
    let wait = store.take_guesses(&[limit], now).await.unwrap();
    assert!(wait > Duration::ZERO, "version {version}");
}
