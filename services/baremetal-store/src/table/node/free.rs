//! The search for a free node: pages of candidates until one matches.

use baremetal_core::{Allocation, Node, NodePool, NodeUuid, State};
use database::{Connection, Query, Result, Value};
use newtype_uuid::GenericUuid;

use super::list::VISIBLE;
use super::{SELECT, read};

pub(crate) struct FreeNodeSearch<'a> {
    wanted: &'a Allocation,
    pool: &'a NodePool,
    /// The id after which the search begins. The id differs between allocations, so that not all of them try the same node first.
    start: NodeUuid,
    at: SearchPosition,
}

/// The position in the circle of ids that begins and ends at `start`.
enum SearchPosition {
    /// Between `start` and the end; the last id that was read.
    AfterStart(NodeUuid),
    /// Between the beginning and `start`; the last id that was read, if any.
    BeforeStart(Option<NodeUuid>),
    /// The circle is complete.
    Done,
}

impl<'a> FreeNodeSearch<'a> {
    /// Starts a search for nodes that match `wanted` in everything that has a column; the caller checks the rest.
    pub(crate) fn of(wanted: &'a Allocation, pool: &'a NodePool) -> Self {
        let start = NodeUuid::from_untyped_uuid(wanted.id.into_untyped_uuid());
        FreeNodeSearch { wanted, pool, start, at: SearchPosition::AfterStart(start) }
    }

    /// Returns the next candidates, at most `limit`; an empty list means that none is left.
    pub(crate) async fn next(
        &mut self,
        connection: &mut Connection,
        limit: u32,
    ) -> Result<Vec<Node>> {
        loop {
            let mut query = self.query();
            match &self.at {
                SearchPosition::AfterStart(last) => query.and_value("id > ?", *last),
                SearchPosition::BeforeStart(last) => {
                    query.and_value("id <= ?", self.start);
                    query.and_if_set("id > ?", *last);
                }
                SearchPosition::Done => return Ok(Vec::new()),
            }
            let rows = query.first_by_id(limit).rows(connection).await?;
            let found = rows.iter().map(read).collect::<Result<Vec<Node>, _>>()?;
            let last = found.last().map(|node| node.id);
            self.at = match (&self.at, last) {
                (SearchPosition::AfterStart(_), Some(last)) => SearchPosition::AfterStart(last),
                (SearchPosition::AfterStart(_), None) => SearchPosition::BeforeStart(None),
                (SearchPosition::BeforeStart(_), Some(last)) => {
                    SearchPosition::BeforeStart(Some(last))
                }
                (SearchPosition::BeforeStart(_), None) | (SearchPosition::Done, _) => {
                    SearchPosition::Done
                }
            };
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }

    fn query(&self) -> Query {
        let mut query = Query::new(SELECT);
        query.and_value("provision_state = ?", State::Available.as_str());
        query.and("instance_uuid IS NULL");
        query.and("maintenance = 0");
        query.and("retired = 0");
        query.and("power_state IS NOT NULL");
        query.and_if_set("resource_class = ?", self.wanted.resource_class.as_deref());
        if !self.wanted.candidate_nodes.is_empty() {
            query.and_any("id", self.wanted.candidate_nodes.iter().map(|id| Value::from(*id)));
        }
        match self.pool {
            NodePool::All => {}
            NodePool::Project(project) => query.and_value(VISIBLE, project.as_str()),
            NodePool::Lendable(project) => {
                query.and("lessee IS NULL");
                match project {
                    Some(own) => query.and_value("(owner IS NULL OR owner = ?)", own.as_str()),
                    None => query.and("owner IS NULL"),
                }
            }
        }
        query
    }
}
