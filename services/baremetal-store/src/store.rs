//! The store: all records of baremetald, in one database.

mod allocation;
mod bios;
mod capacity;
mod discovery;
mod import;
mod lending;
mod listed_steps;
mod machine;
mod profile;
mod record;
mod resource;
mod seals;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use audit_store::Recorder;
use baremetal_core::{
    BmcIdentity, Fault, HistoryEntry, InspectionChanges, Node, NodeFilter, NodeIdent, NodeSort,
    NodeUuid, Page, Port, PortUuid, Severity, State,
};
use database::conductors::Conductors;
use database::table::{PagePart, PageRows};
use database::webhook_events::{self, EventOutbox, Subscriptions};
use database::{
    Database, Result, Schema, SchemaVersion, SizeLimit, Tripwire, WriteKind, WriteMetrics, reading,
    writing,
};
use hardware::PowerState;
use jiff::Timestamp;
use metrics::StateMetrics;
use serde_json::Value;

use crate::notifier::Notifier;
use crate::table::resource::{check_chassis, lock_of_node};
use crate::table::{
    NodeCount, NodeDetail, NodeGroup, NodeVersion, ShardCount, SharedBmcs, history, inspection,
    lease, node, port, rack,
};
pub use allocation::{BackfillOutcome, ReserveOutcome};
pub use capacity::Capacity;
use database::WriteKind::{AnyStatementCanFail, OneStatement, OnlyFirstStatementCanFail};
use database::seals::RegisteredKeys;
pub use discovery::AcceptOutcome;
pub use import::{ImportEffect, ImportedNode, MOST_IMPORTED_HISTORY};
use sealing::Keyring;
pub use seals::ReencryptionResult;

/// The versions of the schema, the first one first.
pub const SCHEMA: Schema = &[
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    audit_store::SCHEMA,
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
    include_str!("schema-7.sql"),
    include_str!("schema-8.sql"),
    include_str!("schema-9.sql"),
    include_str!("schema-10.sql"),
    include_str!("schema-11.sql"),
    include_str!("schema-12.sql"),
    include_str!("schema-13.sql"),
    include_str!("schema-14.sql"),
    include_str!("schema-15.sql"),
    include_str!("schema-16.sql"),
    include_str!("schema-17.sql"),
    include_str!("schema-18.sql"),
    include_str!("schema-19.sql"),
    include_str!("schema-20.sql"),
    include_str!("schema-21.sql"),
    include_str!("schema-22.sql"),
    include_str!("schema-23.sql"),
    webhook_events::SCHEMA,
];

/// The channel of the notifications of conductors.
const CHANNEL: &str = "bedplate_baremetald";

/// The observed power state of one node's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenPower {
    node: NodeUuid,
    version: i64,
    power: PowerState,
}

impl SeenPower {
    /// Records the power state of the machine of `node`, which the caller has read before the observation.
    pub fn of(node: &Node, power: PowerState) -> Self {
        SeenPower { node: node.id, version: node.version, power }
    }
}

/// All records that must not be lost. Clones share one database.
///
/// A write is committed when its future returns. If the future is dropped earlier, the write may or may not have happened.
#[derive(Clone)]
pub struct Store {
    database: Database,
    trail: Recorder,
    /// The keys that seal secrets; `None` stores secrets in the clear.
    keys: Option<Arc<Keyring>>,
    known: RegisteredKeys,
    /// The size limit of documents written through this store.
    pub(crate) bound: SizeLimit,
    /// The maximum number of allocations of a project, not counting failed ones and reservations.
    pub(crate) allocations_each: Option<NonZeroU32>,
    pub(crate) shared_bmcs: SharedBmcs,
    states: StateMetrics,
    subscriptions: Subscriptions,
}

impl Store {
    /// Opens `sqlite:///path/file.db`, `sqlite::memory:` or `postgres://user@host/database`, and migrates its tables to the current
    /// version.
    ///
    /// A missing file is created with access for its owner only. Secrets are stored in the clear until [`Store::with_keys`] sets the keys.
    pub async fn open(url: &str) -> Result<Store> {
        Store::of(Database::open(url, SCHEMA).await?).with_recorded_bmcs().await
    }

