//! The state that every page uses.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use api_client::{Client, Credentials};
use console_store::Store;
use openstack_api::{CredentialSource, Guesses};
use tera::Tera;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::api::{Api, BackendService};
use crate::config::{Access, Config};
use crate::guard::Guard;
use crate::live_page_registry::LivePageRegistry;
use crate::memory_sessions::MemorySessions;
use crate::problem::{Problem, Result};
use crate::serial_inputs::SerialInputs;
use crate::session::Session;
use crate::sessions::Sessions;
use crate::shared_guesses::{SharedGuess, SharedGuesses};
use crate::shared_sessions::SharedSessions;
use crate::view;

/// The timeout for connecting to a service.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The state that every page uses. Clones share it.
#[derive(Clone)]
pub(crate) struct Console(Arc<ConsoleState>);

struct ConsoleState {
    access: Access,
    baremetal: Option<Url>,
    clusters: Option<Url>,
    is_secure: bool,
    client: reqwest::Client,
    engine: Tera,
    sessions: Sessions,
    guard: Guard,
    serial_inputs: SerialInputs,
    live_pages: LivePageRegistry,
    guesses: Arc<Guesses>,
    /// `None` for a console that shares nothing with others.
    shared_guesses: Option<SharedGuesses>,
    ending: CancellationToken,
    authorities: Option<PathBuf>,
}

impl Console {
    /// Makes a console; with a store, it has sessions and limits of passwords in common with others.
    pub(crate) fn new(config: &Config, store: Option<&Store>) -> anyhow::Result<Self> {
        let builder = api_client::http_client(config.ca_file.as_deref());
        let builder = builder
            .context("cannot use the file of authorities")?
            .user_agent("bedplate-console")
            // A redirect would send the token to another server.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        // The call fails if the process already has a provider, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Console(Arc::new(ConsoleState {
            access: config.access.clone(),
            baremetal: config.baremetal.clone(),
            clusters: config.clusters.clone(),
            is_secure: config.tls.is_some(),
            client: builder.build().context("cannot set up an HTTP client")?,
            engine: view::engine().context("cannot parse a template")?,
            sessions: match store {
                Some(store) => {
                    Sessions::Shared(SharedSessions::new(store.clone(), config.sessions))
                }
                None => Sessions::InMemory(MemorySessions::new(config.sessions)),
            },
            guard: Guard::new(),
            serial_inputs: SerialInputs::default(),
            live_pages: LivePageRegistry::new(config.live_pages),
            guesses: Arc::new(Guesses::new(config.guesses_per_minute)),
            shared_guesses: store
                .map(|store| SharedGuesses::new(store.clone(), config.guesses_per_minute)),
            ending: CancellationToken::new(),
            authorities: config.ca_file.clone(),
        })))
    }

    /// A client of a service with the credential of this session.
    pub(crate) fn api(
        &self,
        program: BackendService,
        session: Option<Arc<Session>>,
    ) -> Result<Api> {
        let (own, found) = match program {
            BackendService::Baremetald => {
                (&self.0.baremetal, session.as_ref().and_then(|it| it.baremetal.clone()))
            }
            BackendService::Clusterd => {
                (&self.0.clusters, session.as_ref().and_then(|it| it.clusters.clone()))
            }
        };
        let base = own.clone().or(found).ok_or(Problem::NoEndpoint(program.program()))?;
        let credentials = session.as_ref().map(|it| it.credential.for_services());
        let credentials = credentials.unwrap_or(Credentials::Anonymous);
        Ok(Api::new(Client::new(self.0.client.clone(), program, base, credentials)))
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.access
    }

    /// The HTTP client for Keystone and the services.
    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.0.client
    }

    pub(crate) fn engine(&self) -> &Tera {
        &self.0.engine
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.0.guard
    }

    pub(crate) fn serial_inputs(&self) -> &SerialInputs {
        &self.0.serial_inputs
    }

    pub(crate) fn live_pages(&self) -> &LivePageRegistry {
        &self.0.live_pages
    }

    /// The limiter of wrong passwords from this address.
    pub(crate) fn password_limiter(&self, from: IpAddr) -> CredentialSource {
        CredentialSource { guesses: self.0.guesses.clone(), from }
    }

    /// Waits until a password for this name may be tried from this network, as far as other consoles are concerned. Returns `None` if there
    /// are no others.
    pub(crate) async fn shared_turn(
        &self,
        name: &str,
        network: IpAddr,
    ) -> Result<Option<SharedGuess>> {
        match &self.0.shared_guesses {
            Some(guesses) => guesses.turn(name, network).await.map(Some),
            None => Ok(None),
        }
    }

    /// Cancelled when the service is about to stop.
    pub(crate) fn ending(&self) -> &CancellationToken {
        &self.0.ending
    }

    /// Whether the console uses TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.0.is_secure
    }

    /// The cookie's name. With TLS the prefix `__Host-` keeps other hosts and paths from setting the cookie (RFC 6265bis §4.1.3.2).
    pub(crate) fn cookie_name(&self) -> &'static str {
        if self.0.is_secure { "__Host-bedplate" } else { "bedplate" }
    }

    /// The value of `Set-Cookie` for a cookie.
    pub(crate) fn set_cookie(&self, value: &str) -> String {
        let secure = if self.0.is_secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}", self.cookie_name())
    }

    /// Certificate authorities for Keystone and the services, in addition to those of the system.
    pub(crate) fn authorities(&self) -> Option<PathBuf> {
        self.0.authorities.clone()
    }

    /// The configured URLs of `baremetald` and `clusterd`.
    pub(crate) fn configured(&self) -> (Option<&Url>, Option<&Url>) {
        (self.0.baremetal.as_ref(), self.0.clusters.as_ref())
    }
}
