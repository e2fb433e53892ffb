//! The listener of metrics: the section `[metrics]` of a configuration, and `GET /metrics`.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics::{DatabaseUp, Metrics};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::{ConnectionLimits, serve};

/// The age of counts from the database at which a scrape reads them again. Until then all scrapes together cost one query.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// The time limit for the query. A scrape is answered without new counts after it.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// The most open connections of the listener. A Prometheus server keeps one.
const CONNECTIONS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(31);

/// The section `[metrics]`: without it, no metrics are served.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsConfig {
    /// The IP address and port. The listener has neither authentication nor TLS.
    pub listen: SocketAddr,
}

/// Counts that are read from the database before a scrape.
pub trait ScrapeCounts: Send + Sync + 'static {
    type Error: fmt::Display + Send;

    /// Reads the counts with bounded queries, and sets the gauges.
    fn refresh(&self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// The counts of a daemon without a database: there are none.
impl ScrapeCounts for Infallible {
    type Error = Infallible;

    async fn refresh(&self) -> Result<(), Infallible> {
        match *self {}
    }
}

/// The open listener of metrics.
#[derive(Debug)]
pub struct MetricsListener {
    pub address: SocketAddr,
    listener: TcpListener,
}

/// Why the listener of metrics cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} (metrics.listen)")]
pub struct MetricsListenerError {
    address: SocketAddr,
    source: io::Error,
}

impl MetricsListener {
    /// Opens the listener, if one is configured. Answers nothing yet.
    pub async fn open(config: Option<MetricsConfig>) -> Result<Option<Self>, MetricsListenerError> {
        let Some(MetricsConfig { listen }) = config else { return Ok(None) };
        let failed = |source| MetricsListenerError { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Some(MetricsListener { address, listener }))
    }

    /// Serves `GET /metrics`, and nothing else, until `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// As [`serve()`].
    pub async fn serve(
        self,
        mut metrics: Metrics,
        counts: impl ScrapeCounts,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let database_up = metrics.database_up();
        self.answer(router(metrics, Some((counts, database_up))), stop).await
    }

    /// Like [`MetricsListener::serve`], for a daemon without a database.
    ///
    /// # Errors
    ///
    /// As [`MetricsListener::serve`].
    pub async fn serve_without_counts(
        self,
        metrics: Metrics,
        stop: CancellationToken,
    ) -> io::Result<()> {
        self.answer(router::<Infallible>(metrics, None), stop).await
    }

    async fn answer(self, router: Router, stop: CancellationToken) -> io::Result<()> {
        let limits = ConnectionLimits {
            at_most: CONNECTIONS,
            from_one_address: CONNECTIONS,
            ..ConnectionLimits::default()
        };
        serve(self.listener, router, limits, stop).await
    }
}

/// The metrics with the counts that a scrape refreshes.
struct ScrapedPage<C> {
    metrics: Metrics,
    counts: Option<(C, DatabaseUp)>,
    /// When the counts were read last.
    read_at: Mutex<Option<Instant>>,
}

fn router<C: ScrapeCounts>(metrics: Metrics, counts: Option<(C, DatabaseUp)>) -> Router {
    let page = ScrapedPage { metrics, counts, read_at: Mutex::new(None) };
    Router::new().route("/metrics", get(show::<C>)).with_state(Arc::new(page))
}

async fn show<C: ScrapeCounts>(State(page): State<Arc<ScrapedPage<C>>>) -> Response {
    match page.text().await {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(why) => {
            error!("cannot encode the metrics: {why}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl<C: ScrapeCounts> ScrapedPage<C> {
    async fn text(&self) -> Result<String, fmt::Error> {
        // Held until the page is encoded: parallel scrapes share one query, and no page shows half of the counts.
        let mut read_at = self.read_at.lock().await;
        if read_at.is_none_or(|at| at.elapsed() >= FRESH_FOR) {
            // Set before the query, so that clients that disconnect during the query cause no further ones.
            *read_at = Some(Instant::now());
            self.refresh().await;
        }
        self.metrics.text()
    }

    async fn refresh(&self) {
        let Some((counts, database_up)) = &self.counts else { return };
        let problem = match timeout(QUERY_TIMEOUT, counts.refresh()).await {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why.to_string()),
            Err(_) => Some(format!("the database did not answer within {QUERY_TIMEOUT:?}")),
        };
        if let Some(problem) = &problem {
            warn!("the metrics show earlier counts: {problem}");
        }
        database_up.set(problem.is_none());
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tokio::time::advance;
    use tower::ServiceExt;

    use super::*;

    #[derive(Clone, Copy)]
    enum Database {
        Answers,
        Fails,
        IsSilent,
    }

    struct Counts {
        database: Database,
        queries: Arc<AtomicUsize>,
    }

    impl ScrapeCounts for Counts {
        type Error = &'static str;

        async fn refresh(&self) -> Result<(), &'static str> {
            self.queries.fetch_add(1, SeqCst);
            match self.database {
                Database::Answers => Ok(()),
                Database::Fails => Err("no database"),
                Database::IsSilent => pending().await,
            }
        }
    }

    fn page(database: Database) -> (Router, Arc<AtomicUsize>) {
        let queries = Arc::<AtomicUsize>::default();
        let counts = Counts { database, queries: queries.clone() };
        let mut metrics = Metrics::new("test", "0");
        let database_up = metrics.database_up();
        (router(metrics, Some((counts, database_up))), queries)
    }

    async fn ask(router: &Router, method: &str, path: &str) -> (StatusCode, String) {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn scrapes_share_a_query_until_its_counts_are_old() {
        let (router, queries) = page(Database::Answers);
        for _ in 0..10 {
            let (status, text) = ask(&router, "GET", "/metrics").await;
            assert_eq!(status, StatusCode::OK);
            assert!(text.contains("bedplate_database_up 1\n"), "{text}");
        }
        assert_eq!(queries.load(SeqCst), 1);
        advance(FRESH_FOR).await;
        ask(&router, "GET", "/metrics").await;
        assert_eq!(queries.load(SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_that_fails_or_is_silent_does_not_hold_up_a_scrape() {
        for database in [Database::Fails, Database::IsSilent] {
            let (router, queries) = page(database);
            for _ in 0..2 {
                let (status, text) = ask(&router, "GET", "/metrics").await;
                assert_eq!(status, StatusCode::OK);
                assert!(text.contains("bedplate_database_up 0\n"), "{text}");
            }
            assert_eq!(queries.load(SeqCst), 1);
        }
    }

    #[tokio::test]
    async fn a_daemon_without_a_database_shows_none() {
        let router = router::<Infallible>(Metrics::new("test", "0"), None);
        let (status, text) = ask(&router, "GET", "/metrics").await;
        assert_eq!(status, StatusCode::OK);
        assert!(text.contains("bedplate_build_info{daemon=\"test\""), "{text}");
        assert!(!text.contains("bedplate_database_up"), "{text}");
    }

    #[tokio::test]
    async fn nothing_else_is_answered() {
        let (router, queries) = page(Database::Answers);
        for (method, path, want) in [
            ("GET", "/", StatusCode::NOT_FOUND),
            ("GET", "/v1/nodes", StatusCode::NOT_FOUND),
            ("GET", "/metrics/", StatusCode::NOT_FOUND),
            ("POST", "/metrics", StatusCode::METHOD_NOT_ALLOWED),
            ("DELETE", "/metrics", StatusCode::METHOD_NOT_ALLOWED),
        ] {
            assert_eq!(ask(&router, method, path).await, (want, String::new()), "{method} {path}");
        }
        assert_eq!(queries.load(SeqCst), 0);
    }
}
