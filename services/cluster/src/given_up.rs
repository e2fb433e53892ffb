//! What becomes of notices that could not be sent: the thing they are about says so.

use cluster_core::{Event, Severity};
use cluster_store::{Store, StoreError};
use jiff::Timestamp;
use notices::{GivenUp, Notice};
use tracing::warn;

/// Writes an event of what was given up.
pub(crate) struct AsEvent(pub(crate) Store);

impl GivenUp for AsEvent {
    async fn given_up(&self, notice: &Notice, why: &str) -> Result<(), StoreError> {
        warn!(notice.id = %notice.id, "a notice of {} was given up: {why}", notice.event);
        let Some(cluster) = notice.about.id.parse().ok().filter(|_| notice.about.kind == "cluster")
        else {
            return Ok(());
        };
        let event = Event {
            id: None,
            cluster,
            at: Timestamp::now(),
            severity: Severity::Warning,
            reason: "NoticeGivenUp".to_owned(),
            message: format!("the notice {:?} was given up: {why}", notice.event),
        };
        match self.0.append_events(cluster, &[event]).await {
            // It is gone, and nobody asks any more.
            Err(StoreError::NoOwner { .. }) => Ok(()),
            written => written,
        }
    }
}
