//! Notices that could not be delivered are recorded in the history of their node.

use baremetal_conductor::Conductor;
use baremetal_core::{HistoryEntry, NodeIdent};
use baremetal_store::{Store, StoreError};
use jiff::Timestamp;
use notices::{Notice, RecordGivenUp};
use tracing::warn;

/// Adds an entry to the history of the notice's node.
pub(crate) struct HistoryOfUndelivered {
    pub(crate) store: Store,
    pub(crate) conductor: Conductor,
}

impl RecordGivenUp for HistoryOfUndelivered {
    fn may_send(&self) -> bool {
        self.conductor.has_task("notices")
    }

    async fn given_up(&self, letter: i64, notice: &Notice, why: &str) -> Result<(), StoreError> {
        warn!(notice.id = %notice.id, "giving up the notice {}: {why}", notice.event);
        let node = match notice.about.id.parse() {
            // The history of a deleted node does not exist any more, so nothing is recorded.
            Ok(id) => self.store.find_node(&NodeIdent::Id(id)).await?,
            Err(_) => None,
        };
        let reported = format!("the notice {:?} could not be delivered: {why}", notice.event);
        let line = node.map(|node| HistoryEntry::failed(&node, &node, reported, Timestamp::now()));
        self.store.give_up_notice(letter, line.as_ref()).await
    }
}
