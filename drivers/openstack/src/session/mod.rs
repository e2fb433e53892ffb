//! An authenticated session with a cloud, through which every call goes.

mod answer;
mod behalf;
mod call;
mod clients;
mod login;
mod observer;
mod patience;
mod projects;
mod send;
mod token;

use std::sync::Arc;

use reqwest::Client;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use url::Url;

use crate::catalogue;
use crate::config::{CloudConfig, ConfigError};
use crate::service::Service;

pub use behalf::{on_behalf_of, request_id};
pub(crate) use call::{Body, Call};
pub use observer::CallObserver;
pub use projects::ProjectSessions;
pub use token::Identity;
use token::Token;
pub(crate) use token::X_SUBJECT_TOKEN;

/// A session with a cloud as one user.
///
/// Cheap to clone; clones share connections and token. The first call requests a token; a new one is requested before the token expires or
/// after a service refused it.
#[derive(Clone, Debug)]
pub struct Session {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: CloudConfig,
    client: Client,
    token: Mutex<Option<Arc<Token>>>,
    turns: Arc<CallLimits>,
    observer: CallObserver,
}

/// The semaphores that limit simultaneous calls, shared by the sessions of all projects.
#[derive(Debug)]
struct CallLimits {
    /// One semaphore for each service, in the order of [`Service::ALL`].
    services: [Semaphore; Service::ALL.len()],
    /// The semaphore of token requests. The caller may already hold a permit of a service, Keystone included, and waiting for another would
    /// deadlock.
    tokens: Semaphore,
}

impl CallLimits {
    fn new(at_once: usize) -> CallLimits {
        let at_once = at_once.min(Semaphore::MAX_PERMITS);
        let services = Service::ALL.map(|_| Semaphore::new(at_once));
        CallLimits { services, tokens: Semaphore::new(at_once) }
    }
}

impl Session {
    /// Makes a session for the cloud of `config` without sending a request. Reads the PEM file that the configuration names.
    pub fn new(config: CloudConfig) -> Result<Session, ConfigError> {
        Session::observed(config, CallObserver::default())
    }

    /// Makes a session as [`Session::new`] does, and tells `observer` about its calls, and about those of its sessions in other projects.
    pub fn observed(config: CloudConfig, observer: CallObserver) -> Result<Session, ConfigError> {
        let client = clients::client(&config.tls)?;
        let token = Mutex::default();
        let turns = Arc::new(CallLimits::new(config.calls_at_once.get()));
        Ok(Session { shared: Arc::new(Shared { config, client, token, turns, observer }) })
    }

    /// Returns a session of the same user in the project with this id; `None` if the credentials are bound to one project. The new session
    /// has its own token, and shares connections and call limits with this one. Whether the user has a role in the project shows at the
    /// first call.
    pub fn in_project(&self, id: &str) -> Option<Session> {
        let auth = self.shared.config.auth.in_project(id)?;
        let config = CloudConfig { auth, ..self.shared.config.clone() };
        let (client, turns) = (self.shared.client.clone(), self.shared.turns.clone());
        let (token, observer) = (Mutex::default(), self.shared.observer.clone());
        Some(Session { shared: Arc::new(Shared { config, client, token, turns, observer }) })
    }

    /// The configuration of this session.
    pub fn config(&self) -> &CloudConfig {
        &self.shared.config
    }

    /// The HTTP client of this session, for services without calls in this crate. It accepts the certificates that the configuration
    /// permits, follows no redirect, and adds no token.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Waits for a permit to call a service, so that not too many calls run at once.
    async fn service_permit(&self, service: Service) -> SemaphorePermit<'_> {
        let at = Service::ALL.iter().position(|it| *it == service).expect("all are in ALL");
        self.shared.turns.services[at].acquire().await.expect("nobody closes it")
    }

    /// Waits for a permit to request a token from Keystone.
    async fn token_permit(&self) -> SemaphorePermit<'_> {
        self.shared.turns.tokens.acquire().await.expect("nobody closes it")
    }

    /// Returns the base URL of Keystone.
    fn keystone(&self) -> Url {
        let own = self.config().endpoints.get(&Service::Identity);
        let url = own.unwrap_or(&self.config().auth_url).clone();
        catalogue::versioned(url, Service::Identity, None)
    }
}
