//! Records the calls to a real cloud: a proxy in front of Keystone, which replaces the URL of every service in the catalog by its own and
//! logs
//! each call with its duration.
//!
//! A path begins with the name of the service, as in the emulated cloud: `/network/v2.0/ports`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpListener;

use super::cloud::LoggedCall;

/// The running proxy. Dropping the value stops it.
pub(crate) struct RecordingProxy {
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

struct Shared {
    address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
    began: Instant,
    /// The scheme, host and port of each service.
    origins: Mutex<BTreeMap<String, String>>,
    calls: Mutex<Vec<RecordedCall>>,
}

/// A recorded call with its contents, and the object that the call made.
#[derive(Clone, Debug)]
pub(crate) struct RecordedCall {
    pub(crate) call: LoggedCall,
    /// The path and the body of the call.
    pub(crate) says: String,
    /// The id of the object in the answer. `None` if the answer is not one object.
    pub(crate) made: Option<String>,
}

impl RecordingProxy {
    /// Starts a proxy in front of the Keystone at this URL, which must be plain HTTP.
    pub(crate) async fn to(keystone: &Uri) -> anyhow::Result<RecordingProxy> {
        anyhow::ensure!(
            keystone.scheme_str() == Some("http"),
            "{keystone}: only http can be recorded"
        );
        let host = keystone.authority().context("Keystone's URL has no host")?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let origins = BTreeMap::from([("identity".to_owned(), format!("http://{host}"))]);
        let shared = Arc::new(Shared {
            address: listener.local_addr()?,
            client: Client::builder(TokioExecutor::new()).build(connector),
            began: Instant::now(),
            origins: Mutex::new(origins),
            calls: Mutex::default(),
        });
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Sends small answers at once: Nagle's algorithm would delay them.
                let _ = stream.set_nodelay(true);
                let shared = serving.clone();
                let answer = service_fn(move |request| {
                    let shared = shared.clone();
                    async move { Ok::<_, Infallible>(shared.answer(request).await) }
                });
                tokio::spawn(async move {
                    let served =
                        http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                    // An error only means that the client closed its connection.
                    let _ = served.await;
                });
            }
        });
        Ok(RecordingProxy { shared, task })
    }

    /// The URL of the proxy for this path of Keystone.
    pub(crate) fn keystone(&self, path: &str) -> String {
        format!("http://{}/identity{path}", self.shared.address)
    }

    /// All recorded calls, in the order of their answers.
    pub(crate) fn calls(&self) -> Vec<RecordedCall> {
        self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Converts an instant to milliseconds of the proxy's clock.
    pub(crate) fn millis(&self, at: Instant) -> u64 {
        at.duration_since(self.shared.began).as_millis() as u64
    }
}

impl Drop for RecordingProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let begun = Instant::now();
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let forwarded = async {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let says = format!("{path}\n{}", String::from_utf8_lossy(&body));
            let (parts, answer) =
                self.forward(Request::from_parts(parts, body)).await?.into_parts();
            Ok((says, made(&answer), Response::from_parts(parts, Full::new(answer))))
        };
        let (says, made, answer) = match forwarded.await {
            Ok((says, made, answer)) => (says, made, Ok(answer)),
            Err(error) => (path.clone(), None, Err::<_, anyhow::Error>(error)),
        };
        let millis = |at: Instant| at.duration_since(self.began).as_millis() as u64;
        let call = LoggedCall {
            at_millis: millis(begun),
            took_millis: Some(millis(Instant::now()) - millis(begun)),
            method,
            path,
            status: answer.as_ref().ok().map(|answer| answer.status().as_u16()),
        };
        let heard = RecordedCall { call, says, made };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(heard);
        answer.unwrap_or_else(|error| {
            let mut answer = Response::new(Full::new(format!("{error:#}").into()));
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
            answer
        })
    }

    async fn forward(&self, request: Request<Bytes>) -> anyhow::Result<Response<Bytes>> {
        let (mut parts, body) = request.into_parts();
        let whole = parts.uri.path_and_query().context("no path")?.as_str().to_owned();
        let (service, rest) = whole[1..].split_once('/').context("no service in the path")?;
        let origin = {
            let origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
            origins.get(service).cloned().with_context(|| format!("{service} is unknown"))?
        };
        let is_token = parts.method == "POST" && rest.ends_with("auth/tokens");
        parts.uri = format!("{origin}/{rest}").parse()?;
        parts.headers.remove(HOST);
        let answer = self.client.request(Request::from_parts(parts, Full::new(body))).await?;
        let (mut parts, body) = answer.into_parts();
        let mut body = body.collect().await?.to_bytes();
        if is_token && parts.status.is_success() {
            body = self.with_own_urls(&body)?;
        }
        parts.headers.remove(CONNECTION);
        parts.headers.remove(TRANSFER_ENCODING);
        parts.headers.insert(CONTENT_LENGTH, body.len().into());
        Ok(Response::from_parts(parts, body))
    }

    /// The body of a token with the proxy as URL of every service in the catalog.
    fn with_own_urls(&self, body: &[u8]) -> anyhow::Result<Bytes> {
        let mut token: Value = serde_json::from_slice(body)?;
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        let services = token["token"]["catalog"].as_array_mut().context("no catalogue")?;
        for service in services {
            let name = service["type"].as_str().unwrap_or_default().to_owned();
            for endpoint in service["endpoints"].as_array_mut().into_iter().flatten() {
                let Some(url) = endpoint["url"].as_str().map(str::to_owned) else { continue };
                let own: Uri = url.parse()?;
                let Some(host) = own.authority() else { continue };
                origins.insert(name.clone(), format!("http://{host}"));
                let path = own.path().trim_end_matches('/');
                endpoint["url"] = format!("http://{}/{name}{path}", self.address).into();
            }
        }
        Ok(serde_json::to_vec(&token)?.into())
    }
}

/// The id in `{"port": {"id": …}}`.
fn made(answer: &[u8]) -> Option<String> {
    let answer: BTreeMap<String, Value> = serde_json::from_slice(answer).ok()?;
    let [object] = answer.values().collect::<Vec<_>>()[..] else { return None };
    object.get("id")?.as_str().map(str::to_owned)
}
