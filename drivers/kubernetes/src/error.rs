//! The errors of calls to a cluster.

use std::fmt;
use std::time::Duration;

use reqwest::{Method, StatusCode};

/// A result whose error is a [`KubernetesError`], unless it says otherwise.
pub type Result<T, E = KubernetesError> = std::result::Result<T, E>;

/// The reasons why a call to a cluster failed.
///
/// No variant holds a secret: a request appears by method and path, an answer by status and the server's message.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// No answer came. The server may have executed the request nevertheless.
    #[error("no answer from {endpoint} to {request}: {reason}")]
    Unreachable {
        endpoint: String,
        request: Request,
        /// The network's error.
        reason: String,
    },
    /// TLS failed: the cluster's authority did not sign the certificate, or the certificate is for another host.
    #[error("the certificate of {endpoint} is not trusted: {reason}")]
    Untrusted { endpoint: String, reason: String },
    /// The API server is busy or partly down: 429, 502, 503, 504.
    #[error("{answer}")]
    Busy {
        answer: Box<Refusal>,
        /// How long the server wants the client to wait.
        retry_after: Option<Duration>,
    },
    /// The server failed: 500 and similar, usually because etcd has no leader. The request may have been executed.
    #[error("{0}")]
    Failed(Box<Refusal>),
    /// The server rejects our certificate.
    #[error("{0}")]
    Unauthorized(Box<Refusal>),
    /// Our identity lacks the permission.
    #[error("{0}")]
    Forbidden(Box<Refusal>),
    /// The object does not exist.
    #[error("{0}")]
    NotFound(Box<Refusal>),
    /// The object exists already.
    #[error("{0}")]
    Exists(Box<Refusal>),
    /// The object has changed since it was read: read it again.
    #[error("{0}")]
    Conflict(Box<Refusal>),
    /// Any other refusal: the request is wrong for this cluster.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The answer breaks the API.
    #[error("cannot read the answer to {request}: {reason}")]
    Malformed { request: Request, reason: String },
    /// The cluster does not have this kind: its definition is missing or not ready yet.
    #[error("the cluster has no {kind} of {api_version}")]
    NoSuchKind {
        /// API group and version, in the form of documents.
        api_version: String,
        kind: String,
    },
    #[error("etcdctl on {node}: {reason}")]
    Etcd {
        /// The node of the pod that ran `etcdctl`.
        node: String,
        /// The last line of output, or the reason why the pod did not run.
        reason: String,
    },
    /// An invalid name or key; no request was sent.
    #[error("{text:?} cannot {rule}")]
    InvalidName {
        /// The text, cut to a length fit for a message.
        text: String,
        /// The violated rule, as a verb phrase.
        rule: &'static str,
    },
}

/// Method and path of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// Without host and query.
    pub path: String,
}

/// An answer whose status is not a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub request: Request,
    pub status: StatusCode,
    /// The server's reason code, such as `AlreadyExists`; empty if there is none.
    pub reason: String,
    /// The server's message; empty if it cannot be read or must not be shown.
    pub message: String,
    /// The server's codes of the causes, such as `DisruptionBudget`.
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
    /// Whether the same call may succeed later although nobody changes anything.
    pub fn is_transient(&self) -> bool {
        match self {
            KubernetesError::Unreachable { .. }
            | KubernetesError::Busy { .. }
            | KubernetesError::Failed(_)
            | KubernetesError::Conflict(_)
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

    /// Whether no answer came: the API is down, or not up yet.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, KubernetesError::Unreachable { .. })
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, KubernetesError::NotFound(_))
    }

    /// Whether the object exists already.
    pub fn is_already_there(&self) -> bool {
        matches!(self, KubernetesError::Exists(_))
    }

    /// Whether the object has changed since it was read.
    pub fn is_changed(&self) -> bool {
        matches!(self, KubernetesError::Conflict(_))
    }

    /// Returns how long the server wants the client to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        if let KubernetesError::Busy { retry_after, .. } = self { *retry_after } else { None }
    }

    /// Returns the answer, if there was one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            KubernetesError::Busy { answer, .. }
            | KubernetesError::Failed(answer)
            | KubernetesError::Unauthorized(answer)
            | KubernetesError::Forbidden(answer)
            | KubernetesError::NotFound(answer)
            | KubernetesError::Exists(answer)
            | KubernetesError::Conflict(answer)
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
