//! The visitor of a page: the cookie, its session, and the values that every page gets from both.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use http::header::{COOKIE, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::api::{Api, BackendService};
use crate::config::Access;
use crate::guard;
use crate::live_page_registry::LivePageOwner;
use crate::problem::{Problem, Result};
use crate::session::Session;
use crate::state::Console;
use crate::view::Page;

#[derive(Clone, Debug)]
pub(crate) struct PageRequest {
    /// The cookie that the browser sent, or that the response sets.
    pub(crate) cookie: String,
    pub(crate) session: Option<Arc<Session>>,
    /// Whether the page is rendered for a live update: only its live part.
    pub(crate) is_live: bool,
    /// The path of the request, with its query.
    pub(crate) target: String,
}

/// A user who may call the services.
#[derive(Clone)]
pub(crate) struct AuthorizedUser {
    pub(crate) page_request: PageRequest,
    console: Console,
}

impl PageRequest {
    /// Returns the page request that [`attach_page_request`] attached to a request.
    pub(crate) fn of(request: &Request) -> Result<PageRequest> {
        request.extensions().get::<PageRequest>().cloned().ok_or_else(missing_page_request)
    }

    /// Makes a page that answers this request.
    pub(crate) fn page(&self, template: &'static str, title: &str) -> Page {
        Page::new(template, title)
    }

    /// The owner of the live pages that follow this request.
    pub(crate) fn live_page_owner(&self, console: &Console) -> LivePageOwner {
        LivePageOwner {
            account: self.session.as_ref().map(|session| session.account.clone()),
            // A digest of the cookie is enough here, and is worthless to anyone who reads it.
            session: console.guard().token(&self.cookie),
        }
    }

    /// Renders a page: the whole page, or only its live part if the request asks for it.
    pub(crate) fn show(&self, console: &Console, page: Page) -> Result<Html<String>> {
        let session = self.session.as_deref();
        let asks_for_names = *console.access() != Access::None;
        let page = page
            .put("is_live", self.is_live)
            .put("token", console.guard().token(&self.cookie))
            .put("who", session.map(|it| it.name.as_str()))
            .put("project", session.and_then(|it| it.project.as_deref()))
            .put("asks_for_names", asks_for_names)
            .put("is_in", session.is_some() || !asks_for_names);
        page.render(console.engine(), &self.target).map(Html)
    }
}

fn missing_page_request() -> Problem {
    Problem::Internal("a request has no page request attached".to_owned())
}

impl<S: Send + Sync> FromRequestParts<S> for PageRequest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        parts.extensions.get::<PageRequest>().cloned().ok_or_else(missing_page_request)
    }
}

impl FromRequestParts<Console> for AuthorizedUser {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self> {
        let page_request = PageRequest::from_request_parts(parts, console).await?;
        if page_request.session.is_none() && *console.access() != Access::None {
            return Err(Problem::LoggedOut);
        }
        Ok(AuthorizedUser { page_request, console: console.clone() })
    }
}

impl AuthorizedUser {
    pub(crate) fn baremetald(&self) -> Result<Api> {
        self.console.api(BackendService::Baremetald, self.page_request.session.clone())
    }

    pub(crate) fn clusterd(&self) -> Result<Api> {
        self.console.api(BackendService::Clusterd, self.page_request.session.clone())
    }

    pub(crate) fn page(&self, template: &'static str, title: &str) -> Page {
        self.page_request.page(template, title)
    }

    pub(crate) fn show(&self, page: Page) -> Result<Response> {
        Ok(self.page_request.show(&self.console, page)?.into_response())
    }

    /// Renders a form again after a refusal, with the refusal's status and reason.
    pub(crate) fn show_again(&self, page: Page, why: &Problem) -> Result<Response> {
        let page = page.put("refused", why.to_string());
        Ok((why.status(), self.page_request.show(&self.console, page)?).into_response())
    }
}

/// Attaches the page request to a request before any other code reads it. Sets a cookie if the browser sent none.
pub(crate) async fn attach_page_request(
    State(console): State<Console>,
    mut request: Request,
    next: Next,
) -> Response {
    if *console.access() == Access::None && !guard::is_loopback(request.headers()) {
        let why = "without passwords the console serves only this computer: open it at localhost or a loopback address";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let shown = cookie(request.headers(), console.cookie_name());
    let (cookie, is_new) = match shown {
        Some(cookie) => (cookie, false),
        None => match console.guard().cookie() {
            Ok(cookie) => (cookie, true),
            Err(why) => {
                return (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()).into_response();
            }
        },
    };
    let target = request.uri().path_and_query().map_or("/", |it| it.as_str()).to_owned();
    // A live page must not keep its user logged in.
    let is_own = !target.starts_with("/live");
    let sessions = console.sessions();
    let found = if is_own { sessions.find(&cookie).await } else { sessions.peek(&cookie).await };
    let session = match found {
        Ok(session) => session,
        Err(why) => return (why.status(), why.to_string()).into_response(),
    };
    let given = is_new.then(|| console.set_cookie(&cookie));
    request.extensions_mut().insert(PageRequest { cookie, session, is_live: false, target });
    let mut answer = next.run(request).await;
    if let Some(given) = given
        && !answer.headers().contains_key(SET_COOKIE)
    {
        append_cookie(answer.headers_mut(), &given);
    }
    answer
}

pub(crate) fn append_cookie(headers: &mut HeaderMap, cookie: &str) {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        headers.append(SET_COOKIE, value);
    }
}

/// The value of the cookie with this name, if it has the format of this console's cookies.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    let pairs =
        all.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let is_ours = |value: &str| value.len() == 64 && value.bytes().all(|b| b.is_ascii_hexdigit());
    pairs
        .filter(|(key, value)| *key == name && is_ours(value))
        .map(|(_, value)| value.to_owned())
        .next()
}
