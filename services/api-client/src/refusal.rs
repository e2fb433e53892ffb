//! The refusal of a request by a service.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Deserialize;

/// A response with a status other than success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct Refusal {
    pub status: StatusCode,
    /// The path of the request.
    pub path: String,
    /// The service's own sentence; `None` if the response has none.
    pub message: Option<String>,
    /// The header `WWW-Authenticate`, which tells how to authenticate.
    pub challenge: Option<String>,
    pub retry_after: Option<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, path: String, headers: &HeaderMap, body: &[u8]) -> Self {
        let header = |name: HeaderName| Some(headers.get(name)?.to_str().ok()?.to_owned());
        Refusal {
            status,
            path,
            message: message(body),
            challenge: header(WWW_AUTHENTICATE),
            retry_after: header(RETRY_AFTER),
        }
    }

    /// The service's own sentence, or the status.
    pub fn sentence(&self) -> String {
        let status = || format!("the API answered {}", self.status.as_u16());
        self.message.clone().unwrap_or_else(status)
    }
}

/// The error envelope of either service: baremetald sends JSON inside a JSON string, clusterd a list with one error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope {
    error_message: Option<String>,
    errors: Vec<ErrorDetail>,
}

#[derive(Deserialize)]
struct ErrorDetail {
    detail: Option<String>,
}

/// The JSON inside baremetald's `error_message`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fault {
    faultstring: Option<String>,
    /// Used instead of `faultstring` by errors of WSME.
    description: Option<String>,
}

/// Takes the service's sentence out of an error envelope.
fn message(body: &[u8]) -> Option<String> {
    let envelope: Envelope = serde_json::from_slice(body).unwrap_or_default();
    let fault = envelope.error_message.and_then(|text| serde_json::from_str::<Fault>(&text).ok());
    let fault = fault.and_then(|fault| fault.faultstring.or(fault.description));
    fault.or_else(|| envelope.errors.into_iter().next()?.detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_of_either_service_is_found() {
        let body = br#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"name: is taken\", \"debuginfo\": null}"}"#;
        assert_eq!(message(body).as_deref(), Some("name: is taken"));
        let body = br#"{"errors": [{"status": 400, "title": "", "detail": "coe: required"}]}"#;
        assert_eq!(message(body).as_deref(), Some("coe: required"));
        let refusal =
            Refusal::new(StatusCode::BAD_GATEWAY, "/".to_owned(), &HeaderMap::new(), b"<html>");
        assert_eq!(refusal.to_string(), "the API answered 502");
    }
}
