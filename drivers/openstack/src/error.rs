//! The errors of calls to a cloud.

use std::fmt;
use std::time::Duration;

use reqwest::{Method, StatusCode};

use crate::config::Interface;
use crate::service::Service;

/// A result whose error is a [`CloudError`], unless it says otherwise.
pub type Result<T, E = CloudError> = std::result::Result<T, E>;

/// The reasons why a call to a cloud failed.
///
/// No variant holds a secret: a request appears by method and path, an answer by status and the service's message.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// No answer came. The service may have executed the request: look for the object by its name before repeating the request.
    #[error("no answer from the {service} service to {request}: {reason}")]
    Unreachable {
        service: Service,
        /// The request, including the id that we gave it.
        request: Request,
        /// The network's error.
        reason: String,
    },
    /// TLS failed: no known authority signed the certificate, or the certificate is for another host.
    #[error("the certificate of the {service} service at {host} is not trusted: {reason}")]
    Untrusted { service: Service, host: String, reason: String },
    /// The service is busy or partly down (429, 502, 503, 504), or the resource is being changed.
    #[error("{answer}")]
    Busy {
        answer: Box<Refusal>,
        /// How long the service wants the client to wait.
        retry_after: Option<Duration>,
    },
    /// The service failed: 500 and similar. The request may have been executed in part.
    #[error("{0}")]
    Failed(Box<Refusal>),
    /// The credentials are wrong, expired or revoked; a new token did not help.
    #[error("{0}")]
    Unauthorized(Box<Refusal>),
    /// Our user lacks the permission.
    #[error("{0}")]
    Forbidden(Box<Refusal>),
    /// The object does not exist, or we may not see it.
    #[error("{0}")]
    NotFound(Box<Refusal>),
    /// The object exists already, is in use, or is not in a state that permits the request.
    #[error("{0}")]
    Conflict(Box<Refusal>),
    /// The request exceeds a quota of the project.
    #[error("{0}")]
    QuotaExceeded(Box<Refusal>),
    /// Any other refusal: the request is wrong for this cloud.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The answer breaks the API.
    #[error("cannot read the {service} service's answer to {request}: {reason}")]
    Malformed { service: Service, request: Request, reason: String },
    #[error(
        "the catalogue has no {interface} endpoint of the {service} service in region {region}"
    )]
    NoEndpoint {
        service: Service,
        /// The region, or `any`.
        region: String,
        interface: Interface,
    },
    /// The id or name cannot be part of a path; no request was sent.
    #[error("{text:?} cannot be the id of anything in the {service} service")]
    InvalidId {
        service: Service,
        /// The text, cut to a length fit for a message.
        text: String,
    },
}

/// Method, path and id of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// Without host and query.
    pub path: String,
    /// The service's id of the request if the answer has one, otherwise the id that we sent. The service's logs contain it.
    pub id: String,
}

/// An answer whose status is not a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub service: Service,
    pub request: Request,
    pub status: StatusCode,
    /// The service's message; empty if it cannot be read.
    pub message: String,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.method, self.path, self.id)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { service, request, status, message } = self;
        write!(f, "the {service} service answered {status} to {request}")?;
        if message.is_empty() { Ok(()) } else { write!(f, ": {message}") }
    }
}

impl CloudError {
    /// The kind of the error in one word, for metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            CloudError::Unreachable { .. } => "unreachable",
            CloudError::Untrusted { .. } => "untrusted",
            CloudError::Busy { .. } => "busy",
            CloudError::Failed(_) => "failed",
            CloudError::Unauthorized(_) => "unauthorized",
            CloudError::Forbidden(_) => "forbidden",
            CloudError::NotFound(_) => "not_found",
            CloudError::Conflict(_) => "conflict",
            CloudError::QuotaExceeded(_) => "quota_exceeded",
            CloudError::Refused(_) => "refused",
            CloudError::Malformed { .. } => "malformed",
            CloudError::NoEndpoint { .. } => "no_endpoint",
            CloudError::InvalidId { .. } => "invalid_id",
        }
    }

    /// Whether the same call may succeed later although nobody changes anything.
    pub fn is_transient(&self) -> bool {
        match self {
            CloudError::Unreachable { .. } | CloudError::Busy { .. } | CloudError::Failed(_) => {
                true
            }
            CloudError::Untrusted { .. }
            | CloudError::Unauthorized(_)
            | CloudError::Forbidden(_)
            | CloudError::NotFound(_)
            | CloudError::Conflict(_)
            | CloudError::QuotaExceeded(_)
            | CloudError::Refused(_)
            | CloudError::Malformed { .. }
            | CloudError::NoEndpoint { .. }
            | CloudError::InvalidId { .. } => false,
        }
    }

    /// Whether the request may have been executed, so that the caller must look for its effect.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            CloudError::Unreachable { .. }
            | CloudError::Failed(_)
            | CloudError::Malformed { .. } => true,
            // A proxy reports that it lost the service, which may have executed the request.
            CloudError::Busy { answer, .. } => {
                matches!(answer.status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
            }
            CloudError::Untrusted { .. }
            | CloudError::Unauthorized(_)
            | CloudError::Forbidden(_)
            | CloudError::NotFound(_)
            | CloudError::Conflict(_)
            | CloudError::QuotaExceeded(_)
            | CloudError::Refused(_)
            | CloudError::NoEndpoint { .. }
            | CloudError::InvalidId { .. } => false,
        }
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, CloudError::NotFound(_))
    }

    /// Whether the object exists already, is in use, or is in another state.
    pub fn is_conflict(&self) -> bool {
        matches!(self, CloudError::Conflict(_))
    }

    /// Returns how long the service wants the client to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        if let CloudError::Busy { retry_after, .. } = self { *retry_after } else { None }
    }

    /// Returns the answer, if there was one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            CloudError::Busy { answer, .. }
            | CloudError::Failed(answer)
            | CloudError::Unauthorized(answer)
            | CloudError::Forbidden(answer)
            | CloudError::NotFound(answer)
            | CloudError::Conflict(answer)
            | CloudError::QuotaExceeded(answer)
            | CloudError::Refused(answer) => Some(answer),
            CloudError::Unreachable { .. }
            | CloudError::Untrusted { .. }
            | CloudError::Malformed { .. }
            | CloudError::NoEndpoint { .. }
            | CloudError::InvalidId { .. } => None,
        }
    }
}

/// Turns "not found" into success, for a delete.
pub(crate) fn ignore_not_found(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}

/// Turns "not found" into `None`.
pub(crate) fn if_found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
