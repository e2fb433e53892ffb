//! The search for a free node: pages of candidates until one matches.

use baremetal_core::{Allocation, Node, NodeUuid, Pool, State};
use database::{Connection, Query, StoreError, Value};
use newtype_uuid::GenericUuid;

use super::list::VISIBLE;
use super::{SELECT, read};

/// A search in progress.
pub(crate) struct Free<'a> {
    wanted: &'a Allocation,
    pool: &'a Pool,
    /// The id after which the search begins. The id differs between allocations, so that not all of them try the same node first.
    start: NodeUuid,
    at: Leg,
}

/// The position in the circle of ids that begins and ends at `start`.
enum Leg {
    /// Between `start` and the end; the last id that was read.
    Behind(NodeUuid),
    /// Between the beginning and `start`; the last id that was read, if any.
    Before(Option<NodeUuid>),
    /// The circle is complete.
    Done,
}

impl<'a> Free<'a> {
    /// Starts a search for nodes that match `wanted` in everything that has a column; the caller checks the rest.
    pub(crate) fn of(wanted: &'a Allocation, pool: &'a Pool) -> Self {
        let start = NodeUuid::from_untyped_uuid(wanted.id.into_untyped_uuid());
        Free { wanted, pool, start, at: Leg::Behind(start) }
    }

    /// Returns the next candidates, at most `limit`; an empty list means that none is left.
    pub(crate) async fn next(
        &mut self,
        connection: &mut Connection,
        limit: u32,
    ) -> Result<Vec<Node>, StoreError> {
        loop {
            let mut query = self.query();
            match &self.at {
                Leg::Behind(last) => query.and_value("id > ?", *last),
                Leg::Before(last) => {
                    query.and_value("id <= ?", self.start);
                    query.and_if_set("id > ?", *last);
                }
                Leg::Done => return Ok(Vec::new()),
            }
            let (sql, values) = query.first_by_id(limit);
            let rows = connection.rows(sql, values).await?;
            let found = rows.iter().map(read).collect::<Result<Vec<Node>, _>>()?;
            let last = found.last().map(|node| node.id);
            self.at = match (&self.at, last) {
                (Leg::Behind(_), Some(last)) => Leg::Behind(last),
                (Leg::Behind(_), None) => Leg::Before(None),
                (Leg::Before(_), Some(last)) => Leg::Before(Some(last)),
                (Leg::Before(_), None) | (Leg::Done, _) => Leg::Done,
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
            Pool::All => {}
            Pool::Of(project) => query.and_value(VISIBLE, project.as_str()),
            Pool::Lendable(project) => {
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
