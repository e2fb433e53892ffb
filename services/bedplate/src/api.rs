//! The services' REST API, as this command calls it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use reqwest::{Client, Method, RequestBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::Value;
use url::Url;

/// Where the API is, and who calls.
#[derive(Args, Clone)]
pub(crate) struct Connection {
    /// The Bare Metal API.
    #[arg(long, global = true, env = "BEDPLATE_URL", default_value = "http://127.0.0.1:6385")]
    pub(crate) url: Url,
    /// The Container Infra API.
    #[arg(
        long,
        global = true,
        env = "BEDPLATE_CLUSTERS_URL",
        default_value = "http://127.0.0.1:9511"
    )]
    pub(crate) clusters_url: Url,
    /// The user name, where the API asks for one.
    #[arg(long, global = true, env = "BEDPLATE_USER", requires = "password_file")]
    pub(crate) user: Option<String>,
    /// A file whose first line is the password.
    #[arg(long, global = true, env = "BEDPLATE_PASSWORD_FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// A file with the certificate of the authority that signed the API's.
    #[arg(long, global = true, env = "BEDPLATE_CACERT")]
    pub(crate) cacert: Option<PathBuf>,
}

/// A client of one service's API.
pub(crate) struct Api {
    client: Client,
    service: &'static str,
    base: Url,
    user: Option<(String, SecretString)>,
}

impl Api {
    /// A client of the Bare Metal API. Says nothing yet.
    pub(crate) fn of_machines(connection: &Connection) -> anyhow::Result<Self> {
        Api::connect("baremetald", &connection.url, connection)
    }

    /// A client of the Container Infra API. Says nothing yet.
    pub(crate) fn of_clusters(connection: &Connection) -> anyhow::Result<Self> {
        Api::connect("clusterd", &connection.clusters_url, connection)
    }

    fn connect(service: &'static str, base: &Url, connection: &Connection) -> anyhow::Result<Self> {
        let mut builder = Client::builder().timeout(Duration::from_secs(60)).no_proxy();
        if let Some(file) = &connection.cacert {
            let pem =
                std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            let authority = reqwest::Certificate::from_pem(&pem)
                .with_context(|| format!("{} holds no certificate", file.display()))?;
            builder = builder.tls_certs_merge([authority]);
        }
        let user = match (&connection.user, &connection.password_file) {
            (Some(user), Some(file)) => {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                let password = text.lines().next().unwrap_or_default();
                Some((user.clone(), SecretString::from(password)))
            }
            (Some(_) | None, _) => None,
        };
        let client = builder.build().context("cannot set up an HTTP client")?;
        Ok(Api { client, service, base: base.clone(), user })
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(self.request(Method::GET, path)?).await
    }

    /// `GET` of what is not JSON.
    pub(crate) async fn get_text(&self, path: &str) -> anyhow::Result<String> {
        let body = self.fetch(self.request(Method::GET, path)?).await?;
        String::from_utf8(body).context("the API's answer is not text")
    }

    /// `POST` with a JSON body.
    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        self.send(self.request(Method::POST, path)?.json(body)).await
    }

    /// `PUT` with a JSON body.
    pub(crate) async fn put(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        self.send(self.request(Method::PUT, path)?.json(body)).await
    }

    /// `DELETE`.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.send(self.request(Method::DELETE, path)?).await
    }

    /// Where a path of the API is.
    pub(crate) fn url(&self, path: &str) -> anyhow::Result<Url> {
        let base = self.base.as_str().trim_end_matches('/').trim_end_matches("/v1");
        Url::parse(&format!("{base}{path}")).with_context(|| format!("{path:?} makes no URL"))
    }

    fn request(&self, method: Method, path: &str) -> anyhow::Result<RequestBuilder> {
        let url = self.url(path)?;
        let request =
            self.client.request(method, url).header("X-OpenStack-Ironic-API-Version", "1.95");
        Ok(match &self.user {
            Some((user, password)) => request.basic_auth(user, Some(password.expose_secret())),
            None => request,
        })
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let body = self.fetch(request).await?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).context("the API's answer is not JSON")
    }

    /// The body of an answer that is no refusal.
    async fn fetch(&self, request: RequestBuilder) -> anyhow::Result<Vec<u8>> {
        let unreachable =
            || format!("cannot reach the API at {}: is {} running there?", self.base, self.service);
        let response = request.send().await.with_context(unreachable)?;
        let status = response.status();
        let body = response.bytes().await.with_context(unreachable)?;
        if !status.is_success() {
            bail!("{}", refusal(status.as_u16(), &body));
        }
        Ok(body.into())
    }
}

/// The sentence in the API's envelope: JSON in a JSON string from machines, a list of one from clusters.
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
    fn what_the_api_says_is_what_a_person_reads() {
        let body = br#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"name: is taken\", \"debuginfo\": null}"}"#;
        assert_eq!(refusal(409, body), "name: is taken");
        let body =
            br#"{"errors": [{"status": 400, "title": "", "detail": "coe: it is required"}]}"#;
        assert_eq!(refusal(400, body), "coe: it is required");
        assert_eq!(refusal(502, b"<html>"), "the API answered 502");
    }
}