    /// Opens a store as [`Store::open`] does, with a timeout for PostgreSQL, and with writes that report to this tripwire and are counted.
    pub async fn open_with(
        url: &str,
        timeout: Duration,
        tripwire: Tripwire,
        writes: WriteMetrics,
    ) -> Result<Store> {
        let database = Database::open_within(url, SCHEMA, timeout).await?;
        let database = database.with_tripwire(tripwire).with_write_metrics(writes);
        Store::of(database).with_recorded_bmcs().await
    }

    fn of(database: Database) -> Store {
        let trail = Recorder::new(database.clone(), "baremetald");
        Store {
            database,
            trail,
            keys: None,
            known: RegisteredKeys::default(),
            bound: SizeLimit::default(),
            allocations_each: None,
            shared_bmcs: SharedBmcs::default(),
            states: StateMetrics::default(),
            subscriptions: Subscriptions::default(),
        }
    }

    /// Measures here how long nodes are in each provision state.
    pub fn with_state_metrics(self, states: StateMetrics) -> Store {
        Store { states, ..self }
    }

    /// Writes notifications for these webhooks.
    pub fn with_subscriptions(self, subscriptions: Subscriptions) -> Store {
        Store { subscriptions, ..self }
    }

    /// Returns the names of the webhooks that get notifications.
    pub fn webhooks(&self) -> impl Iterator<Item = &str> {
        self.subscriptions.names()
    }

    /// Returns the notifications that have to be sent.
    pub fn webhook_outbox(&self) -> EventOutbox {
        EventOutbox::new(self.database.clone())
    }

    /// Returns the notifier of the change that the current task makes.
    fn notifier(&self) -> Notifier {
        Notifier::of_task(&self.subscriptions)
    }

