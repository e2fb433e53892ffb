//! Events of a cluster as Server-Sent Events (WHATWG HTML, 9.2).
//!
//! The id of an event is the number under which the store wrote the event. A client that reconnects with `Last-Event-ID` therefore misses
//! no event that the store still has, and gets no event twice. The name of an event is its severity, and its data is the event as the list
//! shows it. The last event of a stream is named `gone`.
//!
//! A stream also ends when the caller's token has to be checked again with Keystone: the reconnection is authenticated like any request.

use std::collections::VecDeque;
use std::time::Duration;

use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use cluster_core::{Cluster, Event, Severity};
use cluster_store::Listener;
use futures::stream::unfold;
use http::HeaderMap;
use http::header::ACCEPT;
use openstack_api::ApiError;
use tokio::time::Instant;

use crate::app::App;
use crate::error::Result;
use crate::event::Shown;
use crate::request::Request;
use crate::streams::StreamPlace;

/// The number of events that one read returns.
const PAGE: u32 = 100;
/// How often the store is read without a notification, because another process may have written events.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The maximum time for which one check of the caller's token is trusted.
const BELIEVED: Duration = Duration::from_mins(5);

pub(super) fn accepts_event_stream(headers: &HeaderMap) -> bool {
    let named = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let is_it = parts.next().is_some_and(|it| it.eq_ignore_ascii_case("text/event-stream"));
        is_it && !parts.any(|it| matches!(it, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    };
    let all = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    all.flat_map(|it| it.split(',')).any(named)
}

/// Streams the events of `cluster` from the first that the store still has, or from the one after `Last-Event-ID`, until the cluster is
/// gone.
pub(super) fn answer(
    request: &Request,
    cluster: &Cluster,
    headers: &HeaderMap,
) -> Result<Response> {
    let streams = &request.app.streams;
    let place = streams.enter(&request.caller)?;
    let following = EventStream {
        // The listener comes before the first read: an event that is written between the two would not be noticed otherwise.
        listener: request.app.store.listen(cluster.id),
        after: last_event_id(headers)?,
        cluster: cluster.clone(),
        app: request.app.clone(),
        page: VecDeque::new(),
        believed: request
            .caller
            .remaining_validity((request.app.clock)())
            .map(|it| Instant::now() + it.min(BELIEVED)),
        is_over: false,
        _place: place,
    };
    let stream = unfold(following, |mut following| async move {
        let next = following.next().await?;
        Some((next, following))
    });
    let alive = KeepAlive::new().interval(streams.heartbeat());
    // nginx would hold events back until its buffer is full.
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((unbuffered, Sse::new(stream).keep_alive(alive)).into_response())
}

/// The number of the last event that the client has; 0 before the first event.
fn last_event_id(headers: &HeaderMap) -> Result<i64, ApiError> {
    let Some(raw) = headers.get("last-event-id") else { return Ok(0) };
    let read = raw.to_str().ok().and_then(|raw| raw.parse::<i64>().ok());
    let wrong = || ApiError::bad_field("Last-Event-ID", "must be the id of an event from a stream");
    read.filter(|number| *number >= 0).ok_or_else(wrong)
}

/// The position of one client in the events of a cluster.
struct EventStream {
    app: App,
    cluster: Cluster,
    listener: Listener,
    /// The number of the last event that was sent.
    after: i64,
    /// Events that were read and not sent yet.
    page: VecDeque<(i64, Event)>,
    /// When the caller's token has to be checked again; `None` means never.
    believed: Option<Instant>,
    is_over: bool,
    _place: StreamPlace,
}

impl EventStream {
    /// Waits for the next event; `None` after the last one.
    async fn next(&mut self) -> Option<Result<sse::Event, axum::Error>> {
        while !self.is_over && self.believed.is_none_or(|until| Instant::now() < until) {
            if let Some((number, event)) = self.page.pop_front() {
                self.after = number;
                let named = sse::Event::default().id(number.to_string());
                return Some(named.event(event.severity.as_str()).json_data(Shown::from(&event)));
            }
            match self.app.store.events_after(self.cluster.id, self.after, PAGE).await {
                Ok(Some(page)) => self.page = page.into(),
                Ok(None) => {
                    self.is_over = true;
                    return Some(
                        sse::Event::default().event("gone").json_data(Shown::from(&self.gone())),
                    );
                }
                Err(error) => {
                    tracing::warn!(cluster.id = %self.cluster.id, "cannot read events: {error}");
                }
            }
            if self.page.is_empty() {
                tokio::select! {
                    () = self.app.streams.ended() => return None,
                    () = self.listener.heard() => {}
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
            }
        }
        None
    }

    /// The event that the cluster is gone. The store has no such event, so the event has no number.
    fn gone(&self) -> Event {
        Event {
            id: None,
            cluster: self.cluster.id,
            at: (self.app.clock)(),
            severity: Severity::Info,
            reason: "Gone".to_owned(),
            message: format!("cluster {} was deleted together with its events", self.cluster.name),
        }
    }
}
