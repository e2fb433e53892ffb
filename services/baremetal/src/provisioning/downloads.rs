//! How many machines load the kernel and the ramdisk at the same time.
//!
//! A transfer needs a few hundred KiB of buffers, and its turns on the processors delay the API. When a site is switched on, thousands of
//! machines end their self-tests at the same time. A few transfers already fill the network, so the others lose nothing by waiting.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How many machines load a file at the same time.
const AT_ONCE: usize = 64;
/// How long a machine waits. Slow machines could have all places for minutes, and iPXE must not give up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The places of downloads.
pub struct Downloads {
    room: Arc<Semaphore>,
}

impl Default for Downloads {
    fn default() -> Self {
        Downloads::at_once(AT_ONCE)
    }
}

impl Downloads {
    fn at_once(most: usize) -> Self {
        Downloads { room: Arc::new(Semaphore::new(most)) }
    }

    /// Waits for a place. Returns `None` if no place is free for a long time; the download then begins without one.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        timeout(PATIENCE, self.room.clone().acquire_owned()).await.ok()?.ok()
    }
}

/// Returns the response, whose body has the place until its end.
pub(super) fn holding(response: Response, place: Option<OwnedSemaphorePermit>) -> Response {
    let Some(place) = place.filter(|_| response.status().is_success()) else { return response };
    response.map(|body| {
        let chunks = body.into_data_stream().map(move |chunk| {
            let _held = &place;
            chunk
        });
        Body::from_stream(chunks)
    })
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_download_waits_for_a_place_but_not_for_ever() {
        let downloads = Downloads::at_once(1);
        let first = downloads.place().await;
        assert!(first.is_some());
        assert!(downloads.place().await.is_none());
        drop(holding(Response::new(Body::from("kernel")), first));
        assert!(downloads.place().await.is_some());
    }

    #[tokio::test]
    async fn a_download_has_its_place_until_its_end() {
        let downloads = Downloads::at_once(1);
        let answer = holding(Response::new(Body::from("kernel")), downloads.place().await);
        assert_eq!(downloads.room.available_permits(), 0);
        let bytes = to_bytes(answer.into_body(), 100).await.unwrap();
        assert_eq!((&*bytes, downloads.room.available_permits()), (&b"kernel"[..], 1));
    }
}
