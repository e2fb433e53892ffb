//! Start and stop of consoled, and its routes.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use axum::Router;
use axum::extract::{MatchedPath, Query, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use console_store::Store;
use daemon::{ConnectionLimits, MetricsListener, Tls, TlsFiles};
use http::{Method, StatusCode};
use metrics::{Metrics, RequestMetrics};
use openstack_api::{ListenerRefused, PlainHttp};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::config::{Access, Config};
use crate::error_page::explain_problems;
use crate::page_request::{PageRequest, attach_page_request};
use crate::problem::Problem;
use crate::state::Console;
use crate::{assets, headers, live, login, pages, project};

/// A console that listens and does not serve yet.
pub struct Service {
    listener: TcpListener,
    tls: Option<Tls>,
    connections: ConnectionLimits,
    console: Console,
    address: SocketAddr,
    metrics: Option<MetricsListener>,
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
        database_url(config)?;
        Console::new(config, None)?;
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
        let store = open_store(&config).await?;
        let console = Console::new(&config, store.as_ref())?;
        let listener = TcpListener::bind(config.listen).await;
        let listener =
            listener.with_context(|| format!("cannot listen on {} (listen)", config.listen))?;
        let address = listener.local_addr().context("the listener has no address")?;
        let metrics = MetricsListener::open(config.metrics).await?;
        let connections = config.connections;
        Ok(Service { listener, tls, connections, console, address, metrics })
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the listener of metrics, if they are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|listener| listener.address)
    }

    /// Serves until `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener fails.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        info!(console = %self.address, "serving the console at {scheme}://{}/", self.address);
        let ending = self.console.ending().clone();
        let stopped = stop.clone();
        let mut page = Metrics::new("consoled", env!("CARGO_PKG_VERSION"));
        let router = router(self.console, page.requests());
        tokio::spawn(async move {
            // The service waits for requests in progress, and live pages would never end by themselves.
            stopped.cancelled().await;
            ending.cancel();
        });
        let mut tasks: JoinSet<anyhow::Result<()>> = JoinSet::new();
        if let Some(listener) = self.metrics {
            info!("serving metrics on {}", listener.address);
            let serving = listener.serve_without_counts(page, stop.clone());
            tasks.spawn(async move { serving.await.context("the listener of metrics failed") });
        }
        let connections = self.connections;
        let serving = daemon::serve_api(self.listener, self.tls, router, connections, stop.clone());
        tasks.spawn(async move { serving.await.context("the listener failed") });
        daemon::stop_together(tasks, &stop).await
    }
}

const NO_CERTIFICATE: &str = "cannot use the certificate of the listener (certificate, key)";

/// Returns the URL of the database that this console shares with others, if one is configured.
fn database_url(config: &Config) -> anyhow::Result<Option<String>> {
    let Some(database) = &config.database else { return Ok(None) };
    let url = database.url_or(String::new).context("cannot read database.url_file")?;
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        bail!(
            "database.url: must be postgres://USER@HOST/DATABASE; without [database], sessions are in memory"
        );
    }
    Ok(Some(url))
}

async fn open_store(config: &Config) -> anyhow::Result<Option<Store>> {
    let (Some(url), Some(database)) = (database_url(config)?, &config.database) else {
        return Ok(None);
    };
    let opened = Store::open_within(&url, database.timeout).await;
    opened.map(Some).context("cannot open the database")
}

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

fn router(console: Console, requests: RequestMetrics) -> Router {
    let pages = pages::routes().fallback(nothing).with_state(console.clone());
    let followed = pages.clone();
    let live = move |State(console): State<Console>,
                     page_request: PageRequest,
                     query: Query<live::LiveQuery>| {
        live::follow(console, followed.clone(), page_request, query)
    };
    let own = Router::new()
        .route("/live", get(live))
        .route("/assets/{tag}/{name}", get(assets::serve))
        .merge(login::routes())
        .merge(project::routes())
        .with_state(console.clone());
    own.merge(pages)
        .layer(from_fn_with_state(console.clone(), explain_problems))
        .layer(from_fn_with_state(console.clone(), attach_page_request))
        .layer(from_fn_with_state(console, headers::protect))
        .layer(from_fn(known_methods))
        .layer(from_fn_with_state(requests, count_request))
}

/// Counts a request under the template of its route.
async fn count_request(
    State(requests): State<RequestMetrics>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let timer = requests.begin(request.method().as_str(), route);
    let answer = next.run(request).await;
    timer.answered(answer.status().as_u16());
    answer
}

/// Refuses methods that no page uses before anything else looks at the request.
async fn known_methods(request: Request, next: Next) -> Response {
    if [Method::GET, Method::HEAD, Method::POST].contains(request.method()) {
        next.run(request).await
    } else {
        StatusCode::METHOD_NOT_ALLOWED.into_response()
    }
}

async fn nothing() -> Problem {
    Problem::nothing_here()
}
