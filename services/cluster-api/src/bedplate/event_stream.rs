//! Events of a cluster as Server-Sent Events (WHATWG HTML, 9.2).
//!
//! The id of an event is the number under which the store wrote the event. A client that reconnects with `Last-Event-ID` therefore misses
//! no event that the store still has, and gets no event twice. The name of an event is its severity, and its data is the event as the list
//! shows it. The last event of a stream is named `gone`.
//!
//! A stream also ends when the caller's token has to be checked again with Keystone: the reconnection is authenticated like any request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use cluster_core::{Cluster, Event, Severity};
use cluster_store::Listener;
use futures::stream::unfold;
use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};
use openstack_api::{ApiError, Caller, Place, PlaceCounts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::events::shown;
use crate::app::App;
use crate::error::Error;

/// The number of events that one read returns.
const PAGE: u32 = 100;
/// How often the store is read without a notification, because another process may have written events.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a stream sends a comment, so that no proxy closes it as idle.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The maximum time for which one check of the caller's token is trusted.
const BELIEVED: Duration = Duration::from_mins(5);

/// The open event streams. Clones share their limits.
#[derive(Clone)]
pub struct Streams {
    at_most: u32,
    heartbeat: Duration,
    room: Arc<Semaphore>,
    each_at_most: u32,
    crowd: PlaceCounts,
    ending: CancellationToken,
}

impl Streams {
    /// Permits at most so many streams at once.
    pub fn at_most(at_most: u32) -> Self {
        Streams {
            at_most,
            heartbeat: HEARTBEAT,
            room: Arc::new(Semaphore::new(at_most as usize)),
            each_at_most: at_most,
            crowd: PlaceCounts::default(),
            ending: CancellationToken::new(),
        }
    }

    /// Permits at most so many streams for each caller. Without authentication one anonymous caller may open all of them.
    pub fn for_each(self, each_at_most: u32) -> Self {
        Streams { each_at_most, ..self }
    }

    /// Takes a place for a new stream, or refuses it.
    fn enter(&self, caller: &Caller) -> Result<(OwnedSemaphorePermit, Option<Place>), ApiError> {
        let full = |whose: &str, at_most: u32| {
            let why = format!(
                "all {at_most} event streams{whose} are in use; close one, or request the list of events"
            );
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why)
        };
        let enter = |who| self.crowd.enter(who, self.each_at_most as usize);
        let own = caller.user().map(|who| enter(who).ok_or(())).transpose();
        let own = own.map_err(|()| full(" that you may open", self.each_at_most))?;
        let place = self.room.clone().try_acquire_owned();
        Ok((place.map_err(|_| full("", self.at_most))?, own))
    }

    /// Sets the interval of heartbeats.
    pub fn with_heartbeat(self, heartbeat: Duration) -> Self {
        Streams { heartbeat, ..self }
    }

    /// Ends all streams and every new stream, because the service is about to stop.
    pub fn end(&self) {
        self.ending.cancel();
    }
}

/// Whether `Accept` asks for an event stream.
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
    app: &App,
    caller: &Caller,
    cluster: &Cluster,
    headers: &HeaderMap,
) -> Result<Response, Error> {
    let streams = &app.streams;
    let place = streams.enter(caller)?;
    let following = EventStream {
        // The listener comes before the first read: an event that is written between the two would not be noticed otherwise.
        listener: app.store.listen(cluster.id),
        after: last_event_id(headers)?,
        cluster: cluster.clone(),
        app: app.clone(),
        page: VecDeque::new(),
        believed: caller
            .remaining_validity((app.clock)())
            .map(|it| Instant::now() + it.min(BELIEVED)),
        is_over: false,
        _place: place,
    };
    let stream = unfold(following, |mut following| async move {
        let next = following.next().await?;
        Some((next, following))
    });
    let alive = KeepAlive::new().interval(streams.heartbeat);
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
    _place: (OwnedSemaphorePermit, Option<Place>),
}

impl EventStream {
    /// Waits for the next event; `None` after the last one.
    async fn next(&mut self) -> Option<Result<sse::Event, axum::Error>> {
        while !self.is_over && self.believed.is_none_or(|until| Instant::now() < until) {
            if let Some((number, event)) = self.page.pop_front() {
                self.after = number;
                let named = sse::Event::default().id(number.to_string());
                return Some(named.event(event.severity.as_str()).json_data(shown(&event)));
            }
            match self.app.store.events_after(self.cluster.id, self.after, PAGE).await {
                Ok(Some(page)) => self.page = page.into(),
                Ok(None) => {
                    self.is_over = true;
                    return Some(
                        sse::Event::default().event("gone").json_data(shown(&self.gone())),
                    );
                }
                Err(error) => {
                    tracing::warn!(cluster.id = %self.cluster.id, "cannot read events: {error}");
                }
            }
            if self.page.is_empty() {
                tokio::select! {
                    () = self.app.streams.ending.cancelled() => return None,
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
