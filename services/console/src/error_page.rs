//! The error page: shows a problem to the user, with the navigation of the console.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use crate::api::encoded;
use crate::page_request::PageRequest;
use crate::problem::Problem;
use crate::state::Console;

/// Makes error pages of problems, and redirects users without a session to the log-in.
pub(crate) async fn explain_problems(
    State(console): State<Console>,
    request: Request,
    next: Next,
) -> Response {
    let page_request = PageRequest::of(&request);
    let target = request.uri().path_and_query().map_or("/", |it| it.as_str()).to_owned();
    let is_page = request.method() == http::Method::GET;
    let mut answer = next.run(request).await;
    let Some(problem) = answer.extensions_mut().remove::<Problem>() else { return answer };
    let Ok(page_request) = page_request else { return answer };
    // A stream is not redirected: it just ends.
    if matches!(problem, Problem::LoggedOut) && !page_request.target.starts_with("/live") {
        let target = if is_page { target } else { "/".to_owned() };
        let next = encoded(&target);
        return Redirect::to(&format!("/login?next={next}")).into_response();
    }
    let page =
        page_request.page("problem.html", problem.title()).put("sentence", problem.to_string());
    let status = problem.status();
    match page_request.show(&console, page) {
        Ok(shown) => (status, problem.retry_after(), shown).into_response(),
        Err(_) => answer,
    }
}
