//! Records of a service that its API does not show.

use baremetal_core::{NodeIdent, NodeUuid};
use baremetal_store::Store;
use jiff::{SignedDuration, Timestamp};
use newtype_uuid::GenericUuid;

use crate::lab::Lab;
use crate::node::Node;

impl Lab {
    /// Returns whether the node's record holds a request that waits for the drain of its compute host, or the end of such a drain.
    pub async fn awaits_drain(&self, node: Node) -> bool {
        let ident = NodeIdent::Id(NodeUuid::from_untyped_uuid(node.0));
        let found = self.records().await.find_node(&ident).await.expect("the record can be read");
        found.is_some_and(|node| node.leaving.is_some())
    }

    /// Returns the number of notices that wait to be sent, at most a hundred.
    pub async fn waiting_notices(&self) -> usize {
        let outbox = self.records().await.outbox();
        let waiting = outbox.due(Timestamp::MAX, SignedDuration::ZERO, 100).await;
        waiting.expect("the outbox can be read").len()
    }

    /// Returns the number of notifications that could be sent to a webhook now, at most a hundred.
    pub async fn waiting_notifications(&self, webhook: &str) -> usize {
        let outbox = self.records().await.webhook_outbox();
        let waiting = outbox.due(webhook, Timestamp::MAX, SignedDuration::ZERO, 100).await;
        waiting.expect("the outbox can be read").len()
    }

    async fn records(&self) -> &Store {
        let url = format!("sqlite://{}", self.folder.path().join("state/baremetal.db").display());
        let opened = self.records.get_or_try_init(|| Store::open(&url)).await;
        opened.expect("the database can be read")
    }
}
