//! The API server: discovery, objects, certificate requests.

use std::convert::Infallible;
use std::sync::Arc;

use base64::Engine;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::state::{Cluster, Place, decoded};
use super::{discovery, patch, protobuf, table};

const LARGEST_BODY: usize = 3 << 20;

type Reply = (u16, Value);

/// Answers until dropped.
pub(super) async fn serve(listener: TcpListener, tls: TlsAcceptor, cluster: Arc<Cluster>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (tls, cluster) = (tls.clone(), cluster.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let known = stream.get_ref().1.peer_certificates().is_some();
            let service = service_fn(move |request| {
                let cluster = cluster.clone();
                async move { Ok::<_, Infallible>(respond(&cluster, known, request).await) }
            });
            // A client that goes away ends its connection; nobody needs to know.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn respond(
    cluster: &Cluster,
    known: bool,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if ["/healthz", "/livez", "/readyz"].contains(&path) {
        return Response::new(Full::new(Bytes::from_static(b"ok")));
    }
    let header = |name: &str| {
        parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let (status, value) = if !known && path != "/version" {
        failure(401, "Unauthorized", "Unauthorized")
    } else {
        match Limited::new(body, LARGEST_BODY).collect().await {
            Ok(body) => {
                let asked = Asked {
                    method: parts.method.as_str(),
                    path,
                    query: parts.uri.query().unwrap_or_default(),
                    accept: header("accept"),
                    kind: header("content-type"),
                    body: &body.to_bytes(),
                };
                answer(cluster, &asked)
            }
            Err(_) => failure(413, "RequestEntityTooLarge", "the request is too large"),
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(value.to_string())));
    *response.status_mut() =
        http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

struct Asked<'r> {
    method: &'r str,
    path: &'r str,
    query: &'r str,
    accept: &'r str,
    kind: &'r str,
    body: &'r [u8],
}

fn failure(code: u16, reason: &str, message: &str) -> Reply {
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}),
    )
}

fn lost(path: &str) -> Reply {
    failure(404, "NotFound", &format!("the server could not find the requested resource: {path}"))
}

fn answer(cluster: &Cluster, asked: &Asked<'_>) -> Reply {
    let segments: Vec<&str> = asked.path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        ["version"] => {
            let version = json!({"major": "1", "minor": "20", "gitVersion": "v1.20.2", "platform": "linux/amd64", "goVersion": "", "compiler": "", "gitCommit": "", "gitTreeState": "", "buildDate": ""});
            (200, version)
        }
        ["api"] => (
            200,
            json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ),
        ["apis"] => (200, discovery::groups()),
        ["apis", group] => {
            discovery::group(group).map_or_else(|| lost(asked.path), |body| (200, body))
        }
        ["api", "v1"] => (200, discovery::resources("v1").unwrap_or_default()),
        ["apis", group, version] => discovery::resources(&format!("{group}/{version}"))
            .map_or_else(|| lost(asked.path), |body| (200, body)),
        ["api", "v1", rest @ ..] => resource(cluster, asked, "v1", rest),
        ["apis", group, version, rest @ ..] => {
            resource(cluster, asked, &format!("{group}/{version}"), rest)
        }
        _ => lost(asked.path),
    }
}

fn resource(cluster: &Cluster, asked: &Asked<'_>, group: &str, path: &[&str]) -> Reply {
    let (namespace, path) = match path {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        all => ("", all),
    };
    let [name, rest @ ..] = path else { return lost(asked.path) };
    let Some((kind, _)) = discovery::find(group, name) else { return lost(asked.path) };
    match rest {
        [] => collection(cluster, asked, group, name, namespace, kind),
        [one, below @ ..] => {
            let place: Place =
                (group.to_owned(), (*name).to_owned(), namespace.to_owned(), (*one).to_owned());
            object(cluster, asked, place, below)
        }
    }
}

fn collection(
    cluster: &Cluster,
    asked: &Asked<'_>,
    group: &str,
    name: &str,
    namespace: &str,
    kind: &str,
) -> Reply {
    let parameter = |wanted: &str| {
        let mut pairs = url::form_urlencoded::parse(asked.query.as_bytes());
        pairs
            .find(|(key, _)| key == wanted)
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    };
    match asked.method {
        "GET" if parameter("watch") == "true" || parameter("watch") == "1" => {
            failure(405, "MethodNotAllowed", "the emulated API server does not watch")
        }
        "GET" => cluster.with(|objects| {
            let (labels, fields) = (parameter("labelSelector"), parameter("fieldSelector"));
            let mut all = objects.list(group, name, namespace);
            all.retain(|object| selected(object, &labels, |object, key| object["metadata"]["labels"][key].clone()) && selected(object, &fields, field));
            if asked.accept.contains("as=Table") {
                return (200, table::table(name, &all, &objects.version()));
            }
            (200, json!({"kind": format!("{kind}List"), "apiVersion": group, "metadata": {"resourceVersion": objects.version()}, "items": all}))
        }),
        "POST" => {
            let Some(given) = patch::yaml(asked.body) else { return failure(400, "BadRequest", "the body cannot be read") };
            let one = given["metadata"]["name"].as_str().map(str::to_owned).or_else(|| {
                let prefix = given["metadata"]["generateName"].as_str()?;
                Some(format!("{prefix}{}", &crate::world::short_id()[..5]))
            });
            let Some(one) = one else { return failure(422, "Invalid", "name or generateName is required") };
            let place: Place = (group.to_owned(), name.to_owned(), namespace.to_owned(), one.clone());
            cluster.with(|objects| {
                if objects.get(&place).is_some() {
                    return failure(409, "AlreadyExists", &format!("{name} {one:?} already exists"));
                }
                (201, objects.put(place, given))
            })
        }
        "DELETE" => cluster.with(|objects| {
            let gone: Vec<String> = objects.list(group, name, namespace).iter().filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)).collect();
            for one in gone {
                objects.remove(&(group.to_owned(), name.to_owned(), namespace.to_owned(), one));
            }
            (200, json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}))
        }),
        _ => failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
    }
}

