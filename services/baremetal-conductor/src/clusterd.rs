//! The client of clusterd: asks whether a compute host may be drained, starts and ends drains, and checks whether a host is empty.

use std::time::Duration;

use baremetal_core::{DrainOwner, DrainSeen, Node, compute_host, drain_noted};
use openstack::{Service, Session};
use reqwest::header::HeaderValue;
use reqwest::{Client, Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tracing::warn;
use url::Url;

use crate::Conductor;
use crate::handle::TurnContext;

/// The timeout of a call to clusterd, which asks the cloud before it answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The address of clusterd, and the identity for calls to it.
#[derive(Clone, Debug)]
pub struct ClusterdClient {
    /// The base URL; `None` takes the URL from the service catalogue.
    pub url: Option<Url>,
    pub caller: ClusterdIdentity,
}

/// The identity for calls to clusterd.
#[derive(Clone, Debug)]
pub enum ClusterdIdentity {
    /// No identity, for a clusterd without authentication.
    Anonymous,
    /// A user name and a password of clusterd's own.
    Basic(String, SecretString),
    /// A Keystone user.
    Keystone(Session),
}

/// Why a node must not be taken out of use now.
#[derive(Debug, thiserror::Error)]
pub enum TakeOutRefused {
    /// A cluster would lose its quorum.
    #[error("node {node} is compute host {host}: {why}")]
    Refused {
        node: String,
        /// The name of the compute host.
        host: String,
        /// The reason in clusterd's words.
        why: String,
    },
    /// Servers may run on the host.
    #[error(
        "node {node} is compute host {host}, which is not drained{}; drain it first (`bedplate drain {host} --wait`), or name {host} in force",
        so_far(*left)
    )]
    Occupied {
        node: String,
        /// The name of the compute host.
        host: String,
        /// The number of servers left, or 0 if the drain has not counted them yet.
        left: usize,
    },
    /// clusterd does not answer, so nobody knows what runs on the host.
    #[error(
        "node {node} is compute host {host}, and clusterd did not say whether the host may be taken out: {why}; name {host} in force to skip this check"
    )]
    Unknown {
        node: String,
        /// The name of the compute host.
        host: String,
        why: String,
    },
}

/// Returns the progress of a drain as a part of a message; empty if the drain has not counted yet.
fn so_far(left: usize) -> String {
    match left {
        0 => String::new(),
        1 => ": 1 server is on it".to_owned(),
        many => format!(": {many} servers are on it"),
    }
}

/// A drain in clusterd's JSON.
#[derive(Deserialize)]
struct Drain {
    state: String,
    left: Vec<serde_json::Value>,
    foreign: usize,
    problem: Option<String>,
}

/// The answer of clusterd's check, which contains a drain if the host has one.
#[derive(Deserialize)]
struct Check {
    drain: Option<Drain>,
}

impl Conductor {
    /// Returns the name of the compute host that has to be drained before the node is taken out. Returns `None` if no clusterd is
    /// configured, the node is not a compute host, or `forced` contains the host's name.
    pub fn host_to_drain(&self, node: &Node, forced: &[String]) -> Option<String> {
        self.context.settings.clusters.as_ref()?;
        let host = compute_host(node)?;
        if forced.iter().any(|name| name == host) {
            warn!(node.id = %node.id, "node {} is taken out by force without asking clusterd about host {host}", node.label());
            return None;
        }
        Some(host.to_owned())
    }

