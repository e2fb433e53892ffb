//! Start and stop of consoled, and the state that every page uses.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use axum::Router;
use axum::extract::{Query, State};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use daemon::{ConnectionLimits, Tls, TlsFiles};
use http::{HeaderValue, StatusCode};
use openstack_api::{CredentialSource, Guesses, ListenerRefused, PlainHttp};
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tera::Tera;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;
use url::Url;

use crate::api::{Api, BackendService};
use crate::config::{Access, Config, KeystoneConfig};
use crate::guard::Guard;
use crate::live_page_registry::LivePageRegistry;
use crate::page_request::{PageRequest, attach_visit};
use crate::problem::{Problem, explain};
use crate::serial_inputs::SerialInputs;
use crate::session::{Session, Sessions};
use crate::{assets, headers, live, login, pages, project, view};

/// The timeout for connecting to a service.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A console that listens and does not serve yet.
pub struct Service {
    listener: TcpListener,
    tls: Option<Tls>,
    connections: ConnectionLimits,
    console: Console,
    address: SocketAddr,
}

/// The state that every page uses. Clones share it.
#[derive(Clone)]
pub(crate) struct Console(Arc<ConsoleState>);

struct ConsoleState {
    access: Access,
    baremetal: Option<Url>,
    clusters: Option<Url>,
    is_secure: bool,
    client: Client,
    engine: Tera,
    sessions: Sessions,
    guard: Guard,
    keyboards: SerialInputs,
    followers: LivePageRegistry,
    guesses: Arc<Guesses>,
    ending: CancellationToken,
    authorities: Option<PathBuf>,
}

impl Service {
    /// Checks a configuration and the files that it names. Connects to nothing.
    ///
    /// # Errors
    ///
    /// Returns the first file or setting that cannot be used.
    pub fn check(config: &Config) -> anyhow::Result<()> {
        check_listener(config)?;
        config.tls.clone().map(TlsFiles::open).transpose().context(NO_CERTIFICATE)?;
        Console::new(config)?;
        Ok(())
    }

    /// Opens the listener.
    ///
    /// # Errors
    ///
    /// Returns an error if a file of the configuration cannot be used, or the address is taken.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        check_listener(&config)?;
        let tls = config.tls.clone().map(TlsFiles::open).transpose().context(NO_CERTIFICATE)?;
        let console = Console::new(&config)?;
        let listener = TcpListener::bind(config.listen).await;
        let listener =
            listener.with_context(|| format!("cannot listen on {} (listen)", config.listen))?;
        let address = listener.local_addr().context("the listener has no address")?;
        Ok(Service { listener, tls, connections: config.connections, console, address })
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener fails.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        info!(console = %self.address, "serving the console at {scheme}://{}/", self.address);
        let ending = self.console.0.ending.clone();
        let told = stop.clone();
        let router = router(self.console);
        tokio::spawn(async move {
            // The service waits for requests in progress, and live pages would never end by themselves.
            told.cancelled().await;
            ending.cancel();
        });
        daemon::serve_api(self.listener, self.tls, router, self.connections, stop)
            .await
            .context("the listener failed")
    }
}

const NO_CERTIFICATE: &str = "cannot use the certificate of the listener (certificate, key)";

/// Refuses to listen beyond loopback without authentication, and without TLS unless the configuration permits plain HTTP.
fn check_listener(config: &Config) -> anyhow::Result<()> {
    let address = config.listen;
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    match (&config.access, &config.tls, config.plain_http) {
        (Access::None, ..) => bail!(ListenerRefused::NoAuthentication { address }),
        (_, None, PlainHttp::Loopback) => bail!(ListenerRefused::Unencrypted { address }),
        (_, Some(_), _) | (_, None, PlainHttp::Anywhere) => Ok(()),
    }
}

fn router(console: Console) -> Router {
    let pages = pages::routes().fallback(nothing).with_state(console.clone());
    let followed = pages.clone();
    let live =
        move |State(console): State<Console>, visit: PageRequest, query: Query<live::LiveQuery>| {
            live::follow(console, followed.clone(), visit, query)
        };
    let own = Router::new()
        .route("/live", get(live))
        .route("/assets/{tag}/{name}", get(assets::serve))
        .merge(login::routes())
        .merge(project::routes())
        .with_state(console.clone());
    own.merge(pages)
        .layer(from_fn_with_state(console.clone(), explain))
        .layer(from_fn_with_state(console.clone(), attach_visit))
        .layer(from_fn_with_state(console, headers::protect))
        .layer(from_fn(known_methods))
}

/// Refuses methods that no page uses before anything else looks at the request.
async fn known_methods(
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    use axum::response::IntoResponse;
    use http::Method;
    if [Method::GET, Method::HEAD, Method::POST].contains(request.method()) {
        next.run(request).await
    } else {
        StatusCode::METHOD_NOT_ALLOWED.into_response()
    }
}

