//! Why a cluster did not do as asked.

use std::fmt;
use std::time::Duration;

use reqwest::{Method, StatusCode};

/// Why a cluster did not do as asked.
///
/// No variant holds a secret: requests are known by method and path, answers by status and the server's sentence.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// No answer. What was asked may have been done all the same.
    #[error("no answer from {endpoint} to {request}: {reason}")]
    Unreachable {
        /// What the API is called.
        endpoint: String,
        /// What was asked.
        request: Request,
        /// What the network said.
        reason: String,
    },
    /// TLS failed: the cluster's authority did not sign the certificate, or it is another host's.
    #[error("the certificate of {endpoint} is not one of this cluster's: {reason}")]
    Untrusted {
        /// What the API is called.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is busy or partly down: 429, 502, 503, 504.
    #[error("{answer}")]
    Busy {
        /// What it said.
        answer: Box<Refusal>,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// It failed: 500 and its like, etcd without a leader mostly. What was asked may have been done.
    #[error("{0}")]
    Failed(Box<Refusal>),
    /// It does not take our certificate.
    #[error("{0}")]
    Unauthorized(Box<Refusal>),
    /// We are known and may not do this.
    #[error("{0}")]
    Forbidden(Box<Refusal>),
    /// There is no such thing.
    #[error("{0}")]
    NotFound(Box<Refusal>),
    /// It exists already.
    #[error("{0}")]
    Exists(Box<Refusal>),
    /// It is not any more what we saw: look again.
    #[error("{0}")]
    Changed(Box<Refusal>),
    /// Anything else that it will not do: the request is wrong for this cluster.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The answer is not what the API says it is.
    #[error("cannot read the answer to {request}: {reason}")]
    Malformed {
        /// What was asked.
        request: Request,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The cluster has no such kind of objects: what brings it is missing, or not yet ready.
    #[error("the cluster has no {kind} of {api_version}")]
    NoSuchKind {
        /// The API group and version, as in documents.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// What was asked of etcd did not succeed.
    #[error("etcdctl on {node}: {reason}")]
    Etcd {
        /// The node on which it ran.
        node: String,
        /// What it said last, or why it did not run.
        reason: String,
    },
    /// A name or key that cannot be: nothing was asked.
    #[error("{text:?} cannot {rule}")]
    InvalidName {
        /// The text, cut to a length fit for a message.
        text: String,
        /// What it cannot.
        rule: &'static str,
    },
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, without host and query.
    pub path: String,
}

/// An answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// To what.
    pub request: Request,
    /// The HTTP status.
    pub status: StatusCode,
    /// The server's word for why, as `AlreadyExists`; empty if it said none.
    pub reason: String,
    /// The server's own sentence; empty if it said nothing that can be read or may be shown.
    pub message: String,
    /// Its words for the causes, as `DisruptionBudget`.
    pub causes: Vec<String>,
}

impl Refusal {
    pub(crate) fn new(request: Request, status: StatusCode) -> Self {
        let (reason, message) = Default::default();
        Refusal { request, status, reason, message, causes: Vec::new() }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the API server answered {} to {}", self.status, self.request)?;
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

impl KubernetesError {
    /// Whether the same call may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            KubernetesError::Unreachable { .. }
            | KubernetesError::Busy { .. }
            | KubernetesError::Failed(_)
            | KubernetesError::Changed(_)
            | KubernetesError::Etcd { .. }
            | KubernetesError::NoSuchKind { .. } => true,
            KubernetesError::Untrusted { .. }
            | KubernetesError::Unauthorized(_)
            | KubernetesError::Forbidden(_)
            | KubernetesError::NotFound(_)
            | KubernetesError::Exists(_)
            | KubernetesError::Refused(_)
            | KubernetesError::Malformed { .. }
            | KubernetesError::InvalidName { .. } => false,
        }
    }

    /// Whether nobody answered: the API is down, or not there yet.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, KubernetesError::Unreachable { .. })
    }

    /// Whether there is no such thing.
    pub fn is_not_found(&self) -> bool {
        matches!(self, KubernetesError::NotFound(_))
    }

    /// Whether it exists already.
    pub fn is_already_there(&self) -> bool {
        matches!(self, KubernetesError::Exists(_))
    }

    /// Whether it is not any more what we saw.
    pub fn is_changed(&self) -> bool {
        matches!(self, KubernetesError::Changed(_))
    }

    /// When the server wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        if let KubernetesError::Busy { retry_after, .. } = self { *retry_after } else { None }
    }

    /// The answer, if there was one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            KubernetesError::Busy { answer, .. }
            | KubernetesError::Failed(answer)
            | KubernetesError::Unauthorized(answer)
            | KubernetesError::Forbidden(answer)
            | KubernetesError::NotFound(answer)
            | KubernetesError::Exists(answer)
            | KubernetesError::Changed(answer)
            | KubernetesError::Refused(answer) => Some(answer),
            KubernetesError::Unreachable { .. }
            | KubernetesError::Untrusted { .. }
            | KubernetesError::Malformed { .. }
            | KubernetesError::NoSuchKind { .. }
            | KubernetesError::Etcd { .. }
            | KubernetesError::InvalidName { .. } => None,
        }
    }
}

/// What a delete says where the thing is gone already: that is what was wanted.
pub(crate) fn gone_is_fine(result: Result<(), KubernetesError>) -> Result<(), KubernetesError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}

/// `None` where there is no such thing.
pub(crate) fn if_found<T>(
    result: Result<T, KubernetesError>,
) -> Result<Option<T>, KubernetesError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
