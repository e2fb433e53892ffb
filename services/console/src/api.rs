//! The REST APIs of both services, called with the credential of the logged-in user.

use std::time::Duration;

use api_client::{Client, ClientError, Listed, Pages};
use http::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use websocket::Socket;

use crate::problem::{Problem, Result};

pub(crate) use api_client::Service as BackendService;

/// The timeout of a request: a person waits for the response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of elements that one page of a list is asked for.
const PAGE: usize = 1000;

/// A client of one service with the credential of one user.
#[derive(Clone)]
pub(crate) struct Api {
    client: Client,
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
pub(crate) fn segment(text: &str) -> Result<String> {
    if matches!(text, "" | "." | "..") || text.len() > 256 {
        return Err(Problem::nothing_here());
    }
    Ok(encoded(text))
}

impl Api {
    pub(crate) fn new(client: Client) -> Self {
        Api { client: client.with_timeout(ANSWER_TIMEOUT) }
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.client.get(path).await.map_err(|why| self.problem(why))
    }

    /// Sends a `GET` for a resource that may be missing or hidden from the user. Returns `None` if the service refuses.
    pub(crate) async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(Problem::Refused { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Sends a `GET` and returns the response as text.
    pub(crate) async fn text(&self, path: &str) -> Result<String> {
        self.client.text(path).await.map_err(|why| self.problem(why))
    }

    /// Sends a request with a JSON body or without a body, and ignores the response.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<()> {
        let sent = async {
            let request = self.client.request(method, path).await?;
            let request = body.into_iter().fold(request, |request, body| request.json(body));
            self.client.send::<IgnoredAny>(request).await
        };
        sent.await.map(drop).map_err(|why| self.problem(why))
    }

    /// Sends a `POST` with a JSON body.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T> {
        self.client.post(path, body).await.map_err(|why| self.problem(why))
    }

    pub(crate) async fn all<T: Listed>(&self, path: &str) -> Result<Vec<T>> {
        Pages::of(&self.client, path).all().await.map_err(|why| self.problem(why))
    }

    /// Reads a long list until its end or until there are `at_most` elements.
    pub(crate) async fn first<T: Listed>(&self, path: &str, at_most: usize) -> Result<Vec<T>> {
        let mut all = Vec::new();
        let mut pages = Pages::of(&self.client, &format!("{path}?limit={PAGE}"));
        while all.len() < at_most
            && let Some(page) = pages.read().await.map_err(|why| self.problem(why))?
        {
            all.extend(page);
        }
        Ok(all)
    }

    /// Reads the first page of a list, and returns whether the list has more.
    pub(crate) async fn page<T: Listed>(&self, path: &str) -> Result<(Vec<T>, bool)> {
        let mut pages = Pages::of(&self.client, path);
        let page = pages.read().await.map_err(|why| self.problem(why))?;
        Ok((page.unwrap_or_default(), pages.has_more()))
    }

    pub(crate) async fn socket(&self, path: &str) -> Result<Socket> {
        self.client.socket(path).await.map_err(|why| self.problem(why))
    }

    fn problem(&self, why: ClientError) -> Problem {
        let program = self.client.service().program();
        match why {
            ClientError::Refused(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
                Problem::LoggedOut
            }
            ClientError::Refused(refusal) => {
                let status = refusal.status;
                let sentence = refusal.message.clone();
                let sentence = sentence.unwrap_or_else(|| format!("the service answered {status}"));
                Problem::Refused { status, sentence }
            }
            ClientError::InvalidToken => Problem::LoggedOut,
            ClientError::InvalidPath { .. } => {
                Problem::Unreadable("the path is not a valid URL".to_owned())
            }
            ClientError::Unreachable { source, .. } if source.is_timeout() => {
                Problem::Unreachable { program, why: "no response in time".to_owned() }
            }
            ClientError::Unreachable { source, .. } => {
                Problem::Unreachable { program, why: root(&source).to_string() }
            }
            ClientError::NoToken { .. } | ClientError::TooLarge => {
                Problem::Unreachable { program, why: why.to_string() }
            }
            ClientError::NotJson { source } | ClientError::Unreadable { source } => {
                unreadable(program, &source)
            }
            ClientError::NotText { source } => unreadable(program, &source),
            ClientError::NoSocket(source) => unreadable(program, &source),
            ClientError::InvalidPage => unreadable(program, &why),
        }
    }
}

fn unreadable(program: &'static str, why: &dyn std::error::Error) -> Problem {
    Problem::Unreachable { program, why: format!("cannot read the response: {why}") }
}

/// The first cause of an error.
fn root<'a>(why: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    let mut root = why;
    while let Some(source) = root.source() {
        root = source;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_segment() {
        assert_eq!(segment("a/../b").unwrap(), "a%2F..%2Fb");
        assert_eq!(segment("dev-3").unwrap(), "dev-3");
        for way_out in ["", ".", ".."] {
            assert!(segment(way_out).is_err(), "{way_out:?}");
        }
    }
}
