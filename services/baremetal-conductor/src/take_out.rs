//! Asks clusterd whether a node's compute host may be taken out of use.

use baremetal_core::{Node, TakeOutRefused, check_take_out, compute_host};
use tracing::warn;

use crate::conductor::Conductor;

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
        check_take_out(node, &host, &seen)
    }
}
