//! Sessions in the store that several consoles have in common.

use std::sync::Arc;
use std::time::Duration;

use console_store::{NewSession, SessionLimits, SessionUse, Store};
use jiff::Timestamp;

use crate::config::Sessions as Limits;
use crate::problem::{Problem, Result};
use crate::sealed_session::{self, seal};
use crate::session::Session;

/// The sessions of all consoles on one database.
#[derive(Clone)]
pub(crate) struct SharedSessions {
    store: Store,
    limits: SessionLimits,
    longest: Duration,
}

impl SharedSessions {
    pub(crate) fn new(store: Store, limits: Limits) -> Self {
        let at_most = u32::try_from(limits.at_most.get()).unwrap_or(u32::MAX);
        let of_store = SessionLimits { at_most, idle_timeout: limits.idle_timeout };
        SharedSessions { store, limits: of_store, longest: limits.longest }
    }

    pub(crate) async fn insert(&self, cookie: &str, session: &Session) -> Result<()> {
        let sealed = seal(cookie, session).map_err(|why| Problem::Internal(why.to_string()))?;
        let lifetime = session.lifetime.map_or(self.longest, |it| it.min(self.longest));
        let new = NewSession { id: sealed_session::id(cookie), sealed, lifetime };
        let inserted = self.store.insert_session(&new, self.limits, Timestamp::now()).await;
        inserted.map_err(|why| Problem::database(&why))
    }

    pub(crate) async fn find(&self, cookie: &str, by: SessionUse) -> Result<Option<Arc<Session>>> {
        let (id, now) = (sealed_session::id(cookie), Timestamp::now());
        let found = self.store.find_session(&id, by, self.limits, now).await;
        Ok(opened(cookie, found.map_err(|why| Problem::database(&why))?))
    }

    pub(crate) async fn remove(&self, cookie: &str) -> Result<Option<Arc<Session>>> {
        let removed = self.store.remove_session(&sealed_session::id(cookie)).await;
        Ok(opened(cookie, removed.map_err(|why| Problem::database(&why))?))
    }
}

fn opened(cookie: &str, sealed: Option<String>) -> Option<Arc<Session>> {
    sealed_session::open(cookie, &sealed?).map(Arc::new)
}
