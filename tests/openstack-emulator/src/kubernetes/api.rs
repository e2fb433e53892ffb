//! The API server: connections, authentication, discovery, and routing of requests.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::auth::User;
use super::cluster::Cluster;
use super::discovery;
use super::object::{Collection, collection, object};
use super::reply::{self, ParsedRequest, Reply, failure};
use super::state::{DEFAULT_RELEASE, Objects};
use crate::cloud::Cloud;
use crate::faults::{Instead, MatchedCall, meddle};

const LARGEST_BODY: usize = 3 << 20;

/// Serves the API until dropped.
pub(super) async fn serve(
    listener: TcpListener,
    tls: watch::Receiver<TlsAcceptor>,
    cluster: Arc<Cluster>,
    cloud: Cloud,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (tls, cluster, cloud) = (tls.borrow().clone(), cluster.clone(), cloud.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let shown = stream.get_ref().1.peer_certificates();
            let user = shown.and_then(|all| User::by_certificate(all.first()?));
            let service = service_fn(move |request| {
                respond(cloud.clone(), cluster.clone(), user.clone(), request)
            });
            // An error only means that the client closed its connection.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// Answers one request. An error closes the connection without an answer.
async fn respond(
    cloud: Cloud,
    cluster: Arc<Cluster>,
    user: Option<User>,
    request: Request<Incoming>,
) -> io::Result<Response<Full<Bytes>>> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, LARGEST_BODY).collect().await.map(|body| body.to_bytes());
    let (method, query) = (parts.method.clone(), parts.uri.query().unwrap_or_default().to_owned());
    let path = format!("kubernetes:{}", parts.uri.path());
    let known = body.as_ref().cloned().unwrap_or_default();
    let met = MatchedCall { method: method.as_str(), path: &path, query: &query, body: &known };
    let work = move || write(handle(&cluster, user, &parts, body.ok().as_ref()));
    let refuse = |(status, _, message): Instead| {
        write(failure(status, "InternalError", &message.unwrap_or_default()))
    };
    meddle(&cloud.shared, &met, work, refuse).await
}

/// The reply to a request. `body` is `None` if the body was too large.
fn handle(cluster: &Cluster, user: Option<User>, parts: &Parts, body: Option<&Bytes>) -> Reply {
    let path = parts.uri.path();
    if ["/healthz", "/livez", "/readyz"].contains(&path) {
        return (200, json!("ok"));
    }
    let header = |name: &str| {
        parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let bearer = header("authorization").strip_prefix("Bearer ");
    let user = user.or_else(|| cluster.with(|objects| User::by_token(objects, bearer?)));
    if user.is_none() && path != "/version" {
        return reply::unauthorized();
    }
    let Some(body) = body else { return reply::too_large() };
    let asked = ParsedRequest {
        user: user.unwrap_or(User { name: "system:anonymous".into(), groups: vec![] }),
        method: parts.method.as_str(),
        path,
        query: parts.uri.query().unwrap_or_default(),
        accept: header("accept"),
        kind: header("content-type"),
        body,
    };
    cluster.with(|objects| answer(objects, &asked))
}

fn write((status, value): Reply) -> Response<Full<Bytes>> {
    // A JSON string is the output of a container, which is sent as plain text.
    let (kind, text) = match value.as_str() {
        Some(text) => ("text/plain", text.to_owned()),
        None => ("application/json", value.to_string()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() =
        http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn answer(objects: &mut Objects, asked: &ParsedRequest) -> Reply {
    let segments: Vec<&str> = asked.path.split('/').filter(|segment| !segment.is_empty()).collect();
    let or_lost =
        |body: Option<Value>| body.map_or_else(|| reply::lost(asked.path), |body| (200, body));
    match segments.as_slice() {
        ["version"] => {
            let release =
                if objects.release.is_empty() { DEFAULT_RELEASE } else { &objects.release };
            let minor = objects.minor().to_string();
            (
                200,
                json!({"major": "1", "minor": minor, "gitVersion": release, "platform": "linux/amd64", "goVersion": "", "compiler": "", "gitCommit": "", "gitTreeState": "", "buildDate": ""}),
            )
        }
        ["api"] => {
            let versions = json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []});
            (200, versions)
        }
        ["apis"] => (200, discovery::groups(objects)),
        ["apis", group] => or_lost(discovery::group(objects, group)),
        ["api", "v1"] => or_lost(discovery::resources(objects, "v1")),
        ["apis", group, version] => {
            or_lost(discovery::resources(objects, &format!("{group}/{version}")))
        }
        ["api", "v1", rest @ ..] => resource(objects, asked, "v1", rest),
        ["apis", group, version, rest @ ..] => {
            resource(objects, asked, &format!("{group}/{version}"), rest)
        }
        _ => reply::lost(asked.path),
    }
}

fn resource(objects: &mut Objects, asked: &ParsedRequest, group: &str, path: &[&str]) -> Reply {
    let (namespace, path) = match path {
        ["namespaces", namespace, rest @ ..]
            if !rest.is_empty() && !["status", "finalize"].contains(&rest[0]) =>
        {
            (*namespace, rest)
        }
        all => ("", all),
    };
    let [name, rest @ ..] = path else { return reply::lost(asked.path) };
    let meant = discovery::canonical(objects, group);
    let Some(resource) = meant.and_then(|meant| discovery::find(objects, &meant, name)) else {
        return reply::lost(asked.path);
    };
    if !asked.user.may(asked.method, name) {
        return reply::forbidden(name, &asked.user.name);
    }
    let of = Collection { resource: &resource, namespace };
    let answer = match rest {
        [] => collection(objects, asked, &of),
        [one, below @ ..] => object(objects, asked, &of.key(one), below),
    };
    let (code, mut body) = answer.unwrap_or_else(|failure| failure);
    // Objects are returned in the API version that the client asked for.
    if body["apiVersion"] == resource.group.as_str() {
        body["apiVersion"] = json!(group);
        let items = body.get_mut("items").and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            item["apiVersion"] = json!(group);
        }
    }
    (code, body)
}
