//! The HTTP server: reads requests, applies fault rules, logs calls.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use serde_json::json;
use sha2::{Digest, Sha512};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tracing::debug;

use crate::dispatch::{by_rule, dispatch, refuse};
use crate::faults::{MatchedCall, meddle};
use crate::kept::StateFile;
use crate::request::{Answer, ApiError, ApiRequest, Caller, plain};
use crate::service::Service;
use crate::shared::Shared;
use crate::world;
use crate::{clock, control};

/// How long a client may take to send its headers.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of a body, except for image data.
const LARGEST_BODY: usize = 1 << 20;
/// The most bytes of an object in Swift.
const LARGEST_OBJECT: usize = 64 << 20;
/// The most bytes of an image to keep for downloads. Of larger images only the checksum is kept.
const KEPT_IMAGE: usize = 1 << 20;

/// Answers on `listener` until dropped. Changes are answered after `keeper` has stored them.
pub(crate) async fn run(
    listener: TcpListener,
    shared: Arc<Shared>,
    keeper: Option<Arc<StateFile>>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, shared.clone(), keeper.clone()));
                }
                // The usual error is too many open files. A pause lets some close.
                Err(error) => {
                    debug!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(ended) = connections.join_next() => {
                // A panic in a task becomes a panic of the program.
                if let Err(error) = ended && error.is_panic() {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, keeper: Option<Arc<StateFile>>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| respond(shared.clone(), keeper.clone(), request));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        debug!(%error, "a connection ended badly");
    }
}

/// Answers one request. An error closes the connection without an answer.
async fn respond(
    shared: Arc<Shared>,
    keeper: Option<Arc<StateFile>>,
    request: Request<Incoming>,
) -> io::Result<Response<Full<Bytes>>> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let mut words = path.split('/').filter(|word| !word.is_empty()).map(decode);
    let first = words.next().unwrap_or_default();
    if first == "_control" {
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let rest: Vec<String> = words.collect();
        let query = parts.uri.query().unwrap_or_default();
        let (status, value) = control::answer(&shared, &parts.method, &rest, query, &body).await;
        if parts.method != http::Method::GET {
            shared.with(|world| world.changes += 1);
            keep(keeper.as_deref()).await;
        }
        return Ok(write(Answer::json(status, value)));
    }
    let host = parts.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    let base = format!("http://{}", host.map_or_else(|| shared.address.to_string(), str::to_owned));
    let Some(service) = Service::all().find(|service| service.prefix() == first) else {
        let known = Service::all().map(|service| format!("{base}/{}", service.prefix()));
        let known: Vec<String> = known.collect();
        let status = if first.is_empty() { 200 } else { 404 };
        return Ok(write(Answer::json(status, json!({"services": known}))));
    };
    let query = parts.uri.query().unwrap_or_default();
    let changes = !matches!(parts.method, http::Method::GET | http::Method::HEAD);
    let pairs = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let asked = ApiRequest {
        service,
        method: parts.method,
        segments: words.collect(),
        path: path.clone(),
        query: pairs,
        headers: parts.headers,
        body: Bytes::new(),
        base,
        request_id: format!("req-{}", world::new_id()),
        caller: Caller::default(),
        version: 0,
    };
    let global = asked.headers.get("x-openstack-request-id").and_then(|id| id.to_str().ok());
    let ids = (asked.request_id.as_str(), global.unwrap_or_default());
    let number =
        shared.with(|world| world.log.begin(asked.method.as_str(), &asked.path, query, ids));
    let answered = handle(&shared, asked, body, query, number).await;
    if changes {
        keep(keeper.as_deref()).await;
    }
    let status = answered.as_ref().ok().map(|answer| answer.status);
    shared.with(|world| world.log.end(number, status));
    shared.called();
    answered.map(write)
}

async fn keep(keeper: Option<&StateFile>) {
    if let Some(keeper) = keeper {
        keeper.keep().await;
    }
}

async fn handle(
    shared: &Arc<Shared>,
    mut asked: ApiRequest,
    body: Incoming,
    query: &str,
    number: u64,
) -> io::Result<Answer> {
    match read(&mut asked, body).await {
        Ok(body) => asked.body = body,
        Err(Some(problem)) => return Ok(refuse(&asked, &problem)),
        Err(None) => return Err(io::ErrorKind::BrokenPipe.into()),
    }
    let (method, path, body) = (asked.method.clone(), asked.path.clone(), asked.body.clone());
    let met = MatchedCall { method: method.as_str(), path: &path, query, body: &body };
    let refused = asked.clone();
    let world = shared.clone();
    let changes = !matches!(method, http::Method::GET | http::Method::HEAD);
    let work = move || {
        let answer = world.with(|world| {
            clock::settle(world);
            world.changes += u64::from(changes);
            let answer = dispatch(world, &mut asked);
            world.log.worked(number, &asked.caller.project);
            answer
        });
        world.changed();
        answer
    };
    meddle(shared, &met, work, |(status, retry_after, message)| {
        by_rule(&refused, status, retry_after, message)
    })
    .await
}

/// Reads a body. Of image data, only size and checksum are passed on, in internal headers.
async fn read(asked: &mut ApiRequest, mut body: Incoming) -> Result<Bytes, Option<ApiError>> {
    let last = asked.segments.last().map(String::as_str);
    let data = asked.method == http::Method::PUT
        && asked.service == Service::Image
        && matches!(last, Some("file" | "stage"));
    let largest = match asked.service {
        Service::ObjectStore => LARGEST_OBJECT,
        Service::Identity
        | Service::Image
        | Service::Compute
        | Service::Placement
        | Service::Network
        | Service::LoadBalancer
        | Service::Dns
        | Service::Volume => LARGEST_BODY,
    };
    let mut kept = BytesMut::new();
    let mut size: usize = 0;
    let mut digest = Sha512::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| None)?;
        let Some(chunk) = frame.data_ref() else { continue };
        size += chunk.len();
        if data {
            digest.update(chunk);
            if size <= KEPT_IMAGE {
                kept.extend_from_slice(chunk);
            }
        } else if size > largest {
            return Err(Some(ApiError::new(413, "", "Request is too large.")));
        } else {
            kept.extend_from_slice(chunk);
        }
    }
    if data {
        let hash: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        for (name, value) in [("x-emulator-size", size.to_string()), ("x-emulator-sha512", hash)] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                asked.headers.insert(name, value);
            }
        }
        if size > KEPT_IMAGE {
            kept.clear();
        }
    }
    Ok(kept.freeze())
}

fn decode(word: &str) -> String {
    percent_decode_str(word).decode_utf8_lossy().into_owned()
}

fn write(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = http::StatusCode::from_u16(answer.status)
        .unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        match HeaderValue::from_str(&value) {
            Ok(value) => response.headers_mut().append(name, value),
            Err(_) => return write(Answer::json(500, plain("an answer had an unsendable header"))),
        };
    }
    response
}
