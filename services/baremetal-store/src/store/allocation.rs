//! Allocations: a node is chosen, reserved and written down in one transaction, each in its turn.

use baremetal_core::{
    Allocation, AllocationFilter, AllocationSort, AllocationUuid, HistoryEntry, Mismatch, Node,
    NodeIdent, NodeName, NodeUuid, Page, Pool, backfill, occupy, release,
};
use database::Extent::{AnyDecides, OneStatement};
use database::{Connection, StoreError};
use jiff::Timestamp;

use crate::Store;
use crate::table::node::Free;
use crate::table::{allocation, history, node};

/// Under this name allocations wait for each other: the last node goes to whoever comes first, and who comes second finds it
/// gone rather than locked.
const TURN: &str = "allocations";
/// So many nodes are read at once in search of one that fits.
const NODES_AT_ONCE: u32 = 64;
/// How often a node is tried that others write at the same time.
const ATTEMPTS: usize = 8;

impl Store {
    /// Reserves a node of `pool` for a new allocation, and writes both; where none fits, the allocation is written with its
    /// error. The answer is the allocation as it was written.
    ///
    /// A node of the allocation's own name comes first; the others in the order of their ids, from the allocation's own on.
    ///
    /// # Errors
    ///
    /// `Duplicate`, where its id or name is taken.
    pub async fn allocate(
        &self,
        new: &Allocation,
        pool: &Pool,
        now: Timestamp,
    ) -> Result<Allocation, StoreError> {
        let (new, pool) = (new.clone(), pool.clone());
        self.database
            .write(AnyDecides, move |c| {
                Box::pin(async move {
                    c.write_in_turn_as(TURN).await?;
                    let written = reserve(c, &new, &pool, now).await?;
                    allocation::insert(c, &written).await?;
                    Ok(written)
                })
            })
            .await
    }

    /// Writes a new allocation for a node that is in use already, if they agree.
    ///
    /// # Errors
    ///
    /// `Duplicate`, where its id or name is taken; `Stale`, where the node is written by others at the same time.
    pub async fn backfill(
        &self,
        new: &Allocation,
        node: NodeUuid,
        now: Timestamp,
    ) -> Result<Result<Allocation, Mismatch>, StoreError> {
        let new = new.clone();
        self.database
            .write(AnyDecides, move |c| {
                Box::pin(async move {
                    c.write_in_turn_as(TURN).await?;
                    let found = node::find(c, &NodeIdent::Id(node)).await?;
                    let found = found.ok_or_else(|| crate::table::no_node(node))?;
                    let (taken, written) = match backfill(&found, &new) {
                        Ok(both) => both,
                        Err(mismatch) => return Ok(Err(mismatch)),
                    };
                    node::update(c, &Node { updated_at: Some(now), ..taken }).await?;
                    allocation::insert(c, &written).await?;
                    Ok(Ok(written))
                })
            })
            .await
    }

    /// The allocation of this id.
    pub async fn find_allocation(
        &self,
        id: AllocationUuid,
    ) -> Result<Option<Allocation>, StoreError> {
        self.database.read(move |c| Box::pin(allocation::find(c, id))).await
    }

    /// The allocation of this name.
    pub async fn find_allocation_by_name(
        &self,
        name: &NodeName,
    ) -> Result<Option<Allocation>, StoreError> {
        let name = name.clone();
        self.database
            .read(|c| Box::pin(async move { allocation::find_by_name(c, &name).await }))
            .await
    }

    /// One page of the allocations that fit `filter`.
    pub async fn list_allocations(
        &self,
        filter: &AllocationFilter,
        page: &Page<AllocationSort>,
    ) -> Result<Vec<Allocation>, StoreError> {
        let (filter, page) = (filter.clone(), page.clone());
        self.database
            .read(|c| Box::pin(async move { allocation::list(c, &filter, &page).await }))
            .await
    }

    /// Writes the whole allocation, if its version is still the one that was read. Its node is not touched.
    pub async fn update_allocation(&self, changed: &Allocation) -> Result<Allocation, StoreError> {
        let changed = changed.clone();
        self.database
            .write(OneStatement, |c| Box::pin(async move { allocation::update(c, &changed).await }))
            .await
    }

    /// Deletes an allocation, and frees its node, if the versions of both are still those that were read.
    pub async fn delete_allocation(
        &self,
        gone: &Allocation,
        reserved: Option<&Node>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (gone, reserved) = (gone.clone(), reserved.cloned());
        self.database
            .write(AnyDecides, move |c| {
                Box::pin(async move {
                    if let Some(reserved) = reserved {
                        let free = Node { updated_at: Some(now), ..release(&reserved) };
                        node::update(c, &free).await?;
                    }
                    allocation::delete(c, &gone).await
                })
            })
            .await
    }

    /// As [`Store::update_node`], of a node whose allocation ends with that.
    pub async fn update_node_and_end(
        &self,
        node: &Node,
        history: &[HistoryEntry],
        ended: AllocationUuid,
    ) -> Result<Node, StoreError> {
        let (node, lines) = (node.clone(), history.to_vec());
        self.database
            .write(AnyDecides, move |c| {
                Box::pin(async move {
                    let written = node::update(c, &node).await?;
                    history::append(c, node.id, &lines).await?;
                    allocation::remove(c, ended).await?;
                    Ok(written)
                })
            })
            .await
    }
}

/// Reserves the first node that fits; the answer is the allocation with it, or with its error.
async fn reserve(
    connection: &mut Connection,
    new: &Allocation,
    pool: &Pool,
    now: Timestamp,
) -> Result<Allocation, StoreError> {
    let mut same_kind = false;
    if let Some(name) = &new.name {
        let namesake = node::find(connection, &NodeIdent::Name(name.clone())).await?;
        if let Some(namesake) = namesake
            && let Some(written) = take(connection, new, pool, namesake, now).await?
        {
            return Ok(written);
        }
    }
    let mut free = Free::of(new, pool);
    loop {
        let found = free.next(connection, NODES_AT_ONCE).await?;
        if found.is_empty() {
            return Ok(new.failed(same_kind));
        }
        same_kind = true;
        for node in found {
            if let Some(written) = take(connection, new, pool, node, now).await? {
                return Ok(written);
            }
        }
    }
}

/// Reserves `node`, if it fits still; whoever else writes it is waited for.
async fn take(
    connection: &mut Connection,
    new: &Allocation,
    pool: &Pool,
    mut node: Node,
    now: Timestamp,
) -> Result<Option<Allocation>, StoreError> {
    for _ in 0..ATTEMPTS {
        if !new.fits(&node, pool) {
            return Ok(None);
        }
        let (taken, written) = occupy(&node, new);
        match node::update(connection, &Node { updated_at: Some(now), ..taken }).await {
            Ok(_) => return Ok(Some(written)),
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
