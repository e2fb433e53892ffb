//! What a person is told when a page cannot be shown or a wish not be carried out.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode};

use crate::api::encoded;
use crate::service::Console;
use crate::visit::Visit;

/// Why not.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// Nobody is logged in, or not any more.
    #[error("log in first")]
    LoggedOut,
    /// The form is not one that we gave to this browser.
    #[error(
        "this form is too old, or is not of this console: go back, load the page again and send it again"
    )]
    Forged,
    /// The form or the address cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The service refuses, in its own words.
    #[error("{sentence}")]
    Refused {
        /// Its status.
        status: StatusCode,
        /// What it said.
        sentence: String,
    },
    /// The service does not answer, or nothing that can be read.
    #[error("{program} does not answer: {why}")]
    Unreachable {
        /// Which.
        program: &'static str,
        /// What the network said.
        why: String,
    },
    /// Nobody says where the service is.
    #[error("the cloud's catalogue does not say where {0} is")]
    Nowhere(&'static str),
    /// More pages are followed than there may be.
    #[error("too many pages are followed at once")]
    Crowded,
    /// Too many passwords were wrong.
    #[error("{sentence}")]
    TooMany {
        /// Where.
        sentence: String,
        /// After how many seconds the next may be tried.
        again_in: u64,
    },
    /// A template is wrong, or the system fails.
    #[error("the console failed: {0}")]
    Broken(String),
}

impl Problem {
    /// There is no such page.
    pub(crate) fn nothing_here() -> Self {
        Problem::Refused {
            status: StatusCode::NOT_FOUND,
            sentence: "there is nothing here".to_owned(),
        }
    }

    /// How the answer is marked.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Problem::LoggedOut => StatusCode::UNAUTHORIZED,
            Problem::Forged => StatusCode::FORBIDDEN,
            Problem::Unreadable(_) => StatusCode::BAD_REQUEST,
            Problem::Refused { status, .. } => *status,
            Problem::Unreachable { .. } | Problem::Nowhere(_) => StatusCode::BAD_GATEWAY,
            Problem::Crowded => StatusCode::SERVICE_UNAVAILABLE,
            Problem::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Problem::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// `Retry-After`, where it is known when the same may be asked again.
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
            | Problem::Nowhere(_)
            | Problem::Crowded
            | Problem::Broken(_) => None,
        }
    }

    /// What it is, in a few words.
    fn title(&self) -> &'static str {
        match self {
            Problem::LoggedOut => "Log in first",
            Problem::Forged => "The form was refused",
            Problem::Unreadable(_) => "That cannot be read",
            Problem::Refused { status: StatusCode::NOT_FOUND, .. } => "Not found",
            Problem::Refused { status: StatusCode::FORBIDDEN, .. } => "You may not do that",
            Problem::Refused { .. } => "That was refused",
            Problem::Unreachable { .. } | Problem::Nowhere(_) => "A service does not answer",
            Problem::Crowded => "Too many pages are followed",
            Problem::TooMany { .. } => "Too many passwords were wrong",
            Problem::Broken(_) => "The console failed",
        }
    }
}

impl IntoResponse for Problem {
    /// The status and the problem itself, of which [`explain`] makes a page.
    fn into_response(self) -> Response {
        let mut answer = self.status().into_response();
        answer.extensions_mut().insert(self);
        answer
    }
}

/// Makes pages of problems, and brings who has to log in to where that is done.
pub(crate) async fn explain(
    State(console): State<Console>,
    request: Request,
    next: Next,
) -> Response {
    let visit = Visit::of(&console, &request);
    let target = request.uri().path_and_query().map_or("/", |it| it.as_str()).to_owned();
    let is_page = request.method() == http::Method::GET;
    let mut answer = next.run(request).await;
    let Some(problem) = answer.extensions_mut().remove::<Problem>() else { return answer };
    let Ok(visit) = visit else { return answer };
    // Who follows a page is not led elsewhere: the stream just ends.
    if matches!(problem, Problem::LoggedOut) && !visit.target.starts_with("/live") {
        let target = if is_page { target } else { "/".to_owned() };
        let next = encoded(&target);
        return Redirect::to(&format!("/login?next={next}")).into_response();
    }
    let page = visit.page("problem.html", problem.title()).put("sentence", problem.to_string());
    let status = problem.status();
    match visit.show(&console, page) {
        Ok(shown) => (status, problem.retry_after(), shown).into_response(),
        Err(_) => answer,
    }
}
