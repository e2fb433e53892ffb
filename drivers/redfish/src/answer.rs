//! A BMC's answer to one request: read up to a size limit, then classified.

use std::time::Duration;

use bmc::{BmcError, Result};
use reqwest::header::{ETAG, HeaderName, LOCATION, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use url::Url;

use crate::message::{self, Message};
use crate::quirks;

/// The largest body that is read, in bytes. Collections of a full chassis stay below half of this size.
pub(crate) const LARGEST_BODY: usize = 1024 * 1024;

/// The header that carries a session's token (DSP0266 §13.3.4).
pub(crate) const X_AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// A BMC's answer to one request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The request: `GET /redfish/v1/Systems/1`.
    pub(crate) request: String,
    pub(crate) status: StatusCode,
    pub(crate) etag: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) token: Option<reqwest::header::HeaderValue>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Vec<u8>,
}

/// Returns the name of a request for errors: method and path, never the host or a query.
pub(crate) fn name(method: &Method, url: &Url) -> String {
    format!("{method} {}", url.path().chars().take(200).collect::<String>())
}

/// The reasons why an answer could not be read to its end.
pub(crate) enum ReadError {
    Broken(reqwest::Error),
    TooLarge(BmcError),
}

impl Answer {
    /// Reads `response` to its end, or up to the size limit.
    pub(crate) async fn read(
        request: String,
        mut response: Response,
        largest: usize,
    ) -> Result<Self, ReadError> {
        let headers = response.headers();
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let mut answer = Answer {
            status: response.status(),
            etag: text(ETAG).filter(|tag| !tag.is_empty()).map(str::to_owned),
            location: text(LOCATION).map(str::to_owned),
            token: headers.get(X_AUTH_TOKEN).cloned(),
            retry_after: text(RETRY_AFTER).and_then(seconds),
            body: Vec::new(),
            request,
        };
        while let Some(chunk) = response.chunk().await.map_err(ReadError::Broken)? {
            if answer.body.len() + chunk.len() > largest {
                let reason = format!("it is larger than {} MiB", largest / (1024 * 1024));
                return Err(ReadError::TooLarge(answer.malformed(reason)));
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }

    /// Returns the answer if its status is a success, and the matching error otherwise.
    pub(crate) fn accepted(self, host: &str) -> Result<Self> {
        match self.status {
            status if status.is_success() => Ok(self),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(BmcError::Unauthorized { host: host.to_owned() })
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                Err(BmcError::Busy { host: host.to_owned(), reason: self.reported() })
            }
            _ => Err(self.refused()),
        }
    }

    /// Makes an error that says that the BMC refused, in the BMC's words.
    pub(crate) fn refused(&self) -> BmcError {
        BmcError::Refused {
            request: self.request.clone(),
            answer: self.reported(),
            transient: self.is_transient(),
        }
    }

    /// Makes an error that says that the answer breaks the protocol.
    pub(crate) fn malformed(&self, reason: impl Into<String>) -> BmcError {
        BmcError::Malformed { request: self.request.clone(), reason: reason.into() }
    }

    /// Returns the JSON object in the body.
    pub(crate) fn document(&self) -> Result<Value> {
        let value: Value = serde_json::from_slice(&self.body)
            .map_err(|source| self.malformed(format!("it is not JSON: {source}")))?;
        match value {
            Value::Object(_) => Ok(value),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(self.malformed("it is not a JSON object")),
        }
    }

    /// Returns the BMC's messages about an error.
    pub(crate) fn messages(&self) -> Vec<Message> {
        message::messages(&self.body)
    }

    /// Returns status and messages as one line.
    fn reported(&self) -> String {
        let mut reported = self.status.to_string();
        let sentence = message::sentence(&self.messages());
        if !sentence.is_empty() {
            reported = format!("{reported}: {sentence}");
        }
        if self.status.is_redirection() {
            reported.push_str(" (redirects are not followed)");
        }
        if let Some(wait) = self.retry_after {
            reported = format!("{reported} (the BMC asks for a retry in {} s)", wait.as_secs());
        }
        reported
    }

    /// Whether the same request may succeed later although nobody changes anything.
    fn is_transient(&self) -> bool {
        match self.status {
            // A BMC that does not implement a request now does not implement it later.
            StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => false,
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::PRECONDITION_FAILED
            | StatusCode::LOCKED
            | StatusCode::TOO_EARLY => true,
            status if status.is_server_error() => true,
            _ => self.messages().iter().any(quirks::is_temporary),
        }
    }
}

/// Parses `Retry-After` in seconds (RFC 9110 §10.2.3). The date form is ignored, because the BMC's clock may differ from ours.
fn seconds(raw: &str) -> Option<Duration> {
    raw.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn answer(status: u16, body: &[u8]) -> Answer {
        Answer {
            request: "POST /redfish/v1/x".to_owned(),
            status: StatusCode::from_u16(status).unwrap(),
            etag: None,
            location: None,
            token: None,
            retry_after: (status == 503).then_some(Duration::from_secs(30)),
            body: body.to_vec(),
        }
    }

    #[track_caller]
    fn check(status: u16, body: &str, want: Expect) {
        let error = answer(status, body.as_bytes()).accepted("bmc:443").unwrap_err();
        want.assert_eq(&format!("{error} / transient: {}", error.is_transient()));
    }

    #[test]
    fn every_status_has_its_error() {
        check(401, "", expect!["the BMC at bmc:443 rejected our credentials / transient: false"]);
        check(403, "", expect!["the BMC at bmc:443 rejected our credentials / transient: false"]);
        check(
            429,
            "",
            expect!["the BMC at bmc:443 is busy: 429 Too Many Requests / transient: true"],
        );
        check(
            503,
            "",
            expect![
                "the BMC at bmc:443 is busy: 503 Service Unavailable (the BMC asks for a retry in 30 s) / transient: true"
            ],
        );
        check(
            307,
            "",
            expect![
                "the BMC refused POST /redfish/v1/x: 307 Temporary Redirect (redirects are not followed) / transient: false"
            ],
        );
        check(
            400,
            r#"{"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.0.X", "Message": "No such drive."}]}}"#,
            expect![
                "the BMC refused POST /redfish/v1/x: 400 Bad Request: No such drive. / transient: false"
            ],
        );
        check(
            500,
            "",
            expect![
                "the BMC refused POST /redfish/v1/x: 500 Internal Server Error / transient: true"
            ],
        );
        check(
            501,
            "",
            expect!["the BMC refused POST /redfish/v1/x: 501 Not Implemented / transient: false"],
        );
    }

    #[test]
    fn only_objects_are_documents() {
        assert!(answer(200, b"{}").document().is_ok());
        for body in ["", "[]", "null", "7", "<html/>", "{\"a\":"] {
            assert!(answer(200, body.as_bytes()).document().is_err(), "{body}");
        }
        let deep = "[".repeat(100_000);
        assert!(answer(200, deep.as_bytes()).document().is_err());
    }

    proptest! {
        #[test]
        fn no_answer_panics(status in 100u16..600, body: Vec<u8>) {
            let _ = answer(status, &body).document();
            let _ = answer(status, &body).accepted("bmc");
        }
    }
}
