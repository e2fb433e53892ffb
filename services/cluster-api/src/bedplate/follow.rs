//! A cluster's events as Server-Sent Events (WHATWG HTML, 9.2).
//!
//! An event's id is the number it was written under, so a client that comes again with it as `Last-Event-ID` misses
//! nothing and gets nothing twice, among the events that the store still keeps. Its name is its severity, its data what
//! the list shows. The last event is called `gone`.
//!
//! A stream ends as well when it is time to ask Keystone again whether its caller may: whoever comes again is asked as anybody is.

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
use openstack_api::{ApiError, Caller, Crowd, Place};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::events::shown;
use crate::app::App;
use crate::error::Error;

/// So many events are read at once.
const PAGE: u32 = 100;
/// How often the store is looked at, for another process may have written.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a stream says that it is alive, so that no proxy thinks otherwise.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long Keystone's word for a caller holds at most.
const BELIEVED: Duration = Duration::from_mins(5);

/// Those who follow events. Clones are the same.
#[derive(Clone)]
pub struct Streams {
    at_most: u32,
    heartbeat: Duration,
    room: Arc<Semaphore>,
    each_at_most: u32,
    crowd: Crowd,
    ending: CancellationToken,
}

impl Streams {
    /// Room for so many at once.
    pub fn at_most(at_most: u32) -> Self {
        Streams {
            at_most,
            heartbeat: HEARTBEAT,
            room: Arc::new(Semaphore::new(at_most as usize)),
            each_at_most: at_most,
            crowd: Crowd::default(),
            ending: CancellationToken::new(),
        }
    }

    /// These, of which one caller has so many at most; where nobody is asked for a name, all may be one caller's.
    pub fn for_each(self, each_at_most: u32) -> Self {
        Streams { each_at_most, ..self }
    }

    /// A place among them.
    fn enter(&self, caller: &Caller) -> Result<(OwnedSemaphorePermit, Option<Place>), ApiError> {
        let full = |whose: &str, at_most: u32| {
            let why = format!(
                "{at_most} streams of events{whose} are open, and that is all there may be; end one, or ask for the list"
            );
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why)
        };
        let enter = |who| self.crowd.enter(who, self.each_at_most as usize);
        let own = caller.user().map(|who| enter(who).ok_or(())).transpose();
        let own = own.map_err(|()| full(" of yours", self.each_at_most))?;
        let place = self.room.clone().try_acquire_owned();
        Ok((place.map_err(|_| full("", self.at_most))?, own))
    }

    /// These, each of which says so often that it is alive.
    pub fn with_heartbeat(self, heartbeat: Duration) -> Self {
        Streams { heartbeat, ..self }
    }

    /// Ends them all, and those that come: the service is about to stop.
    pub fn end(&self) {
        self.ending.cancel();
    }
}

/// Whether `Accept` names the type of streams.
pub(super) fn is_asked(headers: &HeaderMap) -> bool {
    let named = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let is_it = parts.next().is_some_and(|it| it.eq_ignore_ascii_case("text/event-stream"));
        is_it && !parts.any(|it| matches!(it, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    };
    let all = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    all.flat_map(|it| it.split(',')).any(named)
}

/// The events of `cluster` from the first that is kept, or from the one after `Last-Event-ID`, until it is gone.
pub(super) fn answer(
    app: &App,
    caller: &Caller,
    cluster: &Cluster,
    headers: &HeaderMap,
) -> Result<Response, Error> {
    let streams = &app.streams;
    let place = streams.enter(caller)?;
    let following = Following {
        // First of all, so that nothing is written unheard between a look and this.
        listener: app.store.listen(cluster.id),
        after: last_event_id(headers)?,
        cluster: cluster.clone(),
        app: app.clone(),
        page: VecDeque::new(),
        believed: caller.lasts((app.clock)()).map(|it| Instant::now() + it.min(BELIEVED)),
        is_over: false,
        _place: place,
    };
    let stream = unfold(following, |mut following| async move {
        let next = following.next().await?;
        Some((next, following))
    });
    let alive = KeepAlive::new().interval(streams.heartbeat);
    // nginx would keep events back until its buffer is full.
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((unbuffered, Sse::new(stream).keep_alive(alive)).into_response())
}

/// The number of the last event that the client has; 0 before the first.
fn last_event_id(headers: &HeaderMap) -> Result<i64, ApiError> {
    let Some(raw) = headers.get("last-event-id") else { return Ok(0) };
    let read = raw.to_str().ok().and_then(|raw| raw.parse::<i64>().ok());
    let wrong =
        || ApiError::bad_field("Last-Event-ID", "it must be the id of an event of a stream");
    read.filter(|number| *number >= 0).ok_or_else(wrong)
}

/// Where one client is.
struct Following {
    app: App,
    cluster: Cluster,
    listener: Listener,
    /// The number of the last event that was sent.
    after: i64,
    /// What was read and not sent.
    page: VecDeque<(i64, Event)>,
    /// Until when the caller is taken for who it was; for ever, where it is `None`.
    believed: Option<Instant>,
    is_over: bool,
    _place: (OwnedSemaphorePermit, Option<Place>),
}

impl Following {
    /// The next event, once there is one; `None` after the last.
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

    /// That the cluster is no more. It is in no store, so it has no number.
    fn gone(&self) -> Event {
        Event {
            id: None,
            cluster: self.cluster.id,
            at: (self.app.clock)(),
            severity: Severity::Info,
            reason: "Gone".to_owned(),
            message: format!("cluster {} is gone, and its events with it", self.cluster.name),
        }
    }
}
