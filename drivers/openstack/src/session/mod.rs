//! One authenticated session with a cloud: what every call goes through.

mod answer;
mod behalf;
mod call;
mod clients;
mod patience;
mod projects;
mod send;
mod token;

use std::sync::Arc;

use reqwest::Client;
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use url::Url;

use crate::catalogue;
use crate::config::{CloudConfig, ConfigError};
use crate::error::{CloudError, gone_is_fine};
use crate::service::Service;

pub use behalf::{on_behalf_of, request_id};
pub(crate) use call::{Body, Call};
pub use projects::Projects;
pub use token::Identity;
use token::Token;
pub(crate) use token::X_SUBJECT_TOKEN;

/// A cloud, as somebody.
///
/// Cheap to clone; clones share connections and token. A token is got when the first call needs it, and again when
/// it is about to end or a service does not take it any more.
#[derive(Clone, Debug)]
pub struct Session {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: CloudConfig,
    client: Client,
    token: Mutex<Option<Arc<Token>>>,
    turns: Arc<Turns>,
}

/// Who may call whom, whichever project it is for.
#[derive(Debug)]
struct Turns {
    /// Each service, in the order of [`Service::ALL`].
    services: [Semaphore; Service::ALL.len()],
    /// Keystone, for a token. Who asks for one may have leave to call a service already, Keystone included.
    tokens: Semaphore,
}

impl Turns {
    fn new(at_once: usize) -> Turns {
        let at_once = at_once.min(Semaphore::MAX_PERMITS);
        let services = Service::ALL.map(|_| Semaphore::new(at_once));
        Turns { services, tokens: Semaphore::new(at_once) }
    }
}

impl Session {
    /// A session that will speak to the cloud of `config`. Nothing is asked yet; a PEM file that it names is read.
    pub fn new(config: CloudConfig) -> Result<Session, ConfigError> {
        let client = clients::client(&config.tls)?;
        let token = Mutex::default();
        let turns = Arc::new(Turns::new(config.calls_at_once.get()));
        Ok(Session { shared: Arc::new(Shared { config, client, token, turns }) })
    }

    /// The same user in the project of this id; `None` where what proves who we are is good in one project alone. It has a token of
    /// its own, and shares connections, and how much is asked at once, with this one. Whether the user has a role there is known by
    /// the first call.
    pub fn in_project(&self, id: &str) -> Option<Session> {
        let auth = self.shared.config.auth.in_project(id)?;
        let config = CloudConfig { auth, ..self.shared.config.clone() };
        let (client, turns) = (self.shared.client.clone(), self.shared.turns.clone());
        Some(Session {
            shared: Arc::new(Shared { config, client, token: Mutex::default(), turns }),
        })
    }

    /// Who we are, by Keystone's word.
    pub async fn identity(&self) -> Result<Identity, CloudError> {
        Ok(self.token().await?.identity.clone())
    }

    /// Where the version that we speak of `service` begins.
    pub async fn endpoint(&self, service: Service) -> Result<Url, CloudError> {
        self.endpoint_by(&*self.token().await?, service)
    }

    /// Whether the cloud has this service where we look.
    pub async fn has(&self, service: Service) -> Result<bool, CloudError> {
        match self.endpoint(service).await {
            Ok(_) => Ok(true),
            Err(CloudError::NoEndpoint { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives the token back to Keystone, so that nobody can use it any more. The next call gets another one.
    pub async fn close(&self) -> Result<(), CloudError> {
        let token = self.shared.token.lock().await.take();
        match token {
            Some(token) => match gone_is_fine(token::revoke(self, &token).await) {
                // It has ended already.
                Err(CloudError::Unauthorized(_)) => Ok(()),
                other => other,
            },
            None => Ok(()),
        }
    }

    /// The configuration it was made with.
    pub fn config(&self) -> &CloudConfig {
        &self.shared.config
    }

    /// The HTTP client that the calls go by, for services whose calls are not here. It accepts the certificates that the
    /// configuration says, follows no redirect, and sends no token by itself.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Our token, good for some time to come, for services whose calls are not here.
    pub async fn bearer(&self) -> Result<SecretString, CloudError> {
        Ok(self.token().await?.secret.clone())
    }

    /// Leave to call a service, until it is dropped: not too many call it at once.
    async fn turn(&self, service: Service) -> SemaphorePermit<'_> {
        let at = Service::ALL.iter().position(|it| *it == service).expect("all are in ALL");
        self.shared.turns.services[at].acquire().await.expect("nobody closes it")
    }

    /// The same for asking Keystone for a token.
    async fn turn_for_token(&self) -> SemaphorePermit<'_> {
        self.shared.turns.tokens.acquire().await.expect("nobody closes it")
    }

    /// A token that is good for some time. Whoever comes while another one gets it waits for that one.
    async fn token(&self) -> Result<Arc<Token>, CloudError> {
        let mut held = self.shared.token.lock().await;
        if let Some(token) = held.as_ref().filter(|token| token.is_fresh()) {
            return Ok(token.clone());
        }
        let token = Arc::new(token::request(self).await?);
        *held = Some(token.clone());
        Ok(token)
    }

    /// Drops `refused`, unless somebody has replaced it already.
    async fn forget(&self, refused: &Arc<Token>) {
        let mut held = self.shared.token.lock().await;
        if held.as_ref().is_some_and(|token| Arc::ptr_eq(token, refused)) {
            *held = None;
        }
    }

    fn endpoint_by(&self, token: &Token, service: Service) -> Result<Url, CloudError> {
        // Keystone is where we already spoke to it, whatever the catalogue believes.
        if service == Service::Identity {
            return Ok(self.keystone());
        }
        token.endpoint(service, self.config())
    }

    /// Where Keystone is.
    fn keystone(&self) -> Url {
        let own = self.config().endpoints.get(&Service::Identity);
        let url = own.unwrap_or(&self.config().auth_url).clone();
        catalogue::versioned(url, Service::Identity, None)
    }

    pub(crate) fn get<'c>(&'c self, service: Service, path: &[&'c str]) -> Call<'c> {
        Call::new(self, service, reqwest::Method::GET, path)
    }

    pub(crate) fn post<'c>(&'c self, service: Service, path: &[&'c str], body: Value) -> Call<'c> {
        Call::new(self, service, reqwest::Method::POST, path).body(Body::Json(body))
    }

    pub(crate) fn put<'c>(&'c self, service: Service, path: &[&'c str], body: Value) -> Call<'c> {
        Call::new(self, service, reqwest::Method::PUT, path).body(Body::Json(body))
    }

    pub(crate) fn patch<'c>(&'c self, service: Service, path: &[&'c str], body: Value) -> Call<'c> {
        Call::new(self, service, reqwest::Method::PATCH, path).body(Body::Json(body))
    }

    /// Deletes something; that it is gone already is what was wanted.
    pub(crate) async fn delete(&self, service: Service, path: &[&str]) -> Result<(), CloudError> {
        self.deleting(service, path).done_or_gone().await
    }

    pub(crate) fn deleting<'c>(&'c self, service: Service, path: &[&'c str]) -> Call<'c> {
        Call::new(self, service, reqwest::Method::DELETE, path)
    }
}
