//! Asks clusterd whether a node's compute host may be taken out of use, and starts the drain for the end of a lease.

use baremetal_core::{DrainOwner, DrainSeen, Node, compute_host, drain_noted};
use tracing::warn;

use crate::conductor::Conductor;
use crate::context::TurnContext;

/// Why a node must not be taken out of use now.
#[derive(Debug, thiserror::Error)]
pub enum TakeOutRefused {
    /// A cluster would lose its quorum.
    #[error("node {node} is compute host {host}: {why}")]
    Refused {
        node: String,
        /// The name of the compute host.
        host: String,
        /// The reason in clusterd's words.
        why: String,
    },
    /// Servers may run on the host.
    #[error(
        "node {node} is compute host {host}, which is not drained{}; drain it first (`bedplate drain {host} --wait`), or name {host} in force",
        so_far(*left)
    )]
    Occupied {
        node: String,
        /// The name of the compute host.
        host: String,
        /// The number of servers left, or 0 if the drain has not counted them yet.
        left: usize,
    },
    /// clusterd does not answer, so nobody knows what runs on the host.
    #[error(
        "node {node} is compute host {host}, and clusterd did not say whether the host may be taken out: {why}; name {host} in force to skip this check"
    )]
    Unknown {
        node: String,
        /// The name of the compute host.
        host: String,
        why: String,
    },
}

/// Returns the progress of a drain as a part of a message; empty if the drain has not counted yet.
fn so_far(left: usize) -> String {
    match left {
        0 => String::new(),
        1 => ": 1 server is on it".to_owned(),
        many => format!(": {many} servers are on it"),
    }
}

impl Conductor {
    /// Returns the name of the compute host that has to be drained before the node is taken out. Returns `None` if no clusterd is
    /// configured, the node is not a compute host, or `forced` contains the host's name.
    pub fn host_to_drain(&self, node: &Node, forced: &[String]) -> Option<String> {
        self.context.settings.clusters.as_ref()?;
        let host = compute_host(node)?;
        if forced.iter().any(|name| name == host) {
            warn!(node.id = %node.id, "node {} is taken out by force without asking clusterd about host {host}", node.label());
            return None;
        }
        Some(host.to_owned())
    }

    /// Asks clusterd whether the node's host may be drained, without changing anything. `forced` contains clusters that may lose their
    /// quorum. If it contains the host's own name, clusterd is not asked.
    ///
    /// # Errors
    ///
    /// Fails if the host may not be drained, or if clusterd does not answer.
    pub async fn check_leave(&self, node: &Node, forced: &[String]) -> Result<(), TakeOutRefused> {
        match self.look_at_host(node, forced).await {
            Ok(()) | Err(TakeOutRefused::Occupied { .. }) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Asks clusterd whether the node's host is drained, without changing anything.
    ///
    /// # Errors
    ///
    /// Fails if the host is not drained, or if clusterd does not answer.
    pub async fn check_drained(
        &self,
        node: &Node,
        forced: &[String],
    ) -> Result<(), TakeOutRefused> {
        self.look_at_host(node, forced).await
    }

    async fn look_at_host(&self, node: &Node, forced: &[String]) -> Result<(), TakeOutRefused> {
        let Some(clusters) = &self.context.settings.clusters else { return Ok(()) };
        let Some(host) = self.host_to_drain(node, forced) else { return Ok(()) };
        let seen = clusters.check(&host, forced).await;
        check_drain_state(node, host, seen)
    }
}

impl TurnContext {
    /// Starts the drain of the node's compute host for the end of its lease, and checks whether the node may be taken out now. If the drain
    /// is not in the node's record yet, starts nothing and returns the node to record: without the record nobody would end the drain when
    /// the lease goes on.
    pub(crate) async fn drain_and_check(
        &self,
        node: &Node,
    ) -> Result<Option<Node>, TakeOutRefused> {
        let Some(clusters) = &self.settings.clusters else { return Ok(None) };
        let Some(host) = compute_host(node) else { return Ok(None) };
        let noted = node.lending.as_ref().and_then(|lending| lending.drain.as_ref());
        let seen = if noted.is_some_and(|drain| drain.host == host) {
            let asking = clusters.drain(host, &[]);
            self.store.tripwire().around("clusterd: drain", asking).await
        } else {
            let seen = clusters.show(host).await;
            if let Some(owner) = DrainOwner::of(&seen) {
                return Ok(Some(drain_noted(node, host, owner)));
            }
            seen
        };
        check_drain_state(node, host.to_owned(), seen).map(|()| None)
    }
}

/// Checks whether the machine of `node` may be taken out, given clusterd's answer about `host`.
fn check_drain_state(node: &Node, host: String, seen: DrainSeen) -> Result<(), TakeOutRefused> {
    let node = node.label();
    match seen {
        DrainSeen::NoHost | DrainSeen::Drained => Ok(()),
        DrainSeen::NotDrained | DrainSeen::Ending => {
            Err(TakeOutRefused::Occupied { node, host, left: 0 })
        }
        DrainSeen::Draining(left) | DrainSeen::Stuck(left, _) => {
            Err(TakeOutRefused::Occupied { node, host, left })
        }
        DrainSeen::Refused(why) => Err(TakeOutRefused::Refused { node, host, why }),
        DrainSeen::Unknown(why) => Err(TakeOutRefused::Unknown { node, host, why }),
    }
}
