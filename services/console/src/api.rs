//! The REST APIs of both services, called with the credential of the logged-in user.

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

/// The timeout of a request: a person waits for the response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest response that is read, in bytes.
const LARGEST_ANSWER: usize = 32 << 20;
/// The number of elements that one page of a list is asked for.
const PAGE: usize = 1000;

/// The service that an `Api` calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendService {
    /// `baremetald`.
    Baremetald,
    /// `clusterd`.
    Clusterd,
}

/// A client of one service with the credential of one user.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) client: Client,
    pub(crate) program: BackendService,
    pub(crate) base: Url,
    pub(crate) session: Option<Arc<Session>>,
}

impl BackendService {
    /// Returns the name of the service's program.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            BackendService::Baremetald => "baremetald",
            BackendService::Clusterd => "clusterd",
        }
    }
}

/// RFC 3986 §2.3: the characters that are percent-encoded in a segment of a path, which are all but the unreserved characters.
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a text for a URL.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &RESERVED).to_string()
}

/// Percent-encodes `text` as one segment of a path.
///
/// # Errors
///
/// Returns an error if `text` is empty, `.` or `..`, which would lead to another path, or longer than 256 bytes.
pub(crate) fn segment(text: &str) -> Result<String, Problem> {
    if matches!(text, "" | "." | "..") || text.len() > 256 {
        return Err(Problem::nothing_here());
    }
    Ok(encoded(text))
}

impl Api {
    /// Sends a `GET` and parses the response as JSON.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Problem> {
        self.get_as(path).await
    }

    /// Sends a `GET` and parses the response as `T`.
    pub(crate) async fn get_as<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        let body = self.fetch(self.request(Method::GET, path)?).await?;
        serde_json::from_slice(&body).map_err(|why| self.unreadable(&why))
    }

    /// Sends a `GET` for a resource that may be missing or hidden from the user. Returns `None` if the service refuses.
    pub(crate) async fn find(&self, path: &str) -> Result<Option<Value>, Problem> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(Problem::Refused { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Sends a `GET` and returns the response as text.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Problem> {
        let body = self.fetch(self.request(Method::GET, path)?).await?;
        String::from_utf8(body).map_err(|why| self.unreadable(&why))
    }

    /// Sends a request with a JSON body or without a body. Returns `Null` for an empty response.
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

    /// Reads the pages of a list until its end or until there are `at_most` elements. Each page starts after the last `uuid` of the page
    /// before.
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
            let Some(Value::Array(elements)) = page.get_mut(list).map(Value::take) else {
                return Ok(all);
            };
            let last = elements.last().and_then(|last| last["uuid"].as_str()).map(str::to_owned);
            all.extend(elements);
            match last {
                Some(last) if has_more && all.len() < at_most => {
                    marker = format!("&marker={}", segment(&last)?)
                }
                Some(_) | None => return Ok(all),
            }
        }
    }

    /// Opens a WebSocket.
    pub(crate) async fn socket(&self, path: &str) -> Result<Socket, Problem> {
        let (request, asked) = websocket::upgrade_request(self.request(Method::GET, path)?);
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
        let url = url.map_err(|_| Problem::Unreadable("the path is not a valid URL".to_owned()))?;
        let request = self
            .client
            .request(method, url)
            .timeout(ANSWER_TIMEOUT)
            .header(ACCEPT, "application/json");
        let request = match self.program {
            BackendService::Baremetald => request.header("X-OpenStack-Ironic-API-Version", "1.95"),
            BackendService::Clusterd => {
                request.header("OpenStack-API-Version", "container-infra latest")
            }
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

    /// Sends a request and returns the body, or the service's refusal as an error.
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
                    why: "the response is larger than 32 MiB".to_owned(),
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
        let why =
            if why.is_timeout() { "no response in time".to_owned() } else { root.to_string() };
        Problem::Unreachable { program: self.program.name(), why }
    }

    fn unreadable(&self, why: &impl std::fmt::Display) -> Problem {
        Problem::Unreachable {
            program: self.program.name(),
            why: format!("cannot read the response: {why}"),
        }
    }
}

/// Takes the message out of a refusal: baremetald sends JSON inside a JSON string, clusterd a list with one error.
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
    fn the_message_of_a_refusal_is_shown() {
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
    fn a_name_cannot_leave_its_segment() {
        assert_eq!(segment("a/../b").unwrap(), "a%2F..%2Fb");
        assert_eq!(segment("dev-3").unwrap(), "dev-3");
        for way_out in ["", ".", ".."] {
            assert!(segment(way_out).is_err(), "{way_out:?}");
        }
    }
}
