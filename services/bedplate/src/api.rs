//! The client of the services' REST APIs.

use std::path::Path;

use anyhow::Context;
use api_client::{Client, ClientError, Credentials, Listed, Pages, Refusal};
use openstack::CloudError;
use reqwest::{Response, StatusCode};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use url::Url;
use websocket::Socket;

use crate::connection::Connection;
use crate::exit::{Exit, Failure};
use crate::output::plain;

pub(crate) use api_client::Service;

/// A client of one service's API, whose errors tell what to do.
pub(crate) struct Api {
    client: Client,
}

/// The default URL: the service's default port on this computer.
pub(crate) fn nearby(service: Service) -> anyhow::Result<Url> {
    let url = match service {
        Service::Baremetald => "http://127.0.0.1:6385",
        Service::Clusterd => "http://127.0.0.1:9511",
    };
    url.parse().context("the address of the API is not a valid URL")
}

/// The option that sets the service's URL.
pub(crate) fn url_option(service: Service) -> &'static str {
    match service {
        Service::Baremetald => "--url",
        Service::Clusterd => "--clusters-url",
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

    /// Makes a client of a service on this computer that needs no authentication.
    pub(crate) fn nearby(service: Service) -> anyhow::Result<Self> {
        Api::at(service, nearby(service)?, Credentials::Anonymous, None)
    }

    async fn connect(
        service: Service,
        said: Option<Url>,
        connection: &Connection,
    ) -> anyhow::Result<Self> {
        match connection.caller()? {
            Credentials::Keystone(session) => {
                let client = Client::by_keystone(session, service, said).await;
                Ok(Api::of_client(client.map_err(|why| not_found(service, why))?))
            }
            caller @ (Credentials::Anonymous
            | Credentials::Password(..)
            | Credentials::Token(_)) => {
                let base = said.map_or_else(|| nearby(service), Ok)?;
                Api::at(service, base, caller, connection.authorities())
            }
        }
    }

    fn at(
        service: Service,
        base: Url,
        caller: Credentials,
        authorities: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let http = api_client::http_client(authorities)?.build();
        let http = http.context("cannot set up an HTTP client")?;
        Ok(Api::of_client(Client::new(http, service, base, caller)))
    }

    /// The JSON output is the unchanged answer. For clusterd it is the answer of the lowest microversion, on which scripts rely.
    fn of_client(client: Client) -> Self {
        let client = match client.service() {
            Service::Baremetald => client,
            Service::Clusterd => client.with_microversion(None),
        };
        Api { client }
    }

    #[must_use]
    pub(crate) fn with_microversion(self, version: &'static str) -> Self {
        Api { client: self.client.with_microversion(Some(version)) }
    }

    pub(crate) fn base(&self) -> &Url {
        self.client.base()
    }

    pub(crate) fn url(&self, path: &str) -> anyhow::Result<Url> {
        self.client.url(path).map_err(Into::into)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.client.get(path).await.map_err(|why| self.explain(why))
    }

    /// Sends a `GET`. Returns `None` if the resource does not exist.
    pub(crate) async fn find<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Option<T>> {
        self.client.find(path).await.map_err(|why| self.explain(why))
    }

    /// Sends a `GET` and returns the response as text.
    pub(crate) async fn get_text(&self, path: &str) -> anyhow::Result<String> {
        self.client.text(path).await.map_err(|why| self.explain(why))
    }

    /// Reads the next page of a list; `None` after the last page.
    pub(crate) async fn read_page<T: Listed>(
        &self,
        pages: &mut Pages<'_, T>,
    ) -> anyhow::Result<Option<Vec<T>>> {
        pages.read().await.map_err(|why| self.explain(why))
    }

    /// The pages of the list at `path`. Sends no request.
    pub(crate) fn pages<T: Listed>(&self, path: &str) -> Pages<'_, T> {
        Pages::of(&self.client, path)
    }

    /// Reads all pages of the list at `path`.
    pub(crate) async fn all<T: Listed>(&self, path: &str) -> anyhow::Result<Vec<T>> {
        self.pages(path).all().await.map_err(|why| self.explain(why))
    }

    /// Sends a `POST` with a JSON body.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.client.post(path, body).await.map_err(|why| self.explain(why))
    }

    /// Sends a `PUT` with a JSON body.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.client.put(path, body).await.map_err(|why| self.explain(why))
    }

    /// Sends a `PATCH` with a JSON body.
    pub(crate) async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        self.client.patch(path, body).await.map_err(|why| self.explain(why))
    }

    /// Sends a `DELETE` without a body, and ignores the response.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        self.delete_returning::<IgnoredAny>(path).await.map(drop)
    }

    /// Sends a `DELETE` without a body.
    pub(crate) async fn delete_returning<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> anyhow::Result<T> {
        self.client.delete(path).await.map_err(|why| self.explain(why))
    }

    pub(crate) async fn socket(&self, path: &str) -> anyhow::Result<Socket> {
        self.client.socket(path).await.map_err(|why| self.explain(why))
    }

    /// Opens an event stream that starts after the event `last`.
    pub(crate) async fn follow(&self, path: &str, last: Option<&str>) -> anyhow::Result<Response> {
        self.client.follow(path, last).await.map_err(|why| self.explain(why))
    }

    /// Adds to an error what to do.
    fn explain(&self, why: ClientError) -> anyhow::Error {
        match why {
            ClientError::Refused(refusal) => refused(&refusal, self.client.credentials()).into(),
            ClientError::Unreachable { base, source } => {
                let service = self.client.service();
                let (program, option) = (service.program(), url_option(service));
                let sentence = format!(
                    "cannot reach the API at {base}. Hint: see whether {program} runs there, or say by {option} where it is"
                );
                Failure::unreachable(sentence, source).into()
            }
            other @ (ClientError::InvalidPath { .. }
            | ClientError::NoToken { .. }
            | ClientError::InvalidToken
            | ClientError::TooLarge
            | ClientError::NotJson { .. }
            | ClientError::NotText { .. }
            | ClientError::Unreadable { .. }
            | ClientError::InvalidPage
            | ClientError::NoSocket(_)) => other.into(),
        }
    }
}

