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

/// A client of the API.
pub(crate) struct Api {
    client: Client,
    base: Url,
    user: Option<(String, SecretString)>,
}

impl Api {
    /// A client. Says nothing yet.
    pub(crate) fn connect(connection: &Connection) -> anyhow::Result<Self> {
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
        Ok(Api { client, base: connection.url.clone(), user })
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(self.request(Method::GET, path)?).await
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

    fn request(&self, method: Method, path: &str) -> anyhow::Result<RequestBuilder> {
        let base = self.base.as_str().trim_end_matches('/').trim_end_matches("/v1");
        let url = Url::parse(&format!("{base}{path}"))
            .with_context(|| format!("{path:?} makes no URL"))?;
        let request =
            self.client.request(method, url).header("X-OpenStack-Ironic-API-Version", "1.95");
        Ok(match &self.user {
            Some((user, password)) => request.basic_auth(user, Some(password.expose_secret())),
            None => request,
        })
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let unreachable =
            || format!("cannot reach the API at {}: is baremetald running there?", self.base);
        let response = request.send().await.with_context(unreachable)?;
        let status = response.status();
        let body = response.bytes().await.with_context(unreachable)?;
        if !status.is_success() {
            bail!("{}", refusal(status.as_u16(), &body));
        }
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).context("the API's answer is not JSON")
    }
}

/// The sentence in the API's envelope: JSON in a JSON string.
fn refusal(status: u16, body: &[u8]) -> String {
    let outer: Value = serde_json::from_slice(body).unwrap_or_default();
    let inner: Value = outer["error_message"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let sentence = inner["faultstring"].as_str().or(inner["description"].as_str());
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
        assert_eq!(refusal(502, b"<html>"), "the API answered 502");
    }
}
