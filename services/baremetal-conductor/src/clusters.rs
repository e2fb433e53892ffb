//! clusterd, asked before a machine is taken out that carries others': whether its host may be drained, and is empty.

use std::time::Duration;

use baremetal_core::{Node, compute_host};
use openstack::{Service, Session};
use reqwest::header::HeaderValue;
use reqwest::{Client, Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use tracing::warn;
use url::Url;

use crate::Conductor;
use crate::handle::World;

/// The longest clusterd may take: it asks the cloud before it answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Where clusterd is, and who asks it.
#[derive(Clone, Debug)]
pub struct Clusters {
    /// Its base URL; what the catalogue says, where there is a cloud and nothing is said here.
    pub url: Option<Url>,
    /// Who asks.
    pub caller: ClustersCaller,
}

/// Who asks clusterd.
#[derive(Clone, Debug)]
pub enum ClustersCaller {
    /// Whoever reaches it.
    Anyone,
    /// Somebody with a password of its own.
    Named(String, SecretString),
    /// Somebody whom Keystone knows.
    Known(Session),
}

/// Why a node stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum StaysError {
    /// A cluster would lose its quorum.
    #[error("node {node} is compute host {host}: {why}")]
    Refused {
        /// The node.
        node: String,
        /// As which host it is in the cloud.
        host: String,
        /// In clusterd's words.
        why: String,
    },
    /// It is being emptied.
    #[error(
        "node {node} is compute host {host}, which is being emptied{}; ask again when it is drained (`bedplate drain {host} --wait`), or \
         name {host} in force",
        so_far(state, *left)
    )]
    Occupied {
        /// The node.
        node: String,
        /// As which host it is in the cloud.
        host: String,
        /// How far its drain is.
        state: String,
        /// How many servers are still there.
        left: usize,
    },
    /// Nobody says what is on it.
    #[error(
        "node {node} is compute host {host}, and clusterd does not say whether it may be taken out: {why}; to do so all the same, name \
         {host} in force"
    )]
    Unknown {
        /// The node.
        node: String,
        /// As which host it is in the cloud.
        host: String,
        /// Why not.
        why: String,
    },
}

/// How far a drain is. What just began has not counted yet.
fn so_far(state: &str, left: usize) -> String {
    match left {
        0 => String::new(),
        1 => format!(": it is {state}, with 1 server on it"),
        many => format!(": it is {state}, with {many} servers on it"),
    }
}

/// What clusterd says of a drain.
#[derive(Deserialize)]
struct Drain {
    state: String,
    left: Vec<serde_json::Value>,
    foreign: usize,
}

impl Conductor {
    /// Has the host that a node is be emptied, and says whether the node may be taken out now. `forced` names clusters that may lose their
    /// quorum by it, or the host itself, of which then nobody is asked.
    ///
    /// # Errors
    ///
    /// When it may not, or nobody says. Without a clusterd, and for a node that is no host of the cloud, it always may.
    pub async fn take_out(&self, node: &Node, forced: &[String]) -> Result<(), StaysError> {
        self.world.take_out(node, forced).await
    }

    /// Has the host that a node is take servers again, once nobody works on the node any more. Where nobody answers it stays as it is, which
    /// loses nothing.
    pub async fn bring_back(&self, node: &Node) {
        let Some(clusters) = &self.world.settings.clusters else { return };
        let Some(host) = compute_host(node) else { return };
        let asking = clusters.undrain(host);
        if let Err(why) =
            self.world.store.tripwire().around("clusterd: end of a drain", asking).await
        {
            warn!(node.id = %node.id, "host {host} takes no servers until its drain is ended: {why}");
        }
    }
}

