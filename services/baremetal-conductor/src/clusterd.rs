//! The client of clusterd's drains of compute hosts.

use std::time::Duration;

use baremetal_core::DrainSeen;
use openstack::{Service, Session};
use reqwest::header::HeaderValue;
use reqwest::{Client, Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use url::Url;

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
    pub(crate) async fn check(&self, host: &str, forced: &[String]) -> DrainSeen {
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
