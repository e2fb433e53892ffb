//! The sessions of logged-in users: in memory, or in the store that several consoles have in common.

use std::sync::Arc;
use std::time::Instant;

use console_store::SessionUse;

use crate::memory_sessions::MemorySessions;
use crate::problem::Result;
use crate::session::Session;
use crate::shared_sessions::SharedSessions;

/// All sessions. Clones share their state.
#[derive(Clone)]
pub(crate) enum Sessions {
    InMemory(MemorySessions),
    Shared(SharedSessions),
}

impl Sessions {
    /// Adds `session` under `cookie`. Removes the session that was idle longest if there are too many.
    pub(crate) async fn insert(&self, cookie: &str, session: Session) -> Result<()> {
        match self {
            Sessions::InMemory(all) => {
                all.insert(cookie, session, Instant::now());
                Ok(())
            }
            Sessions::Shared(all) => all.insert(cookie, &session).await,
        }
    }

    /// Finds the session of `cookie`, and counts as use of the session.
    pub(crate) async fn find(&self, cookie: &str) -> Result<Option<Arc<Session>>> {
        match self {
            Sessions::InMemory(all) => Ok(all.find(cookie, Instant::now())),
            Sessions::Shared(all) => all.find(cookie, SessionUse::Request).await,
        }
    }

    /// Finds the session of `cookie`, without counting as use: a live page must not keep its user logged in.
    pub(crate) async fn peek(&self, cookie: &str) -> Result<Option<Arc<Session>>> {
        match self {
            Sessions::InMemory(all) => Ok(all.peek(cookie, Instant::now())),
            Sessions::Shared(all) => all.find(cookie, SessionUse::Check).await,
        }
    }

    /// Whether the session of `cookie` has ended. While the database does not answer, nobody is logged out.
    pub(crate) async fn has_ended(&self, cookie: &str) -> bool {
        self.peek(cookie).await.is_ok_and(|session| session.is_none())
    }

    /// Ends the session of `cookie`.
    pub(crate) async fn remove(&self, cookie: &str) -> Result<Option<Arc<Session>>> {
        match self {
            Sessions::InMemory(all) => Ok(all.remove(cookie)),
            Sessions::Shared(all) => all.remove(cookie).await,
        }
    }
}