impl World {
    /// As [`Conductor::take_out`].
    pub(crate) async fn take_out(&self, node: &Node, forced: &[String]) -> Result<(), StaysError> {
        let Some(clusters) = &self.settings.clusters else { return Ok(()) };
        let Some(host) = compute_host(node) else { return Ok(()) };
        if forced.iter().any(|name| name == host) {
            warn!(node.id = %node.id, "node {} is taken out without asking what is on host {host}", node.label());
            return Ok(());
        }
        let forced: Vec<&String> = forced.iter().collect();
        let (node, host) = (node.label(), host.to_owned());
        let asking = clusters.drain(&host, &forced);
        match self.store.tripwire().around("clusterd: drain", asking).await {
            Ok(Answer::Empty) => Ok(()),
            Ok(Answer::Occupied { state, left }) => {
                Err(StaysError::Occupied { node, host, state, left })
            }
            Ok(Answer::Refused(why)) => Err(StaysError::Refused { node, host, why }),
            Err(why) => Err(StaysError::Unknown { node, host, why }),
        }
    }
}

enum Answer {
    /// Nothing is on it that runs, or the cloud has no such host.
    Empty,
    Occupied {
        state: String,
        left: usize,
    },
    Refused(String),
}

impl Clusters {
    async fn drain(&self, host: &str, forced: &[&String]) -> Result<Answer, String> {
        let (status, body) = self.ask(Method::PUT, host, Some(&json!({"force": forced}))).await?;
        if status.is_success() {
            let drain: Drain = serde_json::from_slice(&body)
                .map_err(|_| "its answer cannot be read".to_owned())?;
            return Ok(match drain.state.as_str() {
                "drained" => Answer::Empty,
                _ => {
                    Answer::Occupied { left: drain.left.len() + drain.foreign, state: drain.state }
                }
            });
        }
        let said = said(&body);
        match status {
            // The cloud has no such host. Of another 404 nobody knows what it means.
            StatusCode::NOT_FOUND if said == format!("Host {host} could not be found.") => {
                Ok(Answer::Empty)
            }
            StatusCode::CONFLICT => Ok(Answer::Refused(said)),
            _ => Err(format!("it answers {}: {said}", status.as_u16())),
        }
    }

    async fn undrain(&self, host: &str) -> Result<(), String> {
        match self.ask(Method::DELETE, host, None).await? {
            // There may be no drain, or no such host.
            (status, _) if status.is_success() || status == StatusCode::NOT_FOUND => Ok(()),
            (status, body) => Err(format!("it answers {}: {}", status.as_u16(), said(&body))),
        }
    }

    /// Asks something of this host's drain.
    async fn ask(
        &self,
        method: Method,
        host: &str,
        body: Option<&serde_json::Value>,
    ) -> Result<(StatusCode, Vec<u8>), String> {
        let (client, mut url) = self.reach().await?;
        match url.path_segments_mut() {
            Ok(mut path) => {
                path.pop_if_empty().extend(["bedplate", "v1", "drains", host]);
            }
            Err(()) => return Err("its address is no base of URLs".to_owned()),
        }
        let request = client.request(method, url).timeout(ANSWER_TIMEOUT);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let request = match &self.caller {
            ClustersCaller::Anyone => request,
            ClustersCaller::Named(user, password) => {
                request.basic_auth(user, Some(password.expose_secret()))
            }
            ClustersCaller::Known(session) => {
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

    /// A client, and clusterd's base URL without the version that catalogues end it with.
    async fn reach(&self) -> Result<(Client, Url), String> {
        let url = match (&self.url, &self.caller) {
            (Some(url), _) => url.clone(),
            (None, ClustersCaller::Known(session)) => {
                let found = session.endpoint(Service::ContainerInfra).await;
                found.map_err(|error| error.to_string())?
            }
            (None, ClustersCaller::Anyone | ClustersCaller::Named(..)) => {
                return Err("nobody says where it is".to_owned());
            }
        };
        let client = match &self.caller {
            ClustersCaller::Known(session) => session.client().clone(),
            ClustersCaller::Anyone | ClustersCaller::Named(..) => {
                let client = Client::builder().no_proxy().build();
                client.map_err(|error| format!("no HTTP client ({error})"))?
            }
        };
        let text = url.as_str().trim_end_matches('/').trim_end_matches("/v1");
        let base = Url::parse(text).map_err(|_| "its address is no URL".to_owned())?;
        Ok((client, base))
    }
}

/// The sentence in clusterd's envelope.
fn said(body: &[u8]) -> String {
    let envelope: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let sentence = envelope["errors"][0]["detail"].as_str();
    sentence.unwrap_or("nothing that can be read").to_owned()
}
