//! Everything that a turn uses: the store, the BMCs, the agents, and the memory of this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use agent_protocol::Progress;
use baremetal_core::{Node, NodeFilter, NodeSort, NodeUuid, Page, RequestRefused};
use baremetal_store::{Store, StoreError};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use reconcile::{Queue, Watch};
use replicas::{LeasePassed, Membership};
use tokio::sync::Notify;

use crate::agents::Agents;
use crate::bmcs::Bmcs;
use crate::consoles::{ConsoleEnd, Consoles};
use crate::observations::ObservationCache;
use crate::rack_changes::{self, RackChanges};
use crate::secrets::ServiceKey;
use crate::settings::Settings;
use crate::turn_versions::TurnVersions;

/// How many nodes are read per query.
const PAGE: u32 = 1000;

/// Everything that a turn uses.
pub(crate) struct TurnContext {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) key: ServiceKey,
    pub(crate) bmcs: Bmcs,
    pub(crate) agents: Agents,
    pub(crate) consoles: Consoles,
    pub(crate) queue: Queue<NodeUuid>,
    pub(crate) sightings: ObservationCache,
    pub(crate) rack_changes: RackChanges,
    /// Notified when a new key seals secrets.
    pub(crate) rotated: Notify,
    pub(crate) progress: Mutex<HashMap<NodeUuid, Progress>>,
    pub(crate) turn_versions: TurnVersions,
    /// The share of this conductor in the work.
    pub(crate) membership: Membership<NodeUuid>,
    /// Timeouts count from its beginning at the earliest, because earlier events may have been missed.
    pub(crate) watch: Watch,
}

impl TurnContext {
    /// Returns the current time.
    pub(crate) fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    /// Returns the node with the secrets of its `instance_info` unsealed.
    pub(crate) fn with_instance(&self, node: &Node) -> Result<Node, RequestRefused> {
        self.store.secrets().with_instance(node).map_err(|why| RequestRefused::Field {
            field: "instance_info".to_owned(),
            problem: format!("cannot unseal its secrets: {why}"),
        })
    }

    /// Gives the node a turn soon, by the conductor that works on it.
    pub(crate) fn wake(&self, node: NodeUuid) {
        self.queue.wake(node);
        self.membership.tell_of(node);
    }

    /// Has a rack examined soon, by the conductor that brings it up.
    pub(crate) fn wake_rack(&self, name: &str) {
        self.rack_changes.note(name);
        self.membership.tell_of_task(rack_changes::task(name));
    }

    /// Runs an effect, between the hooks of a crash test, as long as the lease of this conductor lasts.
    pub(crate) async fn effect<T>(
        &self,
        name: &'static str,
        effect: impl Future<Output = T>,
    ) -> Result<T, LeasePassed> {
        let permitted = self.membership.fence().permit(effect);
        self.store.tripwire().around(name, permitted).await
    }

    /// Drops what the turns of a node remember that belongs to another conductor now.
    pub(crate) fn let_go(&self, node: NodeUuid) {
        if self.turn_versions.forget(node) {
            self.bmcs.forget(node);
            self.agents.forget(node);
            self.set_progress(node, None);
        }
    }

    /// Drops everything that is remembered about the node.
    pub(crate) fn forget(&self, node: NodeUuid) {
        self.turn_versions.forget(node);
        self.bmcs.forget(node);
        self.agents.forget(node);
        self.consoles.end(node, ConsoleEnd::Deleted);
        self.sightings.forget(node);
        self.set_progress(node, None);
    }

    pub(crate) fn set_progress(&self, node: NodeUuid, progress: Option<Progress>) {
        let mut book = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match progress {
            Some(progress) => book.insert(node, progress),
            None => book.remove(&node),
        };
    }

    /// Returns the nodes of a rack, in the order of their positions.
    pub(crate) async fn nodes_of_rack(&self, name: &str) -> Result<Vec<Node>, StoreError> {
        let filter = NodeFilter {
            rack: Some(name.to_owned()),
            include_children: true,
            ..NodeFilter::default()
        };
        self.all_nodes(&filter, NodeSort::Position).await
    }

    /// Returns all nodes that match the filter.
    pub(crate) async fn all_nodes(
        &self,
        filter: &NodeFilter,
        sort: NodeSort,
    ) -> Result<Vec<Node>, StoreError> {
        let mut nodes: Vec<Node> = Vec::new();
        loop {
            let marker = nodes.last().map(|node| node.id.into_untyped_uuid());
            let page = Page { limit: PAGE, marker, sort, descending: false };
            let more = self.store.list_nodes(filter, &page).await?;
            let last = more.len() < PAGE as usize;
            nodes.extend(more);
            if last {
                return Ok(nodes);
            }
        }
    }
}
