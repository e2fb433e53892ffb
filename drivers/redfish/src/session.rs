//! Sessions: tokens a BMC hands out, and giving them back.
//!
//! A BMC has few session slots, often under ten, so one that is no longer used is closed: when
//! its `Bmc` is dropped, or by `Connector::close` before the process ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use reqwest::header::HeaderValue;
use reqwest::{Client, StatusCode};
use tracing::debug;
use url::Url;

use crate::answer::{Answer, X_AUTH_TOKEN};
use crate::message::Message;

/// How many sessions `Ledger::close_all` closes at a time.
const CLOSED_AT_ONCE: usize = 64;

/// What it takes to close a session.
struct Logout {
    client: Client,
    url: Url,
    token: HeaderValue,
    timeout: Duration,
}

impl Logout {
    /// Closes the session, if the BMC cares to answer.
    async fn perform(self) {
        let request = self.client.delete(self.url).header(X_AUTH_TOKEN, self.token);
        if let Err(error) = request.timeout(self.timeout).send().await {
            debug!("a session could not be closed: {}", error.without_url());
        }
    }
}

/// Every session that is open, so that all can be closed together.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    next: u64,
    open: HashMap<u64, Logout>,
}

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes every session.
    pub(crate) async fn close_all(&self) {
        let open = std::mem::take(&mut self.entries().open);
        stream::iter(open.into_values()).for_each_concurrent(CLOSED_AT_ONCE, Logout::perform).await;
    }
}

/// An open session. Dropping it closes it.
pub(crate) struct Session {
    pub(crate) token: HeaderValue,
    number: u64,
    ledger: Ledger,
}

impl Session {
    /// Takes hold of the session whose token is `token` and whose resource is at `url`.
    pub(crate) fn open(
        ledger: &Ledger,
        client: Client,
        url: Option<Url>,
        mut token: HeaderValue,
        timeout: Duration,
    ) -> Self {
        token.set_sensitive(true);
        let mut entries = ledger.entries();
        entries.next += 1;
        let number = entries.next;
        if let Some(url) = url {
            let token = token.clone();
            entries.open.insert(number, Logout { client, url, token, timeout });
        }
        drop(entries);
        Session { token, number, ledger: ledger.clone() }
    }

    /// Lets go of a session the BMC no longer knows.
    pub(crate) fn forget(self) {
        self.ledger.entries().open.remove(&self.number);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let logout = self.ledger.entries().open.remove(&self.number);
        // Without a runtime nobody is left to send it; the BMC lets it expire.
        if let (Some(logout), Ok(runtime)) = (logout, tokio::runtime::Handle::try_current()) {
            runtime.spawn(logout.perform());
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// What a BMC's answer to a login means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginOutcome {
    /// A session is open.
    Opened,
    /// The name or the password is wrong.
    Rejected,
    /// Every slot is taken.
    Full,
    /// This service opens no sessions, whatever the password.
    Unavailable,
}

impl LoginOutcome {
    /// Reads the answer to `POST …/Sessions`.
    pub(crate) fn of(answer: &Answer) -> Self {
        // Base registry: SessionLimitExceeded comes with whatever status its maker liked.
        let full = |message: &Message| message.key == "SessionLimitExceeded";
        match answer.status {
            status if status.is_success() && answer.token.is_some() => LoginOutcome::Opened,
            _ if answer.messages().iter().any(full) => LoginOutcome::Full,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => LoginOutcome::Rejected,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => LoginOutcome::Full,
            _ => LoginOutcome::Unavailable,
        }
    }
}
