//! Why a page cannot be shown or an action not be carried out.

use axum::response::{IntoResponse, Response};
use console_store::StoreError;
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode};

/// A result whose error is a [`Problem`], unless it says otherwise.
pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

/// Why a request failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The request has no session, or an expired one.
    #[error("log in first")]
    LoggedOut,
    /// The form's token does not belong to this browser.
    #[error(
        "this form has expired or does not come from this console: go back, reload the page and send the form again"
    )]
    Forged,
    /// The form or the path is not valid.
    #[error("{0}")]
    Unreadable(String),
    /// The service refused; the sentence is the service's own.
    #[error("{sentence}")]
    Refused { status: StatusCode, sentence: String },
    /// The service does not answer, or its response cannot be parsed.
    #[error("{program} does not answer: {why}")]
    Unreachable {
        program: &'static str,
        /// The cause, such as a network error.
        why: String,
    },
    #[error("the cloud's catalogue has no endpoint for {0}; set its URL in console.toml")]
    NoEndpoint(&'static str),
    #[error("too many live pages are open; close some, or reload later")]
    TooManyLivePages,
    /// Too many wrong passwords.
    #[error("{sentence}")]
    TooMany {
        sentence: String,
        /// The seconds until the next attempt is permitted.
        again_in: u64,
    },
    /// A template is wrong, or the operating system failed.
    #[error("the console failed: {0}")]
    Internal(String),
}

impl Problem {
    /// Makes the problem of a database that does not answer.
    pub(crate) fn database(why: &StoreError) -> Self {
        Problem::Unreachable { program: "the database of the console", why: why.to_string() }
    }

    /// Makes the problem of a path without a page.
    pub(crate) fn nothing_here() -> Self {
        Problem::Refused { status: StatusCode::NOT_FOUND, sentence: "no such page".to_owned() }
    }

    /// Makes the problem of a refused password.
    pub(crate) fn wrong_password() -> Self {
        Problem::Refused {
            status: StatusCode::UNAUTHORIZED,
            sentence: "wrong user name or password".to_owned(),
        }
    }

    /// The HTTP status of the error page.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Problem::LoggedOut => StatusCode::UNAUTHORIZED,
            Problem::Forged => StatusCode::FORBIDDEN,
            Problem::Unreadable(_) => StatusCode::BAD_REQUEST,
            Problem::Refused { status, .. } => *status,
            Problem::Unreachable { .. } | Problem::NoEndpoint(_) => StatusCode::BAD_GATEWAY,
            Problem::TooManyLivePages => StatusCode::SERVICE_UNAVAILABLE,
            Problem::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Problem::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// `Retry-After`, if the time of the next attempt is known.
    pub(crate) fn retry_after(&self) -> Option<[(HeaderName, HeaderValue); 1]> {
        match self {
            Problem::TooMany { again_in, .. } => {
                Some([(RETRY_AFTER, HeaderValue::from(*again_in))])
            }
            Problem::LoggedOut
            | Problem::Forged
            | Problem::Unreadable(_)
            | Problem::Refused { .. }
            | Problem::Unreachable { .. }
            | Problem::NoEndpoint(_)
            | Problem::TooManyLivePages
            | Problem::Internal(_) => None,
        }
    }

    pub(crate) fn title(&self) -> &'static str {
        match self {
            Problem::LoggedOut => "Log in first",
            Problem::Forged => "Form refused",
            Problem::Unreadable(_) => "Invalid request",
            Problem::Refused { status: StatusCode::NOT_FOUND, .. } => "Not found",
            Problem::Refused { status: StatusCode::FORBIDDEN, .. } => "Not permitted",
            Problem::Refused { .. } => "Refused",
            Problem::Unreachable { .. } | Problem::NoEndpoint(_) => "Service not available",
            Problem::TooManyLivePages => "Too many live pages",
            Problem::TooMany { .. } => "Too many wrong passwords",
            Problem::Internal(_) => "Internal error",
        }
    }
}

impl IntoResponse for Problem {
    /// Returns the status with the problem attached. `error_page` makes the page.
    fn into_response(self) -> Response {
        let mut answer = self.status().into_response();
        answer.extensions_mut().insert(self);
        answer
    }
}
