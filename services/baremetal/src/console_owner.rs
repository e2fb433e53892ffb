//! Passes requests for a serial console on to the baremetald that works on the node. A BMC offers its machine's serial port to one session, so
//! all viewers have to share the one of that process.
//!
//! The request arrives there as the client sent it: that process authenticates the caller, counts the viewer and records the request. It
//! believes the address of the client if its `trusted_proxies` name this process.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use baremetal_api::App;
use baremetal_conductor::Conductor;
use baremetal_core::NodeIdent;
use baremetal_store::Store;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use openstack_api::TrustedProxies;
use reqwest::Client;
use tokio::io::copy_bidirectional;
use tokio::time::timeout;
use tracing::{debug, warn};
use url::Url;

use crate::config::ConductorConfig;

/// Marks a request that was passed on, so that it is passed on once.
const PASSED_ON: HeaderName = HeaderName::from_static("x-bedplate-passed-on");

/// The headers by which proxies tell who the client is.
const FORWARDED: [&str; 5] =
    [FORWARDED_FOR, "x-forwarded-proto", "x-forwarded-host", "x-forwarded-prefix", "forwarded"];

/// The one with the address of the client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// How long a connection to another baremetald may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long another baremetald may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The other baremetald, and a client of them.
#[derive(Clone)]
struct ConsoleOwners {
    conductor: Conductor,
    store: Store,
    client: Client,
    proxies: TrustedProxies,
}

/// Returns the router of the API, which passes these requests on if there may be others.
pub(crate) fn wrap(app: App, config: &ConductorConfig) -> anyhow::Result<Router> {
    if !app.store.conductors().is_shared() {
        return Ok(baremetal_api::router(app));
    }
    let client = api_client::http_client(config.peer_ca_file.as_deref());
    let client = client.context("cannot use the CAs of the others (conductor.peer_ca_file)")?;
    let client = client.connect_timeout(CONNECT_TIMEOUT).build();
    let client = client.context("cannot make an HTTP client for the others")?;
    let (conductor, store) = (app.conductor.clone(), app.store.clone());
    let owners = ConsoleOwners { conductor, store, client, proxies: app.settings.api.proxies };
    Ok(baremetal_api::router(app).layer(from_fn_with_state(owners, pass_on)))
}

/// Answers with the answer of the owner, or handles the request here if this process is the owner or the owner cannot be reached.
async fn pass_on(State(owners): State<ConsoleOwners>, request: Request, next: Next) -> Response {
    // The request is not looked at while the database answers, because its body may stay on one thread only.
    let owner = match console_of(&request) {
        Some(node) => owners.find(&node).await,
        None => None,
    };
    let Some(owner) = owner else { return next.run(request).await };
    let (mut head, body) = request.into_parts();
    match timeout(ANSWER_TIMEOUT, owners.ask(&owner, &head)).await {
        Ok(Ok(answer)) => return pass_back(answer, head.extensions.remove::<OnUpgrade>()),
        Ok(Err(why)) => warn!("cannot reach the baremetald at {owner}: {why}"),
        Err(_) => warn!("the baremetald at {owner} does not answer"),
    }
    next.run(Request::from_parts(head, body)).await
}

/// Returns the node whose serial console the request asks for, unless the request was passed on already.
fn console_of(request: &Request) -> Option<NodeIdent> {
    let (node, rest) = request.uri().path().strip_prefix("/bedplate/v1/nodes/")?.split_once('/')?;
    let is_asked = ["console", "console/log"].contains(&rest) && request.method() == Method::GET;
    if !is_asked || request.headers().contains_key(PASSED_ON) {
        return None;
    }
    node.parse().ok()
}

impl ConsoleOwners {
    /// Returns the URL of another baremetald that has to answer for this node.
    async fn find(&self, node: &NodeIdent) -> Option<Url> {
        // The API itself answers if there is no such node, or if the database does not answer.
        let node = self.store.find_node(node).await.ok()??;
        self.conductor.peer_of(&node)
    }

