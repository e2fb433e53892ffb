//! A client of the conductor's API for agents.

use std::time::Duration;

use agent_protocol::{Heartbeat, InspectionData, LookupAnswer};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::image::TrustAnchors;

/// The version that the agent reports: the ironic-python-agent release whose protocol this is. Conductors decide by the version which
/// commands they may send.
pub const AGENT_VERSION: &str = "13.0.0";
/// The newest version of the API that this agent was written for.
const NEWEST: (u32, u32) = (1, 68);
/// The version of a conductor that does not report one.
const DEFAULT_VERSION: (u32, u32) = (1, 31);
/// Newer versions change the form of the lookup.
const NEWEST_LOOKUP: (u32, u32) = (1, 62);
const VERSION_HEADER: &str = "X-OpenStack-Ironic-API-Version";
const TIMEOUT: Duration = Duration::from_secs(60);
/// The largest answer, in bytes: a lookup answer, which holds a node, is the longest that a conductor sends.
const LARGEST: usize = 4 << 20;

/// The reasons why a request to the conductor failed.
#[derive(Debug, thiserror::Error)]
pub enum ConductorError {
    /// A kernel parameter holds no usable URL.
    #[error("{parameter} {value:?} is not an http address")]
    Address { parameter: &'static str, value: String },
    /// The HTTP client could not be built.
    #[error("cannot set up a client for the conductor")]
    Client(#[source] reqwest::Error),
    /// The conductor did not answer.
    #[error("cannot reach the conductor: {what}")]
    Unreachable {
        /// The request, as method and path.
        what: &'static str,
        source: reqwest::Error,
    },
    /// The conductor answered with an error status.
    #[error("the conductor answered {status} to {what}: {body}")]
    Refused {
        /// The request, as method and path.
        what: &'static str,
        status: StatusCode,
        /// The beginning of the body.
        body: String,
    },
    /// The answer cannot be parsed.
    #[error("cannot read the conductor's answer to {what}")]
    Malformed {
        /// The request, as method and path.
        what: &'static str,
        source: serde_json::Error,
    },
}

/// A client of the part of the Bare Metal API that agents use.
pub struct Conductor {
    client: Client,
    base: Url,
    version: (u32, u32),
}

impl Conductor {
    /// Makes a client for the API at `base`, with or without `/v1`.
    pub fn new(base: &str, anchors: &TrustAnchors, insecure: bool) -> Result<Self, ConductorError> {
        let bare = base.trim_end_matches('/').trim_end_matches("/v1");
        let base = address("ipa-api-url", &format!("{bare}/"))?;
        let builder = Client::builder().no_proxy().timeout(TIMEOUT);
        let builder = builder.tls_certs_only(anchors.certificates());
        let builder = builder.tls_danger_accept_invalid_certs(insecure);
        let client = builder.build().map_err(ConductorError::Client)?;
        Ok(Conductor { client, base, version: DEFAULT_VERSION })
    }

    /// Returns host and port of the API, to find the agent's address on the way there.
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let host = self.base.host_str()?.trim_matches(['[', ']']).to_owned();
        Some((host, self.base.port_or_known_default()?))
    }

    /// Asks the conductor which version of the API it has.
    pub async fn negotiate(&mut self) -> Result<(), ConductorError> {
        let what = "GET /";
        let body: Value = read(what, send(what, self.client.get(self.base.clone())).await?).await?;
        let version = body.pointer("/default_version/version").and_then(Value::as_str);
        let reported = version.and_then(|text| {
            let (major, minor) = text.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        self.version = reported.unwrap_or(DEFAULT_VERSION).min(NEWEST);
        Ok(())
    }

    fn url(&self, path: &str) -> Url {
        // `base` ends with a slash, and `path` begins without one.
        self.base.join(path).unwrap_or_else(|_| self.base.clone())
    }

    fn versioned(&self, request: RequestBuilder, most: (u32, u32)) -> RequestBuilder {
        let (major, minor) = self.version.min(most);
        request.header(VERSION_HEADER, format!("{major}.{minor}"))
    }

    /// Finds the node of this machine by its MAC addresses.
    pub async fn lookup(
        &self,
        addresses: &[String],
        node: Option<&str>,
    ) -> Result<LookupAnswer, ConductorError> {
        let what = "GET /v1/lookup";
        let mut url = self.url("v1/lookup");
        url.query_pairs_mut().append_pair("addresses", &addresses.join(","));
        if let Some(node) = node {
            url.query_pairs_mut().append_pair("node_uuid", node);
        }
        let request = self.versioned(self.client.get(url), NEWEST_LOOKUP);
        read(what, send(what, request).await?).await
    }

    /// Sends a heartbeat.
    pub async fn heartbeat(&self, node: &str, heartbeat: &Heartbeat) -> Result<(), ConductorError> {
        let url = self.url(&format!("v1/heartbeat/{node}"));
        let request = self.versioned(self.client.post(url), NEWEST).json(heartbeat);
        send("POST /v1/heartbeat", request).await.map(drop)
    }

    /// Posts the inventory. The answer names the node; from version 1.84 on it has the form of a lookup answer.
    pub async fn inspected(
        &self,
        callback: &str,
        data: &InspectionData,
    ) -> Result<Value, ConductorError> {
        let what = "POST of the inventory";
        let url = address("ipa-inspection-callback-url", callback)?;
        let answer = send(what, self.client.post(url).json(data)).await?;
        read(what, answer).await
    }
}

impl ConductorError {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            ConductorError::Unreachable { .. } | ConductorError::Malformed { .. } => true,
            ConductorError::Refused { status, .. } => {
                *status == StatusCode::CONFLICT || status.is_server_error()
            }
            ConductorError::Address { .. } | ConductorError::Client(_) => false,
        }
    }
}

fn address(parameter: &'static str, value: &str) -> Result<Url, ConductorError> {
    let url = Url::parse(value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| ConductorError::Address { parameter, value: value.to_owned() })
}

async fn send(what: &'static str, request: RequestBuilder) -> Result<Response, ConductorError> {
    let response = request
        .send()
        .await
        .map_err(|source| ConductorError::Unreachable { what, source: source.without_url() })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = body(what, response).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).chars().take(300).collect();
    Err(ConductorError::Refused { what, status, body })
}

async fn read<T: DeserializeOwned>(
    what: &'static str,
    response: Response,
) -> Result<T, ConductorError> {
    let body = body(what, response).await?;
    serde_json::from_slice(&body).map_err(|source| ConductorError::Malformed { what, source })
}

async fn body(what: &'static str, mut response: Response) -> Result<Vec<u8>, ConductorError> {
    let mut body = Vec::new();
    let broken =
        |source: reqwest::Error| ConductorError::Unreachable { what, source: source.without_url() };
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        let room = LARGEST - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == LARGEST {
            break;
        }
    }
    Ok(body)
}
