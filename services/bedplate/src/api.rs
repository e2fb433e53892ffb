//! The client of the services' REST APIs.

use std::time::Duration;

use anyhow::Context;
use openstack::CloudError;
use reqwest::header::{ACCEPT, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::Value;
use url::Url;
use websocket::Socket;

use crate::connection::{Caller, Connection};
use crate::exit::{Exit, Failure};
use crate::output::plain;

/// The timeout of a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum duration of an event stream. The caller opens a new stream afterwards.
const STREAM_TIMEOUT: Duration = Duration::from_hours(1);

/// The service that an `Api` calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// The Bare Metal API of `baremetald`.
    Baremetald,
    /// The Container Infra API of `clusterd`.
    Clusterd,
}

/// A client of one service's API.
pub(crate) struct Api {
    client: Client,
    service: Service,
    base: Url,
    caller: Caller,
}

impl Service {
    /// Returns the name of the service's program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Service::Baremetald => "baremetald",
            Service::Clusterd => "clusterd",
        }
    }

    fn in_catalogues(self) -> openstack::Service {
        match self {
            Service::Baremetald => openstack::Service::BareMetal,
            Service::Clusterd => openstack::Service::ContainerInfra,
        }
    }

    /// The default URL: the service's default port on this computer.
    pub(crate) fn nearby(self) -> anyhow::Result<Url> {
        let url = match self {
            Service::Baremetald => "http://127.0.0.1:6385",
            Service::Clusterd => "http://127.0.0.1:9511",
        };
        url.parse().context("the address of the API is not a valid URL")
    }

    /// The option that sets the service's URL.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Service::Baremetald => "--url",
            Service::Clusterd => "--clusters-url",
        }
    }
}

impl Api {
    /// Makes a client of the Bare Metal API. Sends no request except to Keystone.
    pub(crate) async fn of_machines(connection: &Connection) -> anyhow::Result<Self> {
        Api::connect(Service::Baremetald, connection.url.clone(), connection).await
    }

    /// Makes a client of the Container Infra API. Sends no request except to Keystone.
    pub(crate) async fn of_clusters(connection: &Connection) -> anyhow::Result<Self> {
        Api::connect(Service::Clusterd, connection.clusters_url.clone(), connection).await
    }

    /// Makes a client of `service`. Sends no request except to Keystone.
    pub(crate) async fn of(service: Service, connection: &Connection) -> anyhow::Result<Self> {
        match service {
            Service::Baremetald => Api::of_machines(connection).await,
            Service::Clusterd => Api::of_clusters(connection).await,
        }
    }

    /// Returns the URL of the service.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// Makes a client of a service on this computer that needs no authentication.
    pub(crate) fn nearby(service: Service) -> anyhow::Result<Self> {
        let client = Client::builder().no_proxy().build();
        let client = client.context("cannot set up an HTTP client")?;
        Ok(Api { client, service, base: service.nearby()?, caller: Caller::Anonymous })
    }

    async fn connect(
        service: Service,
        said: Option<Url>,
        connection: &Connection,
    ) -> anyhow::Result<Self> {
        let caller = connection.caller()?;
        let (client, base) = match (&caller, said) {
            (Caller::Keystone(session), Some(said)) => (session.client().clone(), said),
            (Caller::Keystone(session), None) => {
                let found = session.endpoint(service.in_catalogues()).await;
                (session.client().clone(), found.map_err(|why| not_found(service, why))?)
            }
            (Caller::Anonymous | Caller::Password(..), said) => {
                (connection.client()?, said.map_or_else(|| service.nearby(), Ok)?)
            }
        };
        Ok(Api { client, service, base, caller })
    }