    /// Sends the request to its owner.
    async fn ask(&self, owner: &Url, head: &Parts) -> reqwest::Result<reqwest::Response> {
        let mut url = owner.clone();
        url.set_path(&format!("{}{}", owner.path().trim_end_matches('/'), head.uri.path()));
        url.set_query(head.uri.query());
        self.client.get(url).headers(passed_on(head, &self.proxies)).send().await
    }
}

/// Returns the headers of a request that is passed on, with the address of the client. Only a trusted proxy may have written such headers.
fn passed_on(head: &Parts, proxies: &TrustedProxies) -> HeaderMap {
    let mut headers = head.headers.clone();
    headers.insert(PASSED_ON, HeaderValue::from_static("yes"));
    let peer = head.extensions.get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|ConnectInfo(from)| from.ip().to_canonical());
    if peer.is_some_and(|peer| proxies.contain(peer)) {
        return headers;
    }
    for name in FORWARDED {
        headers.remove(name);
    }
    if let Some(address) = peer.and_then(|peer| peer.to_string().parse().ok()) {
        headers.insert(FORWARDED_FOR, address);
    }
    headers
}

/// Passes the answer of the owner back to the client, and the messages of a WebSocket in both directions.
fn pass_back(answer: reqwest::Response, client: Option<OnUpgrade>) -> Response {
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    let body = match (status, client) {
        (StatusCode::SWITCHING_PROTOCOLS, Some(client)) => {
            tokio::spawn(connect(client, answer));
            Body::empty()
        }
        (StatusCode::SWITCHING_PROTOCOLS, None) => {
            let mut refusal = Response::new(Body::from("the connection cannot be upgraded\n"));
            *refusal.status_mut() = StatusCode::BAD_GATEWAY;
            return refusal;
        }
        _ => {
            // These tell about the connection to the owner.
            headers.remove(CONNECTION);
            headers.remove(TRANSFER_ENCODING);
            Body::from_stream(answer.bytes_stream())
        }
    };
    let mut passed = Response::new(body);
    *passed.status_mut() = status;
    *passed.headers_mut() = headers;
    passed
}

/// Connects the client and the owner until one of them closes its connection.
async fn connect(client: OnUpgrade, owner: reqwest::Response) {
    let connected = async {
        let mut owner = owner.upgrade().await.map_err(io::Error::other)?;
        let mut client = TokioIo::new(client.await.map_err(io::Error::other)?);
        copy_bidirectional(&mut client, &mut owner).await
    };
    if let Err(why) = connected.await {
        debug!("the connection of a serial console has ended: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_for_serial_consoles_are_passed_on_and_only_once() {
        for (path, want) in [
            ("/bedplate/v1/nodes/r1u7/console", Some("r1u7")),
            ("/bedplate/v1/nodes/r1u7/console/log", Some("r1u7")),
            ("/bedplate/v1/nodes/r1u7/vnc", None),
            ("/bedplate/v1/nodes/r1u7/console/other", None),
            ("/v1/nodes/r1u7/states/console", None),
            ("/bedplate/v1/nodes/console", None),
        ] {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = path.parse().unwrap();
            let want = want.map(|name| name.parse().unwrap());
            assert_eq!(console_of(&request), want, "{path}");
            request.headers_mut().insert(PASSED_ON, HeaderValue::from_static("yes"));
            assert_eq!(console_of(&request), None, "{path}");
        }
    }

    #[test]
    fn the_owner_is_told_the_address_of_the_client_that_was_seen() {
        let mut request = Request::new(Body::empty());
        let forged = HeaderValue::from_static("192.0.2.66");
        for name in FORWARDED {
            request.headers_mut().insert(name, forged.clone());
        }
        let client: SocketAddr = "203.0.113.9:40000".parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(client));
        let head = request.into_parts().0;
        let told = |proxies: &TrustedProxies| {
            let headers = passed_on(&head, proxies);
            assert_eq!(headers[PASSED_ON], "yes");
            FORWARDED.map(|name| headers.get(name).cloned())
        };
        let seen = Some(HeaderValue::from_static("203.0.113.9"));
        assert_eq!(told(&TrustedProxies::default()), [seen, None, None, None, None]);
        let proxies = vec!["203.0.113.0/24".to_owned()].try_into().unwrap();
        assert_eq!(told(&proxies), FORWARDED.map(|_| Some(forged.clone())));
    }
}
