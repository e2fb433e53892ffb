//! Allocations: a node is chosen, reserved and recorded in one transaction; concurrent allocations wait for each other.

use std::num::NonZeroU32;

use baremetal_core::{
    Allocation, AllocationFilter, AllocationSort, AllocationState, AllocationUuid,
    BackfillMismatch, HistoryEntry, Node, NodeIdent, NodeName, NodePool, NodeUuid, Page,
    RecordChange, ReservationRequest, assign, backfill, release, reserve,
};
use database::WriteKind::{AnyStatementCanFail, OneStatement};
use database::table::{PagePart, PageRows};
use database::{Connection, Result, StoreError, reading, writing};
use jiff::Timestamp;

use crate::Store;
use crate::notifier::Notifier;
use crate::secrets::seal_node;
use crate::table::node::FreeNodeSearch;
use crate::table::{allocation, history, node};

/// The name of the lock on which allocations wait for each other. Without the lock, two allocations would try the same last node, and the
/// second would see a conflict instead of a missing node.
pub(super) const ALLOCATION_LOCK: &str = "allocations";
/// The number of nodes read per query while searching for a matching one.
const NODES_AT_ONCE: u32 = 64;
/// How often a matching node is retried when other writers change it at the same time. An allocation fails after so many changes in a row.
const ATTEMPTS: usize = 64;

/// The result of a request for a reservation.
#[derive(Clone, Debug, PartialEq)]
pub enum ReserveOutcome {
    /// The reservation was written, and its node too.
    Done(Box<Allocation>),
    /// The project has the maximum number of reservations.
    Full { used: u64 },
    /// No node matches, with the reason as a sentence.
    NoNode(String),
}

/// The result of a request to record the allocation of a node in use.
#[derive(Clone, Debug, PartialEq)]
pub enum BackfillOutcome {
    /// The allocation was written, and its node too.
    Done(Box<Allocation>),
    /// The node and the allocation do not agree, so nothing was written.
    Mismatch(BackfillMismatch),
}

enum NodeSearchOutcome {
    Taken(Box<Allocation>),
    /// Nodes match except for their traits.
    OnlySimilar,
    NoNode,
}

impl NodeSearchOutcome {
    /// Returns the allocation as it is written: with its node, or failed.
    fn allocation(self, new: &Allocation) -> Allocation {
        match self {
            NodeSearchOutcome::Taken(written) => *written,
            NodeSearchOutcome::OnlySimilar => new.failed(true),
            NodeSearchOutcome::NoNode => new.failed(false),
        }
    }
}

/// Returns the changed node and allocation and an entry for the history, or `None` if something forbids the use of this node.
type TakeNode<'a> =
    &'a (dyn Fn(&Node) -> Option<(Node, Allocation, Option<HistoryEntry>)> + Send + Sync);

/// The most allocations in a part that has the node of each: the part is measured without the nodes.
const WITH_NODES: u32 = 16;

