//! Sessions in the memory of one process, limited in number and duration.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};

use crate::config::Sessions as Limits;
use crate::session::Session;

/// The sessions of this process. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct MemorySessions {
    limits: Limits,
    /// By a digest of the cookie, so that a side channel into this memory reveals no cookie.
    open: Arc<Mutex<HashMap<Key, OpenSession>>>,
}

type Key = [u8; 32];

#[derive(Debug)]
struct OpenSession {
    session: Arc<Session>,
    ends: Instant,
    used: Instant,
}

impl MemorySessions {
    pub(crate) fn new(limits: Limits) -> Self {
        MemorySessions { limits, open: Arc::default() }
    }

    /// Adds `session` under `cookie`. Removes the session that was idle longest if there are too many.
    pub(crate) fn insert(&self, cookie: &str, session: Session, now: Instant) {
        let lifetime = session
            .lifetime
            .map_or(self.limits.longest, |lifetime| lifetime.min(self.limits.longest));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= self.limits.at_most.get() {
            open.retain(|_, it| it.is_open(now, self.limits.idle_timeout));
        }
        if open.len() >= self.limits.at_most.get() {
            let oldest = open.iter().min_by_key(|(_, it)| it.used).map(|(key, _)| *key);
            oldest.and_then(|key| open.remove(&key));
        }
        open.insert(
            key(cookie),
            OpenSession { session: Arc::new(session), ends: now + lifetime, used: now },
        );
    }

    /// Finds the session of `cookie`, and counts as use of the session.
    pub(crate) fn find(&self, cookie: &str, now: Instant) -> Option<Arc<Session>> {
        self.find_session(cookie, now, true)
    }

    /// Finds the session of `cookie`, without counting as use: a live page must not keep its user logged in.
    pub(crate) fn peek(&self, cookie: &str, now: Instant) -> Option<Arc<Session>> {
        self.find_session(cookie, now, false)
    }

    fn find_session(&self, cookie: &str, now: Instant, is_use: bool) -> Option<Arc<Session>> {
        let key = key(cookie);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.get_mut(&key)?;
        if !found.is_open(now, self.limits.idle_timeout) {
            open.remove(&key);
            return None;
        }
        if is_use {
            found.used = now;
        }
        Some(found.session.clone())
    }

    pub(crate) fn remove(&self, cookie: &str) -> Option<Arc<Session>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&key(cookie)).map(|it| it.session)
    }
}

impl OpenSession {
    fn is_open(&self, now: Instant, idle: Duration) -> bool {
        now < self.ends && now.duration_since(self.used) < idle
    }
}

fn key(cookie: &str) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(digest(&SHA256, cookie.as_bytes()).as_ref());
    key
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::session::Credential;

    fn session(name: &str, lifetime: Option<u64>) -> Session {
        Session {
            name: name.to_owned(),
            account: name.to_owned(),
            project: None,
            credential: Credential::Token("t".into()),
            former_tokens: Vec::new(),
            baremetal: None,
            clusters: None,
            lifetime: lifetime.map(Duration::from_secs),
        }
    }

    fn two() -> (MemorySessions, Instant) {
        let limits = Limits {
            at_most: NonZeroUsize::MIN.saturating_add(1),
            idle_timeout: Duration::from_secs(10),
            longest: Duration::from_secs(25),
        };
        (MemorySessions::new(limits), Instant::now())
    }

    #[test]
    fn an_idle_or_expired_session_is_removed() {
        let (sessions, start) = two();
        let at = |seconds| start + Duration::from_secs(seconds);
        sessions.insert("a", session("a", None), start);
        for seconds in [9, 18, 24] {
            assert!(sessions.find("a", at(seconds)).is_some(), "{seconds}");
        }
        assert!(sessions.find("a", at(25)).is_none());

        sessions.insert("b", session("b", Some(5)), start);
        assert!(sessions.find("b", at(5)).is_none(), "its token has ended");
        sessions.insert("c", session("c", None), start);
        assert!(sessions.peek("c", at(9)).is_some());
        assert!(sessions.find("c", at(11)).is_none(), "peeking is no use of the session");
    }

    #[test]
    fn a_new_session_replaces_the_one_that_was_idle_longest() {
        let (sessions, start) = two();
        let at = |seconds| start + Duration::from_secs(seconds);
        sessions.insert("a", session("a", None), start);
        sessions.insert("b", session("b", None), at(1));
        sessions.find("a", at(2));
        sessions.insert("c", session("c", None), at(3));
        let there = ["a", "b", "c"].map(|it| sessions.find(it, at(3)).is_some());
        assert_eq!(there, [true, false, true]);
        sessions.remove("a");
        assert!(sessions.find("a", at(3)).is_none());
    }
}
