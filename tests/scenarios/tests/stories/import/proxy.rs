//! Proxies before two services, which stop the command line before and after each of its changes.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use reqwest::{Client, Method};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use url::Url;

/// The moment of a change at which the command line stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// The request does not reach the service.
    Before,
    /// The answer does not reach the command line.
    After,
}

/// Stops each change that passes one of its proxies, at first before and then after the change, and afterwards no more.
#[derive(Default)]
pub(crate) struct Gate {
    known: Mutex<BTreeSet<(String, Moment)>>,
    is_open: AtomicBool,
    stopped: Notify,
}

/// A proxy, which ends on drop.
pub(crate) struct Proxy {
    pub(crate) url: String,
    _server: JoinSet<()>,
}

/// The service behind a proxy.
#[derive(Clone)]
struct Upstream {
    gate: Arc<Gate>,
    client: Client,
    url: Url,
}

impl Gate {
    /// Stops no further change.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Waits until a change was stopped.
    pub(crate) async fn stopped(&self) {
        self.stopped.notified().await;
    }

    /// How often a change was stopped.
    pub(crate) fn count(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The moment at which this change is stopped now.
    fn moment(&self, change: &str) -> Option<Moment> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut moments = [Moment::Before, Moment::After].into_iter();
        let is_open = self.is_open.load(Ordering::Relaxed);
        moments.find(|moment| !is_open && known.insert((change.to_owned(), *moment)))
    }

    async fn stop(&self) {
        self.stopped.notify_one();
        pending().await
    }
}

impl Proxy {
    pub(crate) async fn start(gate: &Arc<Gate>, url: &Url) -> Proxy {
        let client = Client::builder().no_proxy().build().expect("a client");
        let upstream = Upstream { gate: gate.clone(), client, url: url.clone() };
        let router = Router::new().fallback(pass).with_state(upstream);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.expect("a server") });
        Proxy { url: format!("http://{address}"), _server: server }
    }
}

/// Passes a request on, unless the gate stops it.
async fn pass(State(upstream): State<Upstream>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let is_change = request.method() != Method::GET && !query.contains("dry_run=true");
    let change = format!("{} {}", request.method(), request.uri().path());
    let moment = is_change.then(|| upstream.gate.moment(&change)).flatten();
    if moment == Some(Moment::Before) {
        upstream.gate.stop().await;
    }
    let answer = upstream.answer(request).await;
    if moment == Some(Moment::After) {
        upstream.gate.stop().await;
    }
    answer
}

impl Upstream {
    async fn answer(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let url = self.url.join(&path).expect("a path");
        let mut headers = head.headers;
        headers.remove("host");
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        let sent = self.client.request(head.method, url).headers(headers).body(body).send().await;
        let answer = sent.expect("the service answers");
        let mut response = Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            if name != "transfer-encoding" {
                response = response.header(name, value);
            }
        }
        let body = answer.bytes().await.expect("a body");
        response.body(Body::from(body)).expect("an answer")
    }
}
