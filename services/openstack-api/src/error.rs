//! What a client is told when its request is refused.

use std::error::Error;
use std::io;

use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use crate::{NotAcceptable, RequestId};

/// A refusal: a status and a sentence.
///
/// As a response it has no body; [`crate::apply`] gives it the envelope of its API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The status.
    pub status: StatusCode,
    /// For people, naming the field where one is wrong.
    pub message: String,
    /// Who refused.
    pub kind: Kind,
    /// After how many seconds the same may succeed, where that is known: `Retry-After`.
    pub retry_after: Option<u64>,
}

/// Who refused: some APIs word the two differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A handler.
    Resource,
    /// What comes before every handler: versions, routes, authentication.
    Protocol,
}

/// Writes the body of a refusal, as one API's clients read it.
pub type Envelope = fn(&ApiError, RequestId) -> String;

impl ApiError {
    /// A handler's refusal.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        ApiError { status, message: message.into(), kind: Kind::Resource, retry_after: None }
    }

    /// A refusal before any handler.
    pub fn protocol(status: StatusCode, message: impl Into<String>) -> Self {
        ApiError { status, message: message.into(), kind: Kind::Protocol, retry_after: None }
    }

    /// The same, and that it may succeed after so many seconds.
    pub fn again_in(self, seconds: u64) -> Self {
        ApiError { retry_after: Some(seconds), ..self }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, message)
    }

    /// 400, because of one field.
    pub fn bad_field(field: &str, problem: impl std::fmt::Display) -> Self {
        ApiError::bad_request(format!("{field}: {problem}"))
    }

    /// 404.
    pub fn not_found(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::NOT_FOUND, message)
    }

    /// 406, by a handler: the request uses what came with a later version.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::NOT_ACCEPTABLE, message)
    }

    /// 409.
    pub fn conflict(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::CONFLICT, message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        ApiError::protocol(StatusCode::UNAUTHORIZED, "user name and password are required")
    }

    /// 500: we are at fault. The cause belongs in the log, not here.
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

impl From<NotAcceptable> for ApiError {
    fn from(why: NotAcceptable) -> Self {
        ApiError::protocol(StatusCode::NOT_ACCEPTABLE, why.to_string())
    }
}

impl From<BytesRejection> for ApiError {
    fn from(why: BytesRejection) -> Self {
        match why.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body: it is larger than accepted here",
            ),
            _ if is_late(&why) => ApiError::protocol(
                StatusCode::REQUEST_TIMEOUT,
                "body: it came slower than is waited for here",
            ),
            _ => ApiError::bad_request("body: it broke off before its end"),
        }
    }
}

/// An error with all its causes, for the log.
pub fn chain(why: &dyn Error) -> String {
    let mut chain = why.to_string();
    let mut source = why.source();
    while let Some(cause) = source {
        chain = format!("{chain}: {cause}");
        source = cause.source();
    }
    chain
}

/// Whether the listener gave a body up, whose client was too slow.
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
