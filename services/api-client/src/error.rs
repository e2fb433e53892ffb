//! Why a call failed.

use std::string::FromUtf8Error;

use openstack::CloudError;
use reqwest::StatusCode;
use url::Url;
use websocket::UpgradeError;

use crate::refusal::Refusal;

/// Why a call of an API failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{path:?} is not a valid path of a URL")]
    InvalidPath { path: String, source: url::ParseError },
    /// Keystone does not answer, or refuses the caller.
    #[error("cannot get a token from Keystone")]
    NoToken { source: CloudError },
    #[error("Keystone's token is not a valid HTTP header")]
    InvalidToken,
    /// The service does not answer, or the answer ended too early.
    #[error("cannot reach the API at {base}")]
    Unreachable { base: Url, source: reqwest::Error },
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The answer is larger than any answer of the services.
    #[error("the response is larger than 32 MiB")]
    TooLarge,
    #[error("the response of the API is not JSON")]
    NotJson { source: serde_json::Error },
    #[error("the response of the API is not text")]
    NotText { source: FromUtf8Error },
    /// The answer lacks a field, or a field has another type than expected.
    #[error("cannot parse the response of the API")]
    Unreadable { source: serde_json::Error },
    /// The link to the next page leads nowhere.
    #[error("the API's answer cannot be read")]
    InvalidPage,
    /// The connection did not become a WebSocket.
    #[error(transparent)]
    NoSocket(#[from] UpgradeError),
}

impl ClientError {
    /// The status of a refusal.
    pub fn status(&self) -> Option<StatusCode> {
        if let ClientError::Refused(refusal) = self { Some(refusal.status) } else { None }
    }

    pub(crate) fn of_json(source: serde_json::Error) -> ClientError {
        if source.is_data() {
            return ClientError::Unreadable { source };
        }
        ClientError::NotJson { source }
    }
}