    /// Asks clusterd whether the node's host may be drained, without changing anything. `forced` contains clusters that may lose their
    /// quorum. If it contains the host's own name, clusterd is not asked.
    ///
    /// # Errors
    ///
    /// Fails if the host may not be drained, or if clusterd does not answer.
    pub async fn check_leave(&self, node: &Node, forced: &[String]) -> Result<(), TakeOutRefused> {
        match self.look_at_host(node, forced).await {
            Ok(()) | Err(TakeOutRefused::Occupied { .. }) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Asks clusterd whether the node's host is drained, without changing anything.
    ///
    /// # Errors
    ///
    /// Fails if the host is not drained, or if clusterd does not answer.
    pub async fn check_drained(
        &self,
        node: &Node,
        forced: &[String],
    ) -> Result<(), TakeOutRefused> {
        self.look_at_host(node, forced).await
    }

    async fn look_at_host(&self, node: &Node, forced: &[String]) -> Result<(), TakeOutRefused> {
        let Some(clusters) = &self.context.settings.clusters else { return Ok(()) };
        let Some(host) = self.host_to_drain(node, forced) else { return Ok(()) };
        let seen = clusters.check(&host, forced).await;
        check_drain_state(node, host, seen)
    }
}

impl TurnContext {
    /// Starts the drain of the node's compute host for the end of its lease, and checks whether the node may be taken out now. If the drain
    /// is not in the node's record yet, starts nothing and returns the node to record: without the record nobody would end the drain when
    /// the lease goes on.
    pub(crate) async fn drain_and_check(
        &self,
        node: &Node,
    ) -> Result<Option<Node>, TakeOutRefused> {
        let Some(clusters) = &self.settings.clusters else { return Ok(None) };
        let Some(host) = compute_host(node) else { return Ok(None) };
        let noted = node.lending.as_ref().and_then(|lending| lending.drain.as_ref());
        let seen = if noted.is_some_and(|drain| drain.host == host) {
            let asking = clusters.drain(host, &[]);
            self.store.tripwire().around("clusterd: drain", asking).await
        } else {
            let seen = clusters.show(host).await;
            if let Some(owner) = DrainOwner::of(&seen) {
                return Ok(Some(drain_noted(node, host, owner)));
            }
            seen
        };
        check_drain_state(node, host.to_owned(), seen).map(|()| None)
    }
}

/// Checks whether the machine of `node` may be taken out, given clusterd's answer about `host`.
fn check_drain_state(node: &Node, host: String, seen: DrainSeen) -> Result<(), TakeOutRefused> {
    let node = node.label();
    match seen {
        DrainSeen::NoHost | DrainSeen::Drained => Ok(()),
        DrainSeen::NotDrained | DrainSeen::Ending => {
            Err(TakeOutRefused::Occupied { node, host, left: 0 })
        }
        DrainSeen::Draining(left) | DrainSeen::Stuck(left, _) => {
            Err(TakeOutRefused::Occupied { node, host, left })
        }
        DrainSeen::Refused(why) => Err(TakeOutRefused::Refused { node, host, why }),
        DrainSeen::Unknown(why) => Err(TakeOutRefused::Unknown { node, host, why }),
    }
}

impl Drain {
    fn seen(self) -> DrainSeen {
        let left = self.left.len() + self.foreign;
        match self.state.as_str() {
            "draining" => DrainSeen::Draining(left),
            "drained" => DrainSeen::Drained,
            "stuck" => DrainSeen::Stuck(left, self.problem),
            "ending" => DrainSeen::Ending,
            other => DrainSeen::Unknown(format!("unknown drain state {other:?}")),
        }
    }
}

impl ClusterdClient {
    /// Starts the drain of a host. The request may be repeated without harm.
    pub(crate) async fn drain(&self, host: &str, forced: &[String]) -> DrainSeen {
        let body = json!({"force": forced});
        let answer = self.ask(Method::PUT, &[host], &[], Some(&body)).await;
        seen(host, answer, |drain: Drain| drain.seen())
    }

    /// Returns the progress of a host's drain.
    pub(crate) async fn show(&self, host: &str) -> DrainSeen {
        seen(host, self.ask(Method::GET, &[host], &[], None).await, Drain::seen)
    }

    /// Returns whether a host may be drained, and the progress of its drain if it has one. Nothing changes.
    async fn check(&self, host: &str, forced: &[String]) -> DrainSeen {
        let force = [("force", forced.join(","))];
        let query = if forced.is_empty() { &[][..] } else { &force[..] };
        let answer = self.ask(Method::GET, &[host, "check"], query, None).await;
        seen(host, answer, |check: Check| check.drain.map_or(DrainSeen::NotDrained, Drain::seen))
    }

    /// Ends the drain of a host.
    pub(crate) async fn undrain(&self, host: &str) -> DrainSeen {
        seen(host, self.ask(Method::DELETE, &[host], &[], None).await, Drain::seen)
    }

    /// Sends a request to clusterd's drain API, and returns status and body.
    async fn ask(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        body: Option<&serde_json::Value>,
    ) -> Result<(StatusCode, Vec<u8>), String> {
        let (client, mut url) = self.client_and_base_url().await?;
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(["bedplate", "v1", "drains"]).extend(path);
            }
            Err(()) => return Err("its URL cannot be a base".to_owned()),
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = client.request(method, url).timeout(ANSWER_TIMEOUT);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let request = match &self.caller {
            ClusterdIdentity::Anonymous => request,
            ClusterdIdentity::Basic(user, password) => {
                request.basic_auth(user, Some(password.expose_secret()))
            }
            ClusterdIdentity::Keystone(session) => {
                let token = session.bearer().await.map_err(|error| error.to_string())?;
                let token = HeaderValue::from_str(token.expose_secret());
                let mut token = token.map_err(|_| "Keystone's token cannot be sent".to_owned())?;
                token.set_sensitive(true);
                request.header("X-Auth-Token", token)
            }
        };
        let unreachable = |error: reqwest::Error| format!("no answer ({})", error.without_url());
        let answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(unreachable)?;
        Ok((status, body.into()))
    }

    /// Returns an HTTP client, and clusterd's base URL without the version at the end of a catalogue's URL.
    async fn client_and_base_url(&self) -> Result<(Client, Url), String> {
        let url = match (&self.url, &self.caller) {
            (Some(url), _) => url.clone(),
            (None, ClusterdIdentity::Keystone(session)) => {
                let found = session.endpoint(Service::ContainerInfra).await;
                found.map_err(|error| error.to_string())?
            }
            (None, ClusterdIdentity::Anonymous | ClusterdIdentity::Basic(..)) => {
                return Err("no URL of clusterd is configured".to_owned());
            }
        };
        let client = match &self.caller {
            ClusterdIdentity::Keystone(session) => session.client().clone(),
            ClusterdIdentity::Anonymous | ClusterdIdentity::Basic(..) => {
                let client = Client::builder().no_proxy().build();
                client.map_err(|error| format!("no HTTP client ({error})"))?
            }
        };
        let text = url.as_str().trim_end_matches('/').trim_end_matches("/v1");
        let base = Url::parse(text).map_err(|_| "its URL is invalid".to_owned())?;
        Ok((client, base))
    }
}

/// Converts clusterd's answer into the state of a host's drain.
fn seen<T: DeserializeOwned>(
    host: &str,
    answer: Result<(StatusCode, Vec<u8>), String>,
    told: impl FnOnce(T) -> DrainSeen,
) -> DrainSeen {
    let (status, body) = match answer {
        Ok(answer) => answer,
        Err(why) => return DrainSeen::Unknown(why),
    };
    if status.is_success() {
        let read = serde_json::from_slice(&body);
        return read.map_or(DrainSeen::Unknown("cannot read its answer".to_owned()), told);
    }
    let said = error_detail(&body);
    match status {
        StatusCode::NOT_FOUND if said == format!("Host {host} could not be found.") => {
            DrainSeen::NoHost
        }
        StatusCode::NOT_FOUND if said == format!("Drain {host} could not be found.") => {
            DrainSeen::NotDrained
        }
        StatusCode::CONFLICT => DrainSeen::Refused(said),
        // Any other 404 says nothing about the host.
        _ => DrainSeen::Unknown(format!("answered {}: {said}", status.as_u16())),
    }
}

/// Returns the sentence in clusterd's error envelope.
fn error_detail(body: &[u8]) -> String {
    let envelope: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let sentence = envelope["errors"][0]["detail"].as_str();
    sentence.unwrap_or("no readable error").to_owned()
}
