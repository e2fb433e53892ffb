//! The services' REST APIs, as whoever is logged in.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, RequestBuilder, Response};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;
use websocket::Socket;

use crate::problem::Problem;
use crate::session::{Credential, Session};

/// The longest an answer may take: a person waits for it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer that is read.
const LARGEST_ANSWER: usize = 32 << 20;
/// How many things are asked for at once.
const PAGE: usize = 1000;

/// One of the services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `baremetald`.
    Machines,
    /// `clusterd`.
    Clusters,
}

/// One service, as somebody.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) client: Client,
    pub(crate) program: Program,
    pub(crate) base: Url,
    pub(crate) session: Option<Arc<Session>>,
}

impl Program {
    /// As an administrator knows it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Program::Machines => "baremetald",
            Program::Clusters => "clusterd",
        }
    }
}

/// What a segment of a path is written without: all but the unreserved characters (RFC 3986 §2.3).
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as it stands in an address.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &RESERVED).to_string()
}

/// `text` as one segment of a path.
///
/// # Errors
///
/// When it would be no segment but a way to elsewhere.
pub(crate) fn segment(text: &str) -> Result<String, Problem> {
    if matches!(text, "" | "." | "..") || text.len() > 256 {
        return Err(Problem::nothing_here());
    }
    Ok(encoded(text))
}

impl Api {
    /// `GET`, as JSON.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Problem> {
        self.get_as(path).await
    }

    /// `GET`, as what it is.
    pub(crate) async fn get_as<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        let body = self.fetch(self.request(Method::GET, path)?).await?;
        serde_json::from_slice(&body).map_err(|why| self.unreadable(&why))
    }

    /// `GET` of what may be gone or may not be seen.
    pub(crate) async fn find(&self, path: &str) -> Result<Option<Value>, Problem> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(Problem::Refused { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// `GET` of what is not JSON.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Problem> {
        let body = self.fetch(self.request(Method::GET, path)?).await?;
        String::from_utf8(body).map_err(|why| self.unreadable(&why))
    }

    /// Anything else, with a JSON body or none.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Problem> {
        let request = self.request(method, path)?;
        let request = match body {
            None => request,
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body.to_string()),
        };
        let answer = self.fetch(request).await?;
        if answer.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer).map_err(|why| self.unreadable(&why))
    }

    /// All things of a list that has pages, `at_most` so many; each page follows the one before by its last `uuid`.
    pub(crate) async fn all(
        &self,
        list: &str,
        path: &str,
        at_most: usize,
    ) -> Result<Vec<Value>, Problem> {
        let mut all: Vec<Value> = Vec::new();
        let join = if path.contains('?') { '&' } else { '?' };
        let mut marker = String::new();
        loop {
            let mut page = self.get(&format!("{path}{join}limit={PAGE}{marker}")).await?;
            let has_more = page.get("next").is_some_and(Value::is_string);
            let Some(Value::Array(things)) = page.get_mut(list).map(Value::take) else {
                return Ok(all);
            };
            let last = things.last().and_then(|thing| thing["uuid"].as_str()).map(str::to_owned);
            all.extend(things);
            match last {
                Some(last) if has_more && all.len() < at_most => {
                    marker = format!("&marker={}", segment(&last)?)
                }
                Some(_) | None => return Ok(all),
            }
        }
    }

    /// A WebSocket.
    pub(crate) async fn socket(&self, path: &str) -> Result<Socket, Problem> {
        let (request, asked) = websocket::ask(self.request(Method::GET, path)?);
        let answer = request.send().await.map_err(|why| self.unreachable(&why))?;
        if websocket::is_open(&answer) {
            return asked.open(answer).await.map_err(|why| self.unreadable(&why));
        }
        let status = answer.status();
        let body = self.read(answer).await?;
        Err(match status {
            StatusCode::UNAUTHORIZED => Problem::LoggedOut,
            _ => Problem::Refused { status, sentence: refusal(status, &body) },
        })
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Problem> {
        let base = self.base.as_str().trim_end_matches('/').trim_end_matches("/v1");
        let url = Url::parse(&format!("{base}{path}"));
        let url = url.map_err(|_| Problem::Unreadable("that makes no address".to_owned()))?;
        let request = self
            .client
            .request(method, url)
            .timeout(ANSWER_TIMEOUT)
            .header(ACCEPT, "application/json");
        let request = match self.program {
            Program::Machines => request.header("X-OpenStack-Ironic-API-Version", "1.95"),
            Program::Clusters => request.header("OpenStack-API-Version", "container-infra latest"),
        };
        let Some(session) = &self.session else { return Ok(request) };
        Ok(match &session.credential {
            Credential::Password(user, password) => {
                request.basic_auth(user, Some(password.expose_secret()))
            }
            Credential::Token(token) => {
                let token = HeaderValue::from_str(token.expose_secret());
                let mut token = token.map_err(|_| Problem::LoggedOut)?;
                token.set_sensitive(true);
                request.header("X-Auth-Token", token)
            }
        })
    }

    /// The body of an answer that is no refusal.
    async fn fetch(&self, request: RequestBuilder) -> Result<Vec<u8>, Problem> {
        let answer = request.send().await.map_err(|why| self.unreachable(&why))?;
        let status = answer.status();
        let body = self.read(answer).await?;
        match status {
            _ if status.is_success() => Ok(body),
            StatusCode::UNAUTHORIZED => Err(Problem::LoggedOut),
            _ => Err(Problem::Refused { status, sentence: refusal(status, &body) }),
        }
    }

    async fn read(&self, mut answer: Response) -> Result<Vec<u8>, Problem> {
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|why| self.unreachable(&why))? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(Problem::Unreachable {
                    program: self.program.name(),
                    why: "its answer is larger than a page can be".to_owned(),
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn unreachable(&self, why: &reqwest::Error) -> Problem {
        let mut root: &dyn std::error::Error = why;
        while let Some(source) = root.source() {
            root = source;
        }
        let why = if why.is_timeout() { "it takes too long".to_owned() } else { root.to_string() };
        Problem::Unreachable { program: self.program.name(), why }
    }

    fn unreadable(&self, why: &impl std::fmt::Display) -> Problem {
        Problem::Unreachable {
            program: self.program.name(),
            why: format!("its answer cannot be read: {why}"),
        }
    }
}

/// The sentence in the API's envelope: JSON in a JSON string from machines, a list of one from clusters.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let outer: Value = serde_json::from_slice(body).unwrap_or_default();
    let inner: Value = outer["error_message"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let sentence = inner["faultstring"].as_str().or(inner["description"].as_str());
    match sentence.or(outer["errors"][0]["detail"].as_str()) {
        Some(sentence) => sentence.to_owned(),
        None => format!("the service answered {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_says_is_what_a_person_reads() {
        let body = br#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"name: is taken\"}"}"#;
        assert_eq!(refusal(StatusCode::CONFLICT, body), "name: is taken");
        let body = br#"{"errors": [{"detail": "coe: it is required"}]}"#;
        assert_eq!(refusal(StatusCode::BAD_REQUEST, body), "coe: it is required");
        assert_eq!(
            refusal(StatusCode::BAD_GATEWAY, b"<html>"),
            "the service answered 502 Bad Gateway"
        );
    }

    #[test]
    fn no_name_leads_out_of_its_path() {
        assert_eq!(segment("a/../b").unwrap(), "a%2F..%2Fb");
        assert_eq!(segment("dev-3").unwrap(), "dev-3");
        for way_out in ["", ".", ".."] {
            assert!(segment(way_out).is_err(), "{way_out:?}");
        }
    }
}