async fn nothing() -> Problem {
    Problem::nothing_here()
}

impl Console {
    fn new(config: &Config) -> anyhow::Result<Self> {
        let builder = Client::builder()
            .no_proxy()
            .user_agent("bedplate-console")
            // A redirect would send the token to another server.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        let builder = match &config.authorities {
            None => builder,
            Some(file) => {
                let pem = std::fs::read(file)
                    .with_context(|| format!("cannot read {} (authorities)", file.display()))?;
                let authorities = reqwest::Certificate::from_pem_bundle(&pem);
                let authorities = authorities.with_context(|| {
                    format!("{} contains no certificate (authorities)", file.display())
                })?;
                builder.tls_certs_merge(authorities)
            }
        };
        // The call fails if the process already has a provider, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Console(Arc::new(ConsoleState {
            access: config.access.clone(),
            baremetal: config.baremetal.clone(),
            clusters: config.clusters.clone(),
            is_secure: config.tls.is_some(),
            client: builder.build().context("cannot set up an HTTP client")?,
            engine: view::engine().context("cannot parse a template")?,
            sessions: Sessions::new(config.sessions),
            guard: Guard::new()?,
            keyboards: SerialInputs::default(),
            followers: LivePageRegistry::new(config.live_pages),
            guesses: Arc::new(Guesses::new(config.guesses_per_minute)),
            ending: CancellationToken::new(),
            authorities: config.authorities.clone(),
        })))
    }

    /// A client of a service with the credential of this session.
    pub(crate) fn api(
        &self,
        program: BackendService,
        session: Option<Arc<Session>>,
    ) -> Result<Api, Problem> {
        let (own, found) = match program {
            BackendService::Baremetald => {
                (&self.0.baremetal, session.as_ref().and_then(|it| it.baremetal.clone()))
            }
            BackendService::Clusterd => {
                (&self.0.clusters, session.as_ref().and_then(|it| it.clusters.clone()))
            }
        };
        let base = own.clone().or(found).ok_or(Problem::NoEndpoint(program.name()))?;
        Ok(Api { client: self.0.client.clone(), program, base, session })
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.access
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

    /// The inputs of open serial consoles.
    pub(crate) fn keyboards(&self) -> &SerialInputs {
        &self.0.keyboards
    }

    /// The live pages.
    pub(crate) fn followers(&self) -> &LivePageRegistry {
        &self.0.followers
    }

    /// The limiter of wrong passwords from this address.
    pub(crate) fn password_limiter(&self, from: IpAddr) -> CredentialSource {
        CredentialSource { guesses: self.0.guesses.clone(), from }
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

    /// The projects in which the owner of the token has a role: `GET /v3/auth/projects`.
    pub(crate) async fn projects(
        &self,
        keystone: &KeystoneConfig,
        token: &SecretString,
    ) -> Result<Value, Problem> {
        let base = keystone.url.as_str().trim_end_matches('/').trim_end_matches("/v3");
        let mut value =
            HeaderValue::from_str(token.expose_secret()).map_err(|_| Problem::LoggedOut)?;
        value.set_sensitive(true);
        let request = self.0.client.get(format!("{base}/v3/auth/projects"));
        let request = request.timeout(CONNECT_TIMEOUT).header("X-Auth-Token", value);
        let unreachable = |why: reqwest::Error| Problem::Unreachable {
            program: "Keystone",
            why: why.without_url().to_string(),
        };
        let answer = request.send().await.map_err(unreachable)?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            return Err(Problem::LoggedOut);
        }
        let body = answer.error_for_status().map_err(unreachable)?.bytes().await;
        let body = body.map_err(unreachable)?;
        serde_json::from_slice(&body).map_err(|_| Problem::Unreachable {
            program: "Keystone",
            why: "cannot parse the response".to_owned(),
        })
    }

    /// Revokes a token: `DELETE /v3/auth/tokens`.
    pub(crate) async fn revoke(
        &self,
        keystone: &KeystoneConfig,
        token: &SecretString,
    ) -> reqwest::Result<()> {
        let base = keystone.url.as_str().trim_end_matches('/').trim_end_matches("/v3");
        let Ok(mut value) = HeaderValue::from_str(token.expose_secret()) else { return Ok(()) };
        value.set_sensitive(true);
        let request =
            self.0.client.delete(format!("{base}/v3/auth/tokens")).timeout(CONNECT_TIMEOUT);
        let request =
            request.header("X-Auth-Token", value.clone()).header("X-Subject-Token", value);
        request.send().await?.error_for_status().map(drop)
    }

    /// The configured URLs of `baremetald` and `clusterd`.
    pub(crate) fn configured(&self) -> (Option<&Url>, Option<&Url>) {
        (self.0.baremetal.as_ref(), self.0.clusters.as_ref())
    }
}
