//! Nodes that another service managed before: each is written in one transaction with everything that belongs to it.

use baremetal_core::{
    Allocation, AllocationState, Content, HistoryEntry, InspectionReport, Node, Port, PortGroup,
    RecordChange, Stored, VolumeConnector, VolumeTarget,
};
use database::WriteKind::AnyStatementCanFail;
use database::{Connection, Result, writing};
use serde_json::Value;

use crate::Store;
use crate::notifier::Notifier;
use crate::store::allocation::{ALLOCATION_LOCK, check_quota};
use crate::table::resource::check_chassis;
use crate::table::{allocation, history, inspection, node, port, resource};

/// The most entries of a node's history that an import keeps.
pub const MOST_IMPORTED_HISTORY: usize = history::KEPT as usize - 1;

/// A node with everything that belongs to it.
#[derive(Clone, Debug)]
pub struct ImportedNode {
    pub node: Node,
    pub portgroups: Vec<Stored<PortGroup>>,
    pub ports: Vec<Port>,
    pub connectors: Vec<Stored<VolumeConnector>>,
    pub targets: Vec<Stored<VolumeTarget>>,
    pub allocation: Option<Allocation>,
    pub inspection: Option<InspectionReport>,
    /// The entries that the other service had, oldest first; at most [`MOST_IMPORTED_HISTORY`], which are kept beside `entry`.
    pub history: Vec<HistoryEntry>,
    /// The entry of the node's history that records the import.
    pub entry: HistoryEntry,
}

/// Whether an import is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportEffect {
    Write,
    /// The database only checks the import: the transaction deletes again what it inserted.
    Check,
}

/// A resource with its document as it is written.
type Sealed<C> = Vec<(Stored<C>, Value)>;

impl Store {
    /// Adds a node with everything that belongs to it, or nothing.
    ///
    /// # Errors
    ///
    /// `Duplicate` if another record has an id, a name, an address, an instance or the BMC of this one; `LimitReached` if the project of the
    /// allocation has the maximum number of allocations.
    pub async fn import_node(&self, it: &ImportedNode, effect: ImportEffect) -> Result<()> {
        self.admit_node(&it.node).await?;
        for port in &it.ports {
            self.admit_port(port).await?;
        }
        if let Some(allocation) = &it.allocation {
            self.admit_allocation(allocation).await?;
        }
        let groups = self.admitted_and_sealed(&it.portgroups).await?;
        let connectors = self.admitted_and_sealed(&it.connectors).await?;
        let targets = self.admitted_and_sealed(&it.targets).await?;
        let it = ImportedNode { node: self.sealed(&it.node).await?, ..it.clone() };
        let each = self.allocations_each;
        let (shared, notifier) = (self.shared_bmcs, self.notifier());
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(ALLOCATION_LOCK).await?;
            if let Some(allocation) = &it.allocation {
                check_quota(c, allocation, each).await?;
            }
            check_chassis(c, &it.node).await?;
            node::check_bmc(c, &it.node, shared).await?;
            node::insert(c, &it.node).await?;
            insert_all(c, &groups).await?;
            for port in &it.ports {
                port::insert(c, port).await?;
            }
            insert_all(c, &connectors).await?;
            insert_all(c, &targets).await?;
            if let Some(allocation) = &it.allocation {
                allocation::insert(c, allocation).await?;
            }
            if let Some(report) = &it.inspection {
                inspection::save(c, report).await?;
            }
            history::append(c, it.node.id, &it.history).await?;
            history::append(c, it.node.id, std::slice::from_ref(&it.entry)).await?;
            match effect {
                ImportEffect::Write => tell_import(c, &notifier, &it).await,
                ImportEffect::Check => node::delete(c, &it.node).await,
            }
        })
    }

    /// Adds an allocation for which no node was found. Only the newest 300 failed allocations of each owner are kept.
    ///
    /// # Errors
    ///
    /// `Duplicate` if the id or the name is in use.
    pub async fn import_allocation(&self, it: &Allocation, effect: ImportEffect) -> Result<()> {
        self.admit_allocation(it).await?;
        let (it, notifier) = (it.clone(), self.notifier());
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(ALLOCATION_LOCK).await?;
            allocation::insert(c, &it).await?;
            match effect {
                ImportEffect::Check => return allocation::remove(c, it.id).await,
                ImportEffect::Write if it.state == AllocationState::Error => {
                    allocation::trim_failed(c, &it).await?;
                }
                ImportEffect::Write => {}
            }
            notifier.tell_allocation(c, RecordChange::Create, &it).await
        })
    }

    async fn admitted_and_sealed<C: Content>(&self, all: &[Stored<C>]) -> Result<Sealed<C>> {
        let mut sealed = Vec::with_capacity(all.len());
        for it in all {
            self.admit_resource(it).await?;
            sealed.push((it.clone(), self.sealed_resource(it).await?));
        }
        Ok(sealed)
    }
}

/// Writes the notifications about everything that an import created.
async fn tell_import(
    connection: &mut Connection,
    notifier: &Notifier,
    it: &ImportedNode,
) -> Result<()> {
    let ImportedNode { node, portgroups, ports, connectors, targets, allocation, .. } = it;
    notifier.tell_node(connection, None, Some(node)).await?;
    for group in portgroups {
        notifier.tell_resource(connection, RecordChange::Create, group).await?;
    }
    for port in ports {
        notifier.tell_port(connection, None, Some(port)).await?;
    }
    for connector in connectors {
        notifier.tell_resource(connection, RecordChange::Create, connector).await?;
    }
    for target in targets {
        notifier.tell_resource(connection, RecordChange::Create, target).await?;
    }
    match allocation {
        Some(it) => notifier.tell_allocation(connection, RecordChange::Create, it).await,
        None => Ok(()),
    }
}

async fn insert_all<C: Content>(connection: &mut Connection, all: &Sealed<C>) -> Result<()> {
    for (it, document) in all {
        resource::insert(connection, it, document).await?;
    }
    Ok(())
}
