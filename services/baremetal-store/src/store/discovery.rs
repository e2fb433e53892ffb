//! Accepts a discovery: the node with everything that belongs to it, and the mark on the discovery, in one transaction.

use baremetal_core::{Acceptance, DiscoveryId, NodeUuid};
use database::WriteKind::AnyStatementCanFail;
use database::{Result, writing};

use crate::Store;
use crate::table::{discovery, history, inspection, node};

/// The name of the lock under which discoveries are accepted, so that one is not accepted twice at the same time.
const ACCEPTANCE_LOCK: &str = "discoveries";

/// The result of accepting a discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptOutcome {
    Accepted,
    /// The discovery was accepted into this node before. Nothing was written.
    Present(NodeUuid),
    /// There is no such discovery. Nothing was written.
    Missing,
}

impl Store {
    /// Adds the node of an accepted discovery with its ports and its inventory, and marks the discovery; or writes nothing.
    ///
    /// # Errors
    ///
    /// `Duplicate` if another record has the name, an address or the BMC of the node.
    pub async fn accept_discovery(
        &self,
        id: DiscoveryId,
        it: &Acceptance,
    ) -> Result<AcceptOutcome> {
        self.admit_node(&it.node).await?;
        let it = Acceptance { node: self.sealed(&it.node).await?, ..it.clone() };
        let (shared, notifier) = (self.shared_bmcs, self.notifier());
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(ACCEPTANCE_LOCK).await?;
            let Some(found) = discovery::find(c, id).await? else {
                return Ok(AcceptOutcome::Missing);
            };
            if let Some(node) = found.node {
                return Ok(AcceptOutcome::Present(node));
            }
            node::check_bmc(c, &it.node, shared).await?;
            notifier.insert_node(c, &it.node).await?;
            for port in &it.ports {
                notifier.insert_port(c, port).await?;
            }
            if let Some(report) = &it.report {
                inspection::save(c, report).await?;
            }
            history::append(c, it.node.id, std::slice::from_ref(&it.entry)).await?;
            discovery::accept(c, id, it.node.id).await?;
            Ok(AcceptOutcome::Accepted)
        })
    }
}