/// The failure for a refusal, with a hint what to do.
fn refused(refusal: &Refusal, caller: &Credentials) -> Failure {
    let status = refusal.status;
    let mut sentence = plain(&refusal.sentence());
    let remedy = match status {
        StatusCode::UNAUTHORIZED => {
            Some(remedy(caller, refusal.challenge.as_deref().unwrap_or_default()))
        }
        StatusCode::FORBIDDEN => Some(POLICY.to_owned()),
        StatusCode::NOT_FOUND => list_of(&refusal.path, &sentence)
            .map(|list| format!("list the existing ones with {list}")),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            Some("try again later".to_owned())
        }
        _ => None,
    };
    if let Some(remedy) = remedy.filter(|_| !sentence.contains("Hint: ")) {
        sentence = format!("{}. Hint: {remedy}", sentence.trim_end_matches('.'));
    }
    Failure::new(Exit::of_status(status), sentence)
}

/// The hint for a 403.
const POLICY: &str =
    "ask an administrator for the required role; `bedplate policy` lists the required roles";

/// The command that lists resources of the kind that is missing: the one that the sentence names first, or else the one at `path`.
fn list_of(path: &str, sentence: &str) -> Option<&'static str> {
    match sentence.split(' ').next() {
        Some("Backup") => return Some("`bedplate cluster backup list CLUSTER`"),
        Some("ClusterTemplate") => return Some("`openstack coe cluster template list`"),
        _ => {}
    }
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
    let (program, option) = (service.program(), url_option(service));
    why.context(format!(
        "the cloud's catalogue has no endpoint of {program}. Hint: set its URL with {option}, or register it with `bedplate setup keystone`"
    ))
}

/// The hint for a 401, which depends on the credentials that were sent and on the API's challenge: `Basic …` or `Keystone uri="…"`.
fn remedy(caller: &Credentials, challenge: &str) -> String {
    let keystone =
        challenge.strip_prefix("Keystone uri=\"").and_then(|rest| rest.strip_suffix('"'));
    let (cloud, password) = (
        "select a cloud of clouds.yaml with --os-cloud or OS_CLOUD, or set OS_AUTH_URL and the other OS_* variables",
        "set --user and --password-file (BEDPLATE_USER, BEDPLATE_PASSWORD_FILE)",
    );
    match (caller, keystone.map(plain)) {
        (Credentials::Anonymous | Credentials::Token(_), Some(url)) => {
            format!("the service requires a token of the Keystone at {url}: {cloud}")
        }
        (Credentials::Anonymous, None) => format!("the service requires a password: {password}"),
        (Credentials::Password(user, _), None) => {
            format!("check that the service's password file has {user:?} with this password")
        }
        (Credentials::Password(..), Some(url)) => {
            format!(
                "the service accepts only tokens of the Keystone at {url}: omit --user, {cloud}"
            )
        }
        (Credentials::Keystone(session), Some(url)) => format!(
            "check that the service's Keystone {url} is the Keystone that issued the token, {}",
            session.config().auth_url
        ),
        (Credentials::Keystone(_) | Credentials::Token(_), None) => {
            format!("the service accepts only its own passwords, no tokens: {password}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_resource_is_answered_with_the_command_that_lists_its_kind() {
        let list = |path| list_of(path, "no such thing");
        assert_eq!(list("/bedplate/v1/nodes/n1/explain"), Some("`bedplate node list`"));
        assert_eq!(list("/v1/clusters/c1"), Some("`bedplate cluster list`"));
        assert_eq!(list("/v1/nodes"), None);
        assert_eq!(list("/nowhere"), None);
        let backups = Some("`bedplate cluster backup list CLUSTER`");
        assert_eq!(
            list_of("/bedplate/v1/clusters/c1/backups/b1", "Backup b1 is not there"),
            backups
        );
        let templates = Some("`openstack coe cluster template list`");
        let said = "ClusterTemplate t1 could not be found.";
        assert_eq!(list_of("/bedplate/v1/clusters/c1/upgrade/plan", said), templates);
    }
}
