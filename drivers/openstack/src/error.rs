//! Why a cloud did not do as asked.

use std::fmt;
use std::time::Duration;

use reqwest::{Method, StatusCode};

use crate::config::Interface;
use crate::service::Service;

/// Why a cloud did not do as asked.
///
/// No variant holds a secret: requests are known by method and path, answers by status and the service's sentence.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// No answer. What was asked may have been done all the same: look for it by its name before asking again.
    #[error("no answer from the {service} service to {request}: {reason}")]
    Unreachable {
        /// Who was asked.
        service: Service,
        /// What was asked, and the id we gave the request.
        request: Request,
        /// What the network said.
        reason: String,
    },
    /// TLS failed: no known authority signed the certificate, or it is another host's.
    #[error("the certificate of the {service} service at {host} is not trusted: {reason}")]
    Untrusted {
        /// Who was asked.
        service: Service,
        /// Where.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is busy or partly down: 429, 502, 503, 504, or a resource that is being changed.
    #[error("{answer}")]
    Busy {
        /// What it said.
        answer: Box<Refusal>,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// It failed: 500 and its like. What was asked may have been done in part.
    #[error("{0}")]
    Failed(Box<Refusal>),
    /// Our credentials are wrong, have ended, or were taken away; a new token did not help.
    #[error("{0}")]
    Unauthorized(Box<Refusal>),
    /// We are known and may not do this.
    #[error("{0}")]
    Forbidden(Box<Refusal>),
    /// There is no such thing, or none that we may see.
    #[error("{0}")]
    NotFound(Box<Refusal>),
    /// It exists already, is in use, or is not in a state in which this can be done.
    #[error("{0}")]
    Conflict(Box<Refusal>),
    /// A quota of the project does not allow it.
    #[error("{0}")]
    QuotaExceeded(Box<Refusal>),
    /// Anything else that it will not do: the request is wrong for this cloud.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The answer is not what the API says it is.
    #[error("cannot read the {service} service's answer to {request}: {reason}")]
    Malformed {
        /// Who was asked.
        service: Service,
        /// What was asked.
        request: Request,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The cloud has no such service, or not where we look.
    #[error(
        "the catalogue has no {interface} endpoint of the {service} service in region {region}"
    )]
    NoEndpoint {
        /// What was looked for.
        service: Service,
        /// The region, or `any`.
        region: String,
        /// The interface.
        interface: Interface,
    },
    /// An id or name that cannot be part of a path: nothing was asked.
    #[error("{text:?} cannot be the id of anything in the {service} service")]
    InvalidId {
        /// Whose.
        service: Service,
        /// The text, cut to a length fit for a message.
        text: String,
    },
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, without host and query.
    pub path: String,
    /// The id: the service's own where it told one, else the one we sent along, by which its logs know the request.
    pub id: String,
}

/// An answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whose.
    pub service: Service,
    /// To what.
    pub request: Request,
    /// The HTTP status.
    pub status: StatusCode,
    /// The service's own sentence; empty if it said nothing that can be read.
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
    /// Whether the same call may succeed later without anyone changing anything.
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

    /// Whether what was asked may have been done all the same, so that it must be looked for.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            CloudError::Unreachable { .. }
            | CloudError::Failed(_)
            | CloudError::Malformed { .. } => true,
            // A proxy's word that it lost the service, which may have been at work.
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

    /// Whether there is no such thing.
    pub fn is_not_found(&self) -> bool {
        matches!(self, CloudError::NotFound(_))
    }

    /// Whether it exists already, is in use, or is in another state.
    pub fn is_conflict(&self) -> bool {
        matches!(self, CloudError::Conflict(_))
    }

    /// When the service wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        if let CloudError::Busy { retry_after, .. } = self { *retry_after } else { None }
    }

    /// The answer, if there was one.
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

/// What a delete says where the thing is gone already: that is what was wanted.
pub(crate) fn gone_is_fine(result: Result<(), CloudError>) -> Result<(), CloudError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}

/// `None` where there is no such thing.
pub(crate) fn if_found<T>(result: Result<T, CloudError>) -> Result<Option<T>, CloudError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