    /// Sends a `GET` and parses the response as JSON.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(self.request(Method::GET, path).await?).await
    }

    /// Sends a `GET`. Returns `None` if the resource does not exist.
    pub(crate) async fn find(&self, path: &str) -> anyhow::Result<Option<Value>> {
        let request = self.request(Method::GET, path).await?;
        let response = request.send().await.map_err(|why| self.unreachable(why))?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let body = self.read(response).await?;
        serde_json::from_slice(&body).map(Some).context("the response of the API is not JSON")
    }

    /// Sends a `GET` and returns the response as text.
    pub(crate) async fn get_text(&self, path: &str) -> anyhow::Result<String> {
        let body = self.fetch(self.request(Method::GET, path).await?).await?;
        String::from_utf8(body).context("the response of the API is not text")
    }

    /// Sends a `POST` with a JSON body.
    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        self.send(self.request(Method::POST, path).await?.json(body)).await
    }

    /// Sends a `PUT` with a JSON body.
    pub(crate) async fn put(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        self.send(self.request(Method::PUT, path).await?.json(body)).await
    }

    /// Sends a `PATCH` with a JSON body.
    pub(crate) async fn patch(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        self.send(self.request(Method::PATCH, path).await?.json(body)).await
    }

    /// Sends a `DELETE` request without a body.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.send(self.request(Method::DELETE, path).await?).await
    }

    /// Returns the URL of a path of the API.
    pub(crate) fn url(&self, path: &str) -> anyhow::Result<Url> {
        let base = self.base.as_str().trim_end_matches('/').trim_end_matches("/v1");
        Url::parse(&format!("{base}{path}"))
            .with_context(|| format!("{path:?} is not a valid path of a URL"))
    }

    async fn request(&self, method: Method, path: &str) -> anyhow::Result<RequestBuilder> {
        let request = self.client.request(method, self.url(path)?).timeout(ANSWER_TIMEOUT);
        let request = request.header("X-OpenStack-Ironic-API-Version", "1.95");
        Ok(match &self.caller {
            Caller::Anonymous => request,
            Caller::Password(user, password) => {
                request.basic_auth(user, Some(password.expose_secret()))
            }
            Caller::Keystone(session) => {
                let token = session.bearer().await.context("cannot get a token from Keystone")?;
                let token = HeaderValue::from_str(token.expose_secret());
                let mut token = token.context("Keystone's token is not a valid HTTP header")?;
                token.set_sensitive(true);
                request.header("X-Auth-Token", token)
            }
        })
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let body = self.fetch(request).await?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).context("the response of the API is not JSON")
    }

    /// Sends a request and returns the body, or the service's refusal as an error.
    async fn fetch(&self, request: RequestBuilder) -> anyhow::Result<Vec<u8>> {
        let response = request.send().await.map_err(|why| self.unreachable(why))?;
        self.read(response).await
    }

    fn unreachable(&self, why: reqwest::Error) -> Failure {
        let (program, option) = (self.service.program(), self.service.option());
        let sentence = format!(
            "cannot reach the API at {}. Hint: see whether {program} runs there, or say by {option} where it is",
            self.base
        );
        Failure::unreachable(sentence, why)
    }

    async fn read(&self, response: Response) -> anyhow::Result<Vec<u8>> {
        let response = self.accepted(response).await?;
        let body = response.bytes().await.map_err(|why| self.unreachable(why))?;
        Ok(body.into())
    }

    /// Returns the response, or an error with a hint what to do if the service refused.
    async fn accepted(&self, response: Response) -> anyhow::Result<Response> {
        let (status, path) = (response.status(), response.url().path().to_owned());
        if status.is_success() {
            return Ok(response);
        }
        let challenge = response.headers().get(WWW_AUTHENTICATE).cloned();
        let body = response.bytes().await.map_err(|why| self.unreachable(why))?;
        let challenge = challenge.as_ref().and_then(|value| value.to_str().ok());
        let remedy = match status {
            StatusCode::UNAUTHORIZED => Some(remedy(&self.caller, challenge.unwrap_or_default())),
            StatusCode::FORBIDDEN => Some(POLICY.to_owned()),
            StatusCode::NOT_FOUND => {
                list_of(&path).map(|list| format!("list the existing ones with {list}"))
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                Some("try again later".to_owned())
            }
            _ => None,
        };
        let mut sentence = plain(&refusal(status.as_u16(), &body));
        if let Some(remedy) = remedy.filter(|_| !sentence.contains("Hint: ")) {
            sentence = format!("{}. Hint: {remedy}", sentence.trim_end_matches('.'));
        }
        Err(Failure::new(Exit::of_status(status), sentence).into())
    }

    /// Opens a WebSocket.
    pub(crate) async fn socket(&self, path: &str) -> anyhow::Result<Socket> {
        let (request, asked) = websocket::upgrade_request(self.request(Method::GET, path).await?);
        let mut answer = request.send().await.map_err(|why| self.unreachable(why))?;
        if !websocket::is_open(&answer) {
            answer = self.accepted(answer).await?;
        }
        asked.open(answer).await.map_err(Into::into)
    }

    /// Opens an event stream that starts after the event `last`.
    pub(crate) async fn follow(&self, path: &str, last: Option<&str>) -> anyhow::Result<Response> {
        let mut request = self.request(Method::GET, path).await?.timeout(STREAM_TIMEOUT);
        request = request.header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.map_err(|why| self.unreachable(why))?;
        self.accepted(response).await
    }
}

