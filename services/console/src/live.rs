//! `/live`: sends the live part of a page as Server-Sent Events (WHATWG HTML, 9.2) whenever the part changed.
//!
//! The console renders the page again with the same code and for the same user as a browser's request, so an event can show nothing that
//! the page would not show. The interval depends on the rendering time: a live page uses at most a tenth of the time.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use http::StatusCode;
use serde::Deserialize;
use tower::ServiceExt;

use crate::config::Access;
use crate::live_page_registry::{Place, REPLACED};
use crate::page_request::PageRequest;
use crate::problem::{Problem, Result};
use crate::state::Console;

/// The interval for a page that renders quickly.
const RENDER_EVERY: Duration = Duration::from_secs(1);
/// After rendering, the next rendering waits for this multiple of the rendering time.
const REST: u32 = 9;
/// The largest page that is followed, in bytes.
const LARGEST: usize = 4 << 20;

#[derive(Deserialize)]
pub(crate) struct LiveQuery {
    page: String,
}

struct LivePage {
    console: Console,
    pages: Router,
    page_request: PageRequest,
    sent: String,
    next: Instant,
    /// Whether a newer page took the place.
    is_replaced: bool,
    is_over: bool,
    place: Place,
}

/// `GET /live?page=/…`: streams a page.
pub(crate) async fn follow(
    console: Console,
    pages: Router,
    page_request: PageRequest,
    Query(wanted): Query<LiveQuery>,
) -> Result<Response> {
    if page_request.session.is_none() && *console.access() != Access::None {
        return Err(Problem::LoggedOut);
    }
    if !wanted.page.starts_with('/') || wanted.page.starts_with("//") {
        return Err(Problem::nothing_here());
    }
    let place = console.live_pages().enter(page_request.live_page_owner(&console))?;
    let page = LivePage {
        page_request: PageRequest { is_live: true, target: wanted.page, ..page_request },
        console,
        pages,
        sent: String::new(),
        next: Instant::now(),
        is_replaced: false,
        is_over: false,
        place,
    };
    let events = unfold(page, |mut page| async move {
        let event = page.event().await?;
        Some((Ok::<_, Infallible>(event), page))
    });
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((unbuffered, Sse::new(events).keep_alive(KeepAlive::new())).into_response())
}

impl LivePage {
    /// Waits for the next event: the changed live part, or the end of the stream.
    async fn event(&mut self) -> Option<Event> {
        loop {
            if self.is_over {
                return None;
            }
            if self.is_replaced {
                self.is_over = true;
                return Some(last_event());
            }
            tokio::select! {
                () = self.console.ending().cancelled() => return None,
                () = self.place.replaced(), if !self.is_replaced => {
                    self.is_replaced = true;
                    let notice = format!("<div class=\"notice warn\"><p>{REPLACED}</p></div>");
                    return Some(Event::default().event("live").data(notice + &self.sent));
                }
                () = tokio::time::sleep_until(self.next.into()) => {}
            }
            let begun = Instant::now();
            let rendered = match self.console.sessions().peek(&self.page_request.cookie).await {
                Ok(session) => {
                    self.page_request.session = session;
                    self.render().await
                }
                Err(_) => RenderResult::Unavailable,
            };
            self.next = begun + RENDER_EVERY.max(begun.elapsed() * (REST + 1));
            match rendered {
                RenderResult::Page(page) if page == self.sent => {}
                RenderResult::Page(page) => {
                    self.sent = page;
                    return Some(Event::default().event("live").data(&self.sent));
                }
                RenderResult::Unavailable => {}
                RenderResult::Ended => {
                    self.is_over = true;
                    return Some(last_event());
                }
            }
        }
    }

    async fn render(&self) -> RenderResult {
        let Ok(mut request) = Request::get(&self.page_request.target).body(Body::empty()) else {
            return RenderResult::Ended;
        };
        request.extensions_mut().insert(self.page_request.clone());
        let answer: Result<Response, Infallible> = self.pages.clone().oneshot(request).await;
        let Ok(answer) = answer;
        match answer.status() {
            StatusCode::OK => match axum::body::to_bytes(answer.into_body(), LARGEST).await {
                // A carriage return would end a line of the event.
                Ok(body) => RenderResult::Page(String::from_utf8_lossy(&body).replace('\r', "")),
                Err(_) => RenderResult::Ended,
            },
            status if status.is_server_error() => RenderResult::Unavailable,
            _ => RenderResult::Ended,
        }
    }
}

/// The last event: the browser does not reconnect after it.
fn last_event() -> Event {
    Event::default().event("over").data("over")
}

enum RenderResult {
    /// The page as HTML.
    Page(String),
    /// A service does not answer; the page stays as it was.
    Unavailable,
    /// The page is gone, or the user is logged out.
    Ended,
}