/// Whether an object is what a selector of `key=value`, `key!=value` and `key` selects.
fn selected(object: &Value, selector: &str, field: impl Fn(&Value, &str) -> Value) -> bool {
    selector.split(',').filter(|term| !term.is_empty()).all(|term| {
        if let Some((key, value)) = term.split_once("!=") {
            return field(object, key.trim()) != value.trim();
        }
        match term.split_once('=') {
            Some((key, value)) => field(object, key.trim()) == value.trim_start_matches('=').trim(),
            None => !field(object, term.trim()).is_null(),
        }
    })
}

fn field(object: &Value, path: &str) -> Value {
    let pointer = format!("/{}", path.replace('.', "/"));
    object.pointer(&pointer).cloned().unwrap_or_else(|| json!(""))
}

fn object(cluster: &Cluster, asked: &Asked<'_>, place: Place, below: &[&str]) -> Reply {
    let missing = || {
        let message = format!("{} \"{}\" not found", place.1, place.3);
        failure(404, "NotFound", &message)
    };
    let here = cluster.with(|objects| objects.get(&place).cloned());
    match (asked.method, below) {
        ("GET", [] | ["status"]) => match here {
            Some(object) if asked.accept.contains("as=Table") => {
                let version = cluster.with(|objects| objects.version());
                (200, table::table(&place.1, &[&object], &version))
            }
            Some(object) => (200, object),
            None => missing(),
        },
        ("POST", ["eviction"]) => match cluster.with(|objects| objects.remove(&place)) {
            Some(_) => (
                201,
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}),
            ),
            None => missing(),
        },
        ("DELETE", []) => match cluster.with(|objects| objects.remove(&place)) {
            Some(_) => (
                200,
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": {"name": place.3, "kind": place.1}}),
            ),
            None => missing(),
        },
        ("PUT", [] | ["status" | "approval"]) => {
            let Some(before) = here else { return missing() };
            let protobuf = asked.kind.contains("protobuf");
            let given = match protobuf.then(|| protobuf::conditions(asked.body)) {
                Some(Some(conditions)) if below == ["approval"] => {
                    let mut after = before.clone();
                    after["status"]["conditions"] = conditions;
                    Some(after)
                }
                Some(_) => None,
                None => patch::yaml(asked.body),
            };
            let Some(given) = given else {
                return failure(415, "UnsupportedMediaType", "the body cannot be read: send JSON");
            };
            let version = &given["metadata"]["resourceVersion"];
            if version.is_string() && *version != before["metadata"]["resourceVersion"] {
                return failure(
                    409,
                    "Conflict",
                    "the object has been modified; please apply your changes to the latest version and try again",
                );
            }
            (200, written(cluster, place, given))
        }
        ("PATCH", [] | ["status" | "approval"]) => {
            let apply = asked.kind.starts_with("application/apply-patch");
            let Some(before) = here.clone().or_else(|| apply.then(|| json!({}))) else {
                return missing();
            };
            let Some(after) = patch::patched(&before, asked.kind, asked.body) else {
                return failure(
                    415,
                    "UnsupportedMediaType",
                    "the patch cannot be read or does not fit",
                );
            };
            (if here.is_some() { 200 } else { 201 }, written(cluster, place, after))
        }
        _ => failure(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
    }
}

/// Writes an object; a certificate request that is approved is signed.
fn written(cluster: &Cluster, place: Place, mut object: Value) -> Value {
    if place.1 == "certificatesigningrequests" {
        let approved = object["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Approved");
        let request = decoded(&object["spec"]["request"]);
        if approved
            && object["status"]["certificate"].is_null()
            && let Some(certificate) = request.and_then(|request| cluster.sign(&request))
        {
            object["status"]["certificate"] =
                json!(base64::engine::general_purpose::STANDARD.encode(certificate));
        }
    }
    cluster.with(|objects| objects.put(place, object))
}