    /// Measures the provision states that nodes left, once these entries of their history are committed.
    pub(crate) fn measure_states<'h>(&self, entries: impl IntoIterator<Item = &'h HistoryEntry>) {
        for entry in entries.into_iter().filter(|entry| entry.from != entry.to) {
            let (Some(state), Some(seconds)) = (State::find(&entry.from), entry.seconds) else {
                continue;
            };
            // A clock that was set back makes the time negative.
            let seconds = u64::try_from(seconds).unwrap_or(0);
            match entry.severity {
                Severity::Info => self.states.left(state.as_str(), seconds),
                Severity::Error => self.states.failed(state.as_str(), seconds),
            }
        }
    }

    /// Sets whether several nodes may name one BMC.
    pub fn with_shared_bmcs(self, shared_bmcs: SharedBmcs) -> Store {
        Store { shared_bmcs, ..self }
    }

    /// Records the BMCs of nodes that an earlier version of the service wrote.
    async fn with_recorded_bmcs(self) -> Result<Store> {
        const AT_ONCE: u32 = 500;
        loop {
            let nodes = reading!(self.database, |c| node::without_recorded_bmc(c, AT_ONCE).await)?;
            if nodes.is_empty() {
                return Ok(self);
            }
            writing!(self.database, AnyStatementCanFail, |c| {
                node::record_bmcs(c, &nodes).await
            })?;
        }
    }

    /// Returns a node that has the BMC of `node` already, unless nodes may share it.
    pub async fn find_shared_bmc(&self, node: &Node) -> Result<Option<NodeUuid>> {
        let (SharedBmcs::Refused, Some(bmc)) = (self.shared_bmcs, BmcIdentity::of(node)) else {
            return Ok(None);
        };
        let node = node.clone();
        reading!(self.database, |c| node::of_bmc(c, &bmc, Some(&node)).await)
    }

    /// Returns a node with this BMC.
    pub async fn find_bmc_node(&self, bmc: &BmcIdentity) -> Result<Option<NodeUuid>> {
        let bmc = bmc.clone();
        reading!(self.database, |c| node::of_bmc(c, &bmc, None).await)
    }

    /// Returns the other nodes whose BMC answers at the address of this node's BMC, at most `limit`. They are systems behind the same BMC, or
    /// parts of the same machine.
    pub async fn nodes_at_bmc_of(&self, node: &Node, limit: u32) -> Result<Vec<Node>> {
        let Some(BmcIdentity { endpoint, .. }) = BmcIdentity::of(node) else {
            return Ok(Vec::new());
        };
        let id = node.id;
        reading!(self.database, |c| node::at_endpoint(c, &endpoint, id, limit).await)
    }

    /// Checks a whole database file, if the file exists, and returns `Damaged` if it is inconsistent. Changes nothing.
    pub async fn check(url: &str) -> Result<()> {
        Database::check(url).await
    }

    /// Returns the file of a SQLite database, or `None` for PostgreSQL.
    pub fn file(url: &str) -> Option<PathBuf> {
        Database::file(url)
    }

    /// Returns the conductors on the database.
    pub fn conductors(&self) -> Conductors {
        Conductors::new(self.database.clone(), CHANNEL)
    }

    /// Returns the kind of the database and the version of its tables.
    pub async fn schema(&self) -> Result<(&'static str, SchemaVersion)> {
        Ok((self.database.kind(), self.database.schema_version().await?))
    }

    /// Returns the tripwire, by which crash tests stop the process before or after an effect.
    pub fn tripwire(&self) -> &Tripwire {
        self.database.tripwire()
    }

    /// Returns the audit trail in the same database.
    pub fn trail(&self) -> &Recorder {
        &self.trail
    }

    /// Adds a node.
    ///
    /// # Errors
    ///
    /// `Duplicate` if another node has the id, the name, the instance or the BMC of this one.
    pub async fn insert_node(&self, node: &Node) -> Result<()> {
        self.admit_node(node).await?;
        let (node, shared) = (self.sealed(node).await?, self.shared_bmcs);
        let notifier = self.notifier();
        let extent = match node.chassis {
            None => notifier.extent(one_write(&node)),
            Some(_) => AnyStatementCanFail,
        };
        writing!(self.database, extent, |c| {
            check_chassis(c, &node).await?;
            node::check_bmc(c, &node, shared).await?;
            notifier.insert_node(c, &node).await
        })
    }

    /// Returns the node with this id or name.
    pub async fn find_node(&self, ident: &NodeIdent) -> Result<Option<Node>> {
        let ident = ident.clone();
        reading!(self.database, |c| node::find(c, &ident).await)
    }

    /// Returns the nodes with these ids and names in any order; unknown ones are left out. The number of queries stays small however many
    /// there are.
    pub async fn find_nodes(&self, idents: &[NodeIdent]) -> Result<Vec<Node>> {
        let idents = idents.to_vec();
        reading!(self.database, |c| {
            let (mut ids, mut names) = (Vec::new(), Vec::new());
            for ident in &idents {
                match ident {
                    NodeIdent::Id(id) => ids.push(*id),
                    NodeIdent::Name(name) => names.push(name),
                }
            }
            let mut found = node::find_by_ids(c, &ids).await?;
            found.extend(node::find_by_names(c, &names).await?);
            Ok(found)
        })
    }

    /// Returns one page of the nodes that match `filter`.
    pub async fn list_nodes(
        &self,
        filter: &NodeFilter,
        page: &Page<NodeSort>,
    ) -> Result<Vec<Node>> {
        let (filter, page) = (filter.clone(), page.clone());
        reading!(self.database, |c| node::list(c, &filter, &page, None, NodeDetail::Whole).await)
            .map(|listed| listed.found)
    }

    /// Returns a part of a page of the nodes that match `filter`.
    pub async fn list_nodes_part(
        &self,
        filter: &NodeFilter,
        page: &Page<NodeSort>,
        part: PagePart,
        detail: NodeDetail,
    ) -> Result<PageRows<Node>> {
        let (filter, page) = (filter.clone(), page.clone());
        reading!(self.database, |c| node::list(c, &filter, &page, Some(&part), detail).await)
    }

    /// Counts the nodes without a parent in each state, restricted to the nodes that the project `seen_by` may see, if it is set.
    pub async fn tally_nodes(&self, seen_by: Option<&str>) -> Result<Vec<NodeCount>> {
        let seen_by = seen_by.map(str::to_owned);
        reading!(self.database, |c| node::tally(c, seen_by.as_deref()).await)
    }

    /// Counts the nodes without a parent in each state, and all nodes with each fault, by indexes alone.
    pub async fn tally_conditions(&self) -> Result<(Vec<NodeCount>, Vec<(Fault, u64)>)> {
        reading!(self.database, |c| Ok((node::tally(c, None).await?, node::tally_faults(c).await?)))
    }

    /// Returns a part of the shards with the numbers of their nodes, nodes without a shard first.
    pub async fn shards_part(
        &self,
        limit: u32,
        part: PagePart<Option<String>>,
    ) -> Result<PageRows<ShardCount, Option<String>>> {
        reading!(self.database, |c| node::shards(c, limit, part.after.as_ref()).await)
    }

    /// Returns the number of nodes.
    pub async fn count_nodes(&self) -> Result<u64> {
        reading!(self.database, |c| node::count(c).await)
    }

    /// Writes the whole node with these entries of its history, if the node's version has not changed since it was read. Returns the node
    /// with its new version and its sealed secrets.
    pub async fn update_node(&self, node: &Node, history: &[HistoryEntry]) -> Result<Node> {
        self.admit_node(node).await?;
        let notifier = self.notifier();
        let extent = match (node.chassis, history) {
            (None, []) => notifier.extent(one_write(node)),
            (None, _) => OnlyFirstStatementCanFail,
            (Some(_), _) => AnyStatementCanFail,
        };
        let (node, lines) = (self.sealed(node).await?, history.to_vec());
        let shared = self.shared_bmcs;
        let written = writing!(self.database, extent, |c| {
            if node.chassis.is_some() && !node::keeps_chassis(c, &node).await? {
                check_chassis(c, &node).await?;
            }
            let written = notifier.update_node_checked(c, node, shared).await?;
            history::append(c, written.id, &lines).await?;
            Ok(written)
        })?;
        self.measure_states(history);
        Ok(written)
    }

    /// Writes a node like [`Store::update_node`], together with the changes that its inspection made to its ports and its report.
    pub async fn update_node_and_inspection(
        &self,
        node: &Node,
        history: &[HistoryEntry],
        changes: &InspectionChanges,
    ) -> Result<Node> {
        self.admit_node(node).await?;
        let (node, lines) = (self.sealed(node).await?, history.to_vec());
        let InspectionChanges { ports, report } = changes.clone();
        let (shared, notifier) = (self.shared_bmcs, self.notifier());
        let written = writing!(self.database, AnyStatementCanFail, |c| {
            let written = notifier.update_node_checked(c, node, shared).await?;
            notifier.update_ports(c, &ports).await?;
            if let Some(report) = &report {
                inspection::save(c, report).await?;
            }
            history::append(c, written.id, &lines).await?;
            Ok(written)
        })?;
        self.measure_states(history);
        Ok(written)
    }

    /// Writes a node like [`Store::update_node`], together with child nodes, each with an entry for its history. Nothing is written if any of
    /// these nodes has changed since it was read.
    pub async fn update_node_and_children(
        &self,
        node: &Node,
        history: &[HistoryEntry],
        children: &[(Node, HistoryEntry)],
    ) -> Result<Node> {
        if children.is_empty() {
            return self.update_node(node, history).await;
        }
        self.admit_node(node).await?;
        let node = self.sealed(node).await?;
        let mut all = vec![(node.clone(), history.to_vec())];
        for (child, entry) in children {
            all.push((self.sealed(child).await?, vec![entry.clone()]));
        }
        // In this order, two writers of the same nodes do not wait for each other.
        all.sort_by_key(|(node, _)| node.id);
        let notifier = self.notifier();
        let written = writing!(self.database, AnyStatementCanFail, |c| {
            let mut written = node;
            for (node, lines) in all {
                // A step changes no BMC, so no BMC is compared.
                let after = notifier.update_node(c, node).await?;
                history::append(c, after.id, &lines).await?;
                if after.id == written.id {
                    written = after;
                }
            }
            Ok(written)
        })?;
        self.measure_states(history.iter().chain(children.iter().map(|(_, entry)| entry)));
        Ok(written)
    }

    /// Deletes a node with everything that belongs to it, including the leases of its ports, if its version has not changed since it was
    /// read.
    pub async fn delete_node(&self, node: &Node) -> Result<()> {
        let (node, notifier) = (node.clone(), self.notifier());
        writing!(self.database, AnyStatementCanFail, |c| {
            // The deletion would lock the ports before the port groups.
            node::lock(c, node.id).await?;
            lock_of_node(c, node.id).await?;
            let ports = port::of(c, node.id).await?;
            notifier.delete_node(c, &node).await?;
            for port in ports {
                lease::free(c, port.address).await?;
            }
            Ok(())
        })
    }

    /// Records observed power states that differ from the stored ones, and returns how many differed.
    ///
    /// A node that was written since the observation is skipped, because the observation may be older than that write.
    pub async fn record_power(&self, seen: &[SeenPower], now: Timestamp) -> Result<usize> {
        let those = |wanted| {
            let fitting = seen.iter().filter(move |seen| seen.power == wanted);
            fitting.map(|seen| (seen.node, seen.version)).collect::<Vec<_>>()
        };
        let (on, off) = (those(PowerState::On), those(PowerState::Off));
        let notifier = self.notifier();
        writing!(self.database, OnlyFirstStatementCanFail, |c| {
            c.lock_bulk_writes().await?;
            let on = notifier.record_power(c, &on, PowerState::On, now).await?;
            let off = notifier.record_power(c, &off, PowerState::Off, now).await?;
            Ok(on + off)
        })
    }

    /// Returns the nodes with work, a change of power, a drain or a lease, and those on their way into the cloud or out of it; with the versions of
    /// their records.
    pub async fn unfinished_nodes(&self) -> Result<Vec<NodeVersion>> {
        reading!(self.database, |c| node::unfinished(c).await)
    }

    /// Returns the conductor groups of all nodes.
    pub async fn node_groups(&self) -> Result<Vec<NodeGroup>> {
        reading!(self.database, |c| node::groups(c).await)
    }

    /// Returns the versions of the next `limit` nodes whose power state is refreshed regularly: all that are not in `enroll` and have no work
    /// and no change of power in progress. The order is that of their creation, in which the database file has them, so each page of it is
    /// read once. Also returns the place of the last one, after which the next page begins; the first page begins after 0.
    pub async fn sweep_page(
        &self,
        after: i64,
        limit: u32,
    ) -> Result<(Vec<NodeVersion>, Option<i64>)> {
        reading!(self.database, |c| node::sweep_page(c, after, limit).await)
    }

    /// Writes a rack's document with its nodes and ports in one transaction, or nothing. The version is `None` for a new rack, else the
    /// version that was read.
    pub async fn enroll(
        &self,
        rack: (&str, &Value, Option<i64>),
        new_nodes: &[Node],
        changed_nodes: &[Node],
        new_ports: &[Port],
        removed_ports: &[PortUuid],
    ) -> Result<()> {
        let (name, version) = (rack.0.to_owned(), rack.2);
        self.admit_rack(&name, rack.1).await?;
        for node in new_nodes.iter().chain(changed_nodes) {
            self.admit_node(node).await?;
        }
        let document = self.sealed_rack(&name, rack.1).await?;
        let new_nodes = self.sealed_all(new_nodes).await?;
        let changed_nodes = self.sealed_all(changed_nodes).await?;
        let (new_ports, removed_ports) = (new_ports.to_vec(), removed_ports.to_vec());
        let (shared, notifier) = (self.shared_bmcs, self.notifier());
        writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_bulk_writes().await?;
            match version {
                None => rack::insert(c, &name, &document).await?,
                Some(version) => rack::update(c, &name, &document, version).await?,
            }
            for node in &changed_nodes {
                notifier.update_node(c, node.clone()).await?;
            }
            for node in &new_nodes {
                notifier.insert_node(c, node).await?;
            }
            for id in removed_ports {
                if let Some(port) = port::find(c, id).await? {
                    notifier.remove_port(c, id).await?;
                    lease::free(c, port.address).await?;
                }
            }
            // Two machines of the rack may have exchanged their BMCs, so only the result is checked.
            for node in changed_nodes.iter().chain(&new_nodes) {
                node::check_bmc(c, node, shared).await?;
            }
            for port in &new_ports {
                notifier.insert_port(c, port).await?;
            }
            Ok(())
        })
    }
}

/// The kind of a write of this node alone. The lock under which BMCs are compared lasts as long as a transaction.
fn one_write(node: &Node) -> WriteKind {
    match BmcIdentity::of(node) {
        Some(_) => OnlyFirstStatementCanFail,
        None => OneStatement,
    }
}