/// The hint for a 403.
const POLICY: &str =
    "ask an administrator for the required role; `bedplate policy` lists the required roles";

/// The command that lists resources of the same kind as the one at `path`.
fn list_of(path: &str) -> Option<&'static str> {
    let (_, rest) = path.split_once("/v1/")?;
    let (kind, _) = rest.split_once('/')?;
    match kind {
        "nodes" => Some("`bedplate node list`"),
        "racks" => Some("`bedplate rack list`"),
        "reservations" => Some("`bedplate reservation list`"),
        "clusters" => Some("`bedplate cluster list`"),
        "machines" => Some("`bedplate vm list`"),
        "snapshots" => Some("`bedplate vm snapshots`"),
        "keys" => Some("`bedplate keys list`"),
        _ => None,
    }
}

fn not_found(service: Service, why: CloudError) -> anyhow::Error {
    let is_missing = matches!(why, CloudError::NoEndpoint { .. });
    let why = anyhow::Error::new(why);
    if !is_missing {
        return why.context("cannot get a token from Keystone");
    }
    let (program, option) = (service.program(), service.option());
    why.context(format!(
        "the cloud's catalogue has no endpoint of {program}. Hint: set its URL with {option}, or register it with `bedplate setup keystone`"
    ))
}

/// The hint for a 401, which depends on the credentials that were sent and on the API's challenge: `Basic …` or `Keystone uri="…"`.
fn remedy(caller: &Caller, challenge: &str) -> String {
    let keystone =
        challenge.strip_prefix("Keystone uri=\"").and_then(|rest| rest.strip_suffix('"'));
    let (cloud, password) = (
        "select a cloud of clouds.yaml with --os-cloud or OS_CLOUD, or set OS_AUTH_URL and the other OS_* variables",
        "set --user and --password-file (BEDPLATE_USER, BEDPLATE_PASSWORD_FILE)",
    );
    match (caller, keystone.map(plain)) {
        (Caller::Anonymous, Some(url)) => {
            format!("the service requires a token of the Keystone at {url}: {cloud}")
        }
        (Caller::Anonymous, None) => format!("the service requires a password: {password}"),
        (Caller::Password(user, _), None) => {
            format!("check that the service's password file has {user:?} with this password")
        }
        (Caller::Password(..), Some(url)) => {
            format!(
                "the service accepts only tokens of the Keystone at {url}: omit --user, {cloud}"
            )
        }
        (Caller::Keystone(session), Some(url)) => format!(
            "check that the service's Keystone {url} is the Keystone that issued the token, {}",
            session.config().auth_url
        ),
        (Caller::Keystone(_), None) => {
            format!("the service accepts only its own passwords, no tokens: {password}")
        }
    }
}

/// Takes the message out of a refusal: baremetald sends JSON inside a JSON string, clusterd a list with one error.
fn refusal(status: u16, body: &[u8]) -> String {
    let outer: Value = serde_json::from_slice(body).unwrap_or_default();
    let inner: Value = outer["error_message"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let sentence = inner["faultstring"].as_str().or(inner["description"].as_str());
    let sentence = sentence.or(outer["errors"][0]["detail"].as_str());
    match sentence {
        Some(sentence) => sentence.to_owned(),
        None => format!("the API answered {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_refusal_is_shown() {
        let body = br#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"name: is taken\", \"debuginfo\": null}"}"#;
        assert_eq!(refusal(409, body), "name: is taken");
        let body = br#"{"errors": [{"status": 400, "title": "", "detail": "coe: required"}]}"#;
        assert_eq!(refusal(400, body), "coe: required");
        assert_eq!(refusal(502, b"<html>"), "the API answered 502");
    }

    #[test]
    fn a_missing_resource_is_answered_with_the_command_that_lists_its_kind() {
        assert_eq!(list_of("/bedplate/v1/nodes/n1/explain"), Some("`bedplate node list`"));
        assert_eq!(list_of("/v1/clusters/c1"), Some("`bedplate cluster list`"));
        assert_eq!(list_of("/v1/nodes"), None);
        assert_eq!(list_of("/nowhere"), None);
    }
}
