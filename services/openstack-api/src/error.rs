//! Refusals of requests, as the client sees them.

use std::error::Error;
use std::io;

use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tracing::error;

use crate::RequestId;

/// A refusal: a status and a message.
///
/// The response made from a refusal has no body yet; [`crate::apply`] writes the body in the error envelope of the API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub status: StatusCode,
    /// A message for people, which names the wrong field if there is one.
    pub message: String,
    pub kind: Kind,
    /// After how many seconds the same request may succeed (`Retry-After`); `None` if unknown.
    pub retry_after: Option<u64>,
}

/// The part of the service that refused; some APIs use a different envelope for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Resource,
    /// A check before any handler: versions, routes, authentication.
    Protocol,
    /// No route takes the request.
    Unrouted,
}

/// Writes the body of a refusal in the format of one API.
pub type Envelope = fn(&ApiError, RequestId) -> String;

impl ApiError {
    /// A refusal by a handler.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        ApiError { status, message: message.into(), kind: Kind::Resource, retry_after: None }
    }

    /// A refusal before any handler.
    pub fn protocol(status: StatusCode, message: impl Into<String>) -> Self {
        ApiError { status, message: message.into(), kind: Kind::Protocol, retry_after: None }
    }

    /// The refusal of a request that no route takes.
    pub(crate) fn unrouted(status: StatusCode, message: impl Into<String>) -> Self {
        ApiError { status, message: message.into(), kind: Kind::Unrouted, retry_after: None }
    }

    /// Adds `Retry-After` to the refusal.
    pub fn retry_after(self, seconds: u64) -> Self {
        ApiError { retry_after: Some(seconds), ..self }
    }

    /// 400 Bad Request.
    pub fn bad_request(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, message)
    }

    /// 400 Bad Request, because of one field.
    pub fn bad_field(field: &str, problem: impl std::fmt::Display) -> Self {
        ApiError::bad_request(format!("{field}: {problem}"))
    }

    /// 404 Not Found.
    pub fn not_found(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::NOT_FOUND, message)
    }

    /// 406 Not Acceptable, by a handler: the request uses a feature of a later microversion.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::NOT_ACCEPTABLE, message)
    }

    /// 409 Conflict.
    pub fn conflict(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::CONFLICT, message)
    }

    /// 401 Unauthorized.
    pub fn unauthorized() -> Self {
        ApiError::protocol(StatusCode::UNAUTHORIZED, "user name and password are required")
    }

    /// The refusal of a request that the audit trail cannot record, with 503.
    pub fn unrecorded(why: &dyn Error) -> Self {
        error!("refusing a request because the audit trail cannot be written: {why}");
        let why = "the request cannot be recorded in the audit trail, so it was not carried out: retry later";
        ApiError::protocol(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    /// 500 Internal Server Error. The cause is logged and not part of the message.
    pub fn broken(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut answer = self.status.into_response();
        answer.extensions_mut().insert(self);
        answer
    }
}

impl From<BytesRejection> for ApiError {
    fn from(why: BytesRejection) -> Self {
        match why.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body: is larger than this route accepts",
            ),
            _ if is_late(&why) => {
                ApiError::protocol(StatusCode::REQUEST_TIMEOUT, "body: was sent too slowly")
            }
            _ => {
                ApiError::bad_request("body: the connection was closed before the end of the body")
            }
        }
    }
}

/// An error with all of its causes, for the log.
pub fn chain(why: &dyn Error) -> String {
    let mut chain = why.to_string();
    let mut source = why.source();
    while let Some(cause) = source {
        chain = format!("{chain}: {cause}");
        source = cause.source();
    }
    chain
}

/// Whether the listener aborted the body because the client was too slow.
fn is_late(why: &BytesRejection) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(why);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        cause = error.source();
    }
    false
}