impl Store {
    /// Reserves a node of `pool` for a new allocation, and writes both. If no node matches, writes the allocation with its error. Returns
    /// the allocation as written. Only the newest 300 failed allocations of each owner are kept.
    ///
    /// A node with the allocation's name is preferred; the other nodes are tried in the order of their ids, starting from the allocation's
    /// id.
    ///
    /// # Errors
    ///
    /// `Duplicate` if the id or name is in use, and `Full` if the project has the maximum number of allocations.
    pub async fn allocate(
        &self,
        new: &Allocation,
        pool: &NodePool,
        now: Timestamp,
    ) -> Result<Allocation> {
        self.admit_allocation(new).await?;
        let (new, pool, each) = (new.clone(), pool.clone(), self.allocations_each);
        let notifier = self.notifier();
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(ALLOCATION_LOCK).await?;
            check_quota(c, &new, each).await?;
            let taken = |node: &Node| {
                let (node, written) = assign(node, &new);
                Some((node, written, None))
            };
            let found = choose_node(c, &new, &pool, &taken, &notifier, now).await?;
            let written = found.allocation(&new);
            notifier.insert_allocation(c, &written).await?;
            if written.state == AllocationState::Error {
                allocation::trim_failed(c, &written).await?;
            }
            Ok(written)
        })
    }

    /// Reserves a node of `pool` for a new allocation of a project that has fewer than `most` reservations, lends the node and begins its
    /// installation; or writes nothing.
    ///
    /// # Errors
    ///
    /// `Duplicate` if the id or name is in use.
    pub async fn reserve(
        &self,
        new: &Allocation,
        pool: &NodePool,
        order: &ReservationRequest,
        most: u32,
        now: Timestamp,
    ) -> Result<ReserveOutcome> {
        self.admit_allocation(new).await?;
        self.admit_order(order).await?;
        let (new, pool, order) = (new.clone(), pool.clone(), order.clone());
        let (sealer, notifier) = (self.current_keys().await?, self.notifier());
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(ALLOCATION_LOCK).await?;
            let used = allocation::count_reserved(c, new.owner.as_deref()).await?;
            if used >= u64::from(most) {
                return Ok(ReserveOutcome::Full { used });
            }
            let taken = |node: &Node| {
                let (mut node, written, line) = reserve(node, &new, &order, now).ok()?;
                if let Some(keys) = &sealer {
                    seal_node(keys, &mut node).ok()?;
                }
                Some((node, written, Some(line)))
            };
            match choose_node(c, &new, &pool, &taken, &notifier, now).await? {
                NodeSearchOutcome::Taken(written) => {
                    notifier.insert_allocation(c, &written).await?;
                    Ok(ReserveOutcome::Done(written))
                }
                none @ (NodeSearchOutcome::OnlySimilar | NodeSearchOutcome::NoNode) => {
                    let why = none.allocation(&new).last_error.unwrap_or_default();
                    Ok(ReserveOutcome::NoNode(why))
                }
            }
        })
    }

    /// Writes a new allocation for a node that is in use already, if node and allocation agree.
    ///
    /// # Errors
    ///
    /// `Duplicate` if the id or name is in use; `Full` as for [`Store::allocate`]; `Stale` if another writer changes the node at the same
    /// time.
    pub async fn backfill(
        &self,
        new: &Allocation,
        node: NodeUuid,
        now: Timestamp,
    ) -> Result<BackfillOutcome> {
        self.admit_allocation(new).await?;
        let (new, each, notifier) = (new.clone(), self.allocations_each, self.notifier());
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(ALLOCATION_LOCK).await?;
            check_quota(c, &new, each).await?;
            let found = node::find(c, &NodeIdent::Id(node)).await?;
            let found = found.ok_or_else(|| crate::table::no_node(node))?;
            let (taken, written) = match backfill(&found, &new) {
                Ok(both) => both,
                Err(mismatch) => return Ok(BackfillOutcome::Mismatch(mismatch)),
            };
            notifier.update_node(c, Node { updated_at: Some(now), ..taken }).await?;
            notifier.insert_allocation(c, &written).await?;
            Ok(BackfillOutcome::Done(Box::new(written)))
        })
    }

    /// Returns the allocation with this id.
    pub async fn find_allocation(&self, id: AllocationUuid) -> Result<Option<Allocation>> {
        reading!(self.database, |c| allocation::find(c, id).await)
    }

    /// Returns the allocation with this name.
    pub async fn find_allocation_by_name(&self, name: &NodeName) -> Result<Option<Allocation>> {
        let name = name.clone();
        reading!(self.database, |c| allocation::find_by_name(c, &name).await)
    }

    /// Returns one page of the allocations that match `filter`.
    pub async fn list_allocations(
        &self,
        filter: &AllocationFilter,
        page: &Page<AllocationSort>,
    ) -> Result<Vec<Allocation>> {
        let (filter, page) = (filter.clone(), page.clone());
        reading!(self.database, |c| allocation::list(c, &filter, &page, None).await)
            .map(|listed| listed.found)
    }

    /// Returns a part of a page of the allocations that match `filter`.
    pub async fn list_allocations_part(
        &self,
        filter: &AllocationFilter,
        page: &Page<AllocationSort>,
        part: PagePart,
    ) -> Result<PageRows<Allocation>> {
        let (filter, page) = (filter.clone(), page.clone());
        reading!(self.database, |c| allocation::list(c, &filter, &page, Some(&part)).await)
    }

    /// Returns a part of a page of the allocations that match `filter`, each with its node.
    pub async fn list_allocations_and_nodes_part(
        &self,
        filter: &AllocationFilter,
        page: &Page<AllocationSort>,
        part: PagePart,
    ) -> Result<PageRows<(Allocation, Option<Node>)>> {
        let limit = page.limit.min(WITH_NODES);
        let (filter, page) = (filter.clone(), Page { limit, ..page.clone() });
        reading!(self.database, |c| {
            let PageRows { found, more } = allocation::list(c, &filter, &page, Some(&part)).await?;
            let ids: Vec<NodeUuid> = found.iter().filter_map(|it| it.node).collect();
            let nodes = node::find_by_ids(c, &ids).await?;
            let of = |it: &Allocation| nodes.iter().find(|node| Some(node.id) == it.node).cloned();
            let found = found.into_iter().map(|it| (it.clone(), of(&it))).collect();
            Ok(PageRows { found, more })
        })
    }

    /// Writes the whole allocation, if its version has not changed since it was read. The node is not changed.
    pub async fn update_allocation(&self, changed: &Allocation) -> Result<Allocation> {
        self.admit_allocation(changed).await?;
        let (changed, notifier) = (changed.clone(), self.notifier());
        writing!(self.database, notifier.extent(OneStatement), |c| {
            let written = allocation::update(c, &changed).await?;
            notifier.tell_allocation(c, RecordChange::Update, &written).await?;
            Ok(written)
        })
    }

    /// Deletes an allocation and frees its node, if the versions of both have not changed since they were read.
    pub async fn delete_allocation(
        &self,
        gone: &Allocation,
        reserved: Option<&Node>,
        now: Timestamp,
    ) -> Result<()> {
        let (gone, reserved, notifier) = (gone.clone(), reserved.cloned(), self.notifier());
        writing!(self.database, AnyStatementCanFail, |c| {
            if let Some(reserved) = reserved {
                let free = Node { updated_at: Some(now), ..release(&reserved) };
                notifier.update_node(c, free).await?;
            }
            allocation::delete(c, &gone).await?;
            notifier.tell_allocation(c, RecordChange::Delete, &gone).await
        })
    }

    /// Like [`Store::update_node`], for a change that also ends the node's allocation.
    pub async fn update_node_and_end(
        &self,
        node: &Node,
        history: &[HistoryEntry],
        ended: AllocationUuid,
    ) -> Result<Node> {
        self.admit_node(node).await?;
        let (node, lines) = (self.sealed(node).await?, history.to_vec());
        let (shared, notifier) = (self.shared_bmcs, self.notifier());
        let written = writing!(self.database, AnyStatementCanFail, |c| {
            let written = notifier.update_node_checked(c, node, shared).await?;
            history::append(c, written.id, &lines).await?;
            let gone = allocation::find(c, ended).await?;
            allocation::remove(c, ended).await?;
            if let Some(gone) = gone {
                notifier.tell_allocation(c, RecordChange::Delete, &gone).await?;
            }
            Ok(written)
        })?;
        self.measure_states(history);
        Ok(written)
    }
}

