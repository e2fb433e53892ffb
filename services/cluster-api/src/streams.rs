//! The limits of open event streams.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use openstack_api::{ApiError, Caller, Place, PlaceCounts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// How often a stream sends a comment, so that no proxy closes it as idle.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The place of one open stream among all, and among those of the same caller unless the caller is anonymous. Dropping it frees the place.
pub(crate) type StreamPlace = (OwnedSemaphorePermit, Option<Place>);

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
    pub(crate) fn enter(&self, caller: &Caller) -> Result<StreamPlace, ApiError> {
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

    pub(crate) fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// Waits until all streams must end.
    pub(crate) async fn ended(&self) {
        self.ending.cancelled().await;
    }

    /// Ends all streams and every new stream, because the service is about to stop.
    pub fn end(&self) {
        self.ending.cancel();
    }
}
