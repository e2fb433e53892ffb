//! Who is logged in: in memory alone, so many at most, each for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};
use secrecy::SecretString;
use url::Url;

use crate::config::Sessions as Limits;

/// What somebody who logged in asks the services with.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    /// A name and password of the services' own.
    Password(String, SecretString),
    /// A token of Keystone's.
    Token(SecretString),
}

/// Somebody who logged in.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// What is shown of who it is.
    pub(crate) name: String,
    /// Whose account it is, told apart from all others: an id of Keystone's, or a name of the services' own.
    pub(crate) account: String,
    /// The project that the token is valid in.
    pub(crate) project: Option<String>,
    /// What the services are asked with.
    pub(crate) credential: Credential,
    /// Tokens for other projects, from before this one: given back with it.
    pub(crate) spent: Vec<SecretString>,
    /// Where `baremetald` is, by the catalogue.
    pub(crate) baremetal: Option<Url>,
    /// Where `clusterd` is, by the catalogue.
    pub(crate) clusters: Option<Url>,
    /// How long the token lasts.
    pub(crate) lasts: Option<Duration>,
}

/// All who are logged in. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    limits: Limits,
    /// By a digest of what the browser shows: who reads this memory by a side channel learns no cookie.
    open: Arc<Mutex<HashMap<Key, Open>>>,
}

type Key = [u8; 32];

#[derive(Debug)]
struct Open {
    session: Arc<Session>,
    ends: Instant,
    used: Instant,
}

impl Sessions {
    pub(crate) fn new(limits: Limits) -> Self {
        Sessions { limits, open: Arc::default() }
    }

    /// Lets `session` be found by `cookie` from now on.
    pub(crate) fn insert(&self, cookie: &str, session: Session, now: Instant) {
        let lasts =
            session.lasts.map_or(self.limits.longest, |lasts| lasts.min(self.limits.longest));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= self.limits.at_most.get() {
            open.retain(|_, it| it.is_open(now, self.limits.idle_timeout));
        }
        if open.len() >= self.limits.at_most.get() {
            let oldest = open.iter().min_by_key(|(_, it)| it.used).map(|(key, _)| *key);
            oldest.and_then(|key| open.remove(&key));
        }
        open.insert(key(cookie), Open { session: Arc::new(session), ends: now + lasts, used: now });
    }

    /// Who shows `cookie`, and from now on has not rested.
    pub(crate) fn find(&self, cookie: &str, now: Instant) -> Option<Arc<Session>> {
        self.look(cookie, now, true)
    }

    /// Who shows `cookie`; a page that follows by itself keeps nobody logged in.
    pub(crate) fn peek(&self, cookie: &str, now: Instant) -> Option<Arc<Session>> {
        self.look(cookie, now, false)
    }

    fn look(&self, cookie: &str, now: Instant, is_use: bool) -> Option<Arc<Session>> {
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

    /// Nobody is found by `cookie` any more.
    pub(crate) fn remove(&self, cookie: &str) -> Option<Arc<Session>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&key(cookie)).map(|it| it.session)
    }
}

impl Open {
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

    fn session(name: &str, lasts: Option<u64>) -> Session {
        Session {
            name: name.to_owned(),
            account: name.to_owned(),
            project: None,
            credential: Credential::Token("t".into()),
            spent: Vec::new(),
            baremetal: None,
            clusters: None,
            lasts: lasts.map(Duration::from_secs),
        }
    }

    fn two() -> (Sessions, Instant) {
        let limits = Limits {
            at_most: NonZeroUsize::MIN.saturating_add(1),
            idle_timeout: Duration::from_secs(10),
            longest: Duration::from_secs(25),
        };
        (Sessions::new(limits), Instant::now())
    }

    #[test]
    fn who_rests_too_long_or_is_there_too_long_is_forgotten() {
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
        assert!(sessions.find("c", at(11)).is_none(), "to look is not to use");
    }

    #[test]
    fn for_a_new_one_too_many_the_one_that_rested_longest_goes() {
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