/// Refuses one more allocation for a project that has `most` already. Allocations without a project belong to administrators and are not
/// limited.
pub(super) async fn check_quota(
    connection: &mut Connection,
    new: &Allocation,
    most: Option<NonZeroU32>,
) -> Result<()> {
    let (Some(owner), Some(most)) = (&new.owner, most) else { return Ok(()) };
    let (used, most) = (allocation::count_limited(connection, owner).await?, most.get().into());
    if used >= most {
        let (what, holder) = ("allocations", "project");
        return Err(StoreError::LimitReached { what, holder, used, most });
    }
    Ok(())
}

/// Takes the first matching node.
async fn choose_node(
    connection: &mut Connection,
    new: &Allocation,
    pool: &NodePool,
    taken: TakeNode<'_>,
    notifier: &Notifier,
    now: Timestamp,
) -> Result<NodeSearchOutcome> {
    let mut none = NodeSearchOutcome::NoNode;
    if let Some(name) = &new.name {
        let namesake = node::find(connection, &NodeIdent::Name(name.clone())).await?;
        if let Some(namesake) = namesake
            && let Some(written) =
                try_node(connection, new, pool, taken, notifier, namesake, now).await?
        {
            return Ok(NodeSearchOutcome::Taken(Box::new(written)));
        }
    }
    let mut free = FreeNodeSearch::of(new, pool);
    loop {
        let found = free.next(connection, NODES_AT_ONCE).await?;
        if found.is_empty() {
            return Ok(none);
        }
        none = NodeSearchOutcome::OnlySimilar;
        for node in found {
            if let Some(written) =
                try_node(connection, new, pool, taken, notifier, node, now).await?
            {
                return Ok(NodeSearchOutcome::Taken(Box::new(written)));
            }
        }
    }
}

/// Takes `node` if it still matches. If another writer changes the node meanwhile, reads it again and retries.
async fn try_node(
    connection: &mut Connection,
    new: &Allocation,
    pool: &NodePool,
    taken: TakeNode<'_>,
    notifier: &Notifier,
    mut node: Node,
    now: Timestamp,
) -> Result<Option<Allocation>> {
    for _ in 0..ATTEMPTS {
        if !new.fits(&node, pool) {
            return Ok(None);
        }
        let Some((after, written, line)) = taken(&node) else { return Ok(None) };
        let after = Node { updated_at: Some(now), ..after };
        match notifier.update_node(connection, after).await {
            Ok(_) => {
                history::append(connection, node.id, line.as_slice()).await?;
                return Ok(Some(written));
            }
            Err(StoreError::Stale) => {}
            Err(error) => return Err(error),
        }
        match node::find(connection, &NodeIdent::Id(node.id)).await? {
            Some(again) => node = again,
            None => return Ok(None),
        }
    }
    Ok(None)
}
