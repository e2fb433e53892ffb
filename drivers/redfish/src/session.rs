//! Login sessions of BMCs, and their closing.
//!
//! A BMC has few session slots, often fewer than ten, so a session that is no longer used is closed: when its `Bmc` is dropped, or by
//! `Connector::close` before the process ends.

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

/// How many sessions `OpenSessions::close_all` closes at a time.
const CLOSED_AT_ONCE: usize = 64;

/// The data needed to close a session.
struct Logout {
    client: Client,
    url: Url,
    token: HeaderValue,
    timeout: Duration,
}

impl Logout {
    /// Closes the session. A failure is only logged.
    async fn perform(self) {
        let request = self.client.delete(self.url).header(X_AUTH_TOKEN, self.token);
        if let Err(error) = request.timeout(self.timeout).send().await {
            debug!("a session could not be closed: {}", error.without_url());
        }
    }
}

/// All open sessions, so that they can be closed together.
#[derive(Clone, Default)]
pub(crate) struct OpenSessions(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    next: u64,
    open: HashMap<u64, Logout>,
}

impl OpenSessions {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes every session, several at a time.
    pub(crate) async fn close_all(&self) {
        let open = std::mem::take(&mut self.entries().open);
        stream::iter(open.into_values()).for_each_concurrent(CLOSED_AT_ONCE, Logout::perform).await;
    }
}

/// An open session. Dropping the value closes the session.
pub(crate) struct Session {
    pub(crate) token: HeaderValue,
    number: u64,
    ledger: OpenSessions,
}

impl Session {
    /// Registers the session whose token is `token` and whose resource is at `url`.
    pub(crate) fn open(
        ledger: &OpenSessions,
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

    /// Drops a session that the BMC no longer knows, without closing it.
    pub(crate) fn forget(self) {
        self.ledger.entries().open.remove(&self.number);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let logout = self.ledger.entries().open.remove(&self.number);
        // Without a runtime the request cannot be sent; the session expires at the BMC.
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

/// The meaning of a BMC's answer to a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginOutcome {
    /// The BMC has opened a session.
    Opened,
    /// The user name or the password is wrong.
    Rejected,
    /// Every session slot is taken.
    Full,
    /// This service opens no sessions, whatever the password.
    Unavailable,
}

impl LoginOutcome {
    /// Classifies the answer to `POST …/Sessions`.
    pub(crate) fn of(answer: &Answer) -> Self {
        // `SessionLimitExceeded` (Base registry) comes with various statuses, so the message decides first.
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
