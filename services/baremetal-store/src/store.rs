//! The store as the rest of the program sees it.

mod allocation;
mod lending;
mod machine;
mod profile;
mod record;
mod seals;

use std::num::NonZeroU32;

use audit_store::Recorder;
use baremetal_core::{
    HistoryEntry, Node, NodeFilter, NodeIdent, NodeSort, NodeUuid, Page, Port, PortUuid,
};
use database::table::{Listed, Part};
use database::{Bound, Database, Schema, SchemaVersion, StoreError, Tripwire};
use hardware::PowerState;
use jiff::Timestamp;
use serde_json::Value;

use crate::table::{Tally, history, lease, node, port, rack};
pub use allocation::Reserved;
use database::Extent::{AnyDecides, FirstDecides, OneStatement};
pub use seals::Resealed;
use seals::Seals;

/// The versions of the tables, the first first.
pub const SCHEMA: Schema = &[
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    audit_store::TABLES,
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
    include_str!("schema-7.sql"),
    include_str!("schema-8.sql"),
    include_str!("schema-9.sql"),
    include_str!("schema-10.sql"),
    include_str!("schema-11.sql"),
    include_str!("schema-12.sql"),
];

/// The power a machine was seen to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenPower {
    node: NodeUuid,
    version: i64,
    power: PowerState,
}

impl SeenPower {
    /// Of the machine of this node, which was read before it was looked at.
    pub fn of(node: &Node, power: PowerState) -> Self {
        SeenPower { node: node.id, version: node.version, power }
    }
}

/// All that must not be lost. Clones share one database.
///
/// What a write's future has answered is committed. A future that is dropped may have written or not.
#[derive(Clone)]
pub struct Store {
    database: Database,
    trail: Recorder,
    /// What seals secrets; without it they are kept as they come.
    seals: Option<Seals>,
    /// How large the documents may be that are written through it.
    pub(crate) bound: Bound,
    /// How many allocations a project may have that did not come to nothing.
    pub(crate) allocations_each: Option<NonZeroU32>,
}

impl Store {
    /// Opens `sqlite:///path/file.db`, `sqlite::memory:` or `postgres://user@host/database`, and brings its tables up
    /// to date.
    ///
    /// A file that is not there is made, for its owner's eyes only. What writes it runs in the tokio runtime that opens
    /// it; once that is gone, every write is refused as `Closing`. Secrets are kept as they come until
    /// [`Store::sealing`] says by what they are sealed.
    pub async fn open(url: &str) -> Result<Store, StoreError> {
        Store::open_with(url, Tripwire::default()).await
    }

    /// The same, whose writes are points of this tripwire.
    pub async fn open_with(url: &str, tripwire: Tripwire) -> Result<Store, StoreError> {
        let database = Database::open(url, SCHEMA).await?.with_tripwire(tripwire);
        let trail = Recorder::new(database.clone(), "baremetald");
        Ok(Store { database, trail, seals: None, bound: Bound::default(), allocations_each: None })
    }

    /// Looks through all of a database file, if there is one: `Damaged`, where it is spoiled. Nothing is changed.
    pub async fn check(url: &str) -> Result<(), StoreError> {
        Database::check(url).await
    }

    /// Which database it is, and which version its tables have now.
    pub async fn schema(&self) -> Result<(&'static str, SchemaVersion), StoreError> {
        Ok((self.database.kind(), self.database.schema_version(SCHEMA).await?))
    }

    /// What a test has done at each effect of whoever works on this store.
    pub fn tripwire(&self) -> &Tripwire {
        self.database.tripwire()
    }

    /// The audit trail, in the same database.
    pub fn trail(&self) -> &Recorder {
        &self.trail
    }

    /// Adds a node.
    pub async fn insert_node(&self, node: &Node) -> Result<(), StoreError> {
        self.admit_node(node).await?;
        let node = self.sealed(node).await?;
        self.database
            .write(OneStatement, |c| Box::pin(async move { node::insert(c, &node).await }))
            .await
    }

    /// The node of this id or name.
    pub async fn find_node(&self, ident: &NodeIdent) -> Result<Option<Node>, StoreError> {
        let ident = ident.clone();
        self.database.read(|c| Box::pin(async move { node::find(c, &ident).await })).await
    }

    /// The nodes of these ids and names, in no order; what is not there is left out. However many they are, few questions are asked.
    pub async fn find_nodes(&self, idents: &[NodeIdent]) -> Result<Vec<Node>, StoreError> {
        let idents = idents.to_vec();
        self.database
            .read(|c| {
                Box::pin(async move {
                    let (mut ids, mut names) = (Vec::new(), Vec::new());
                    for ident in &idents {
                        match ident {
                            NodeIdent::Id(id) => ids.push(*id),
                            NodeIdent::Name(name) => names.push(name),
                        }
                    }
                    let mut found = node::these(c, &ids).await?;
                    found.extend(node::named(c, &names).await?);
                    Ok(found)
                })
            })
            .await
    }

    /// One page of the nodes that fit `filter`.
    pub async fn list_nodes(
        &self,
        filter: &NodeFilter,
        page: &Page<NodeSort>,
    ) -> Result<Vec<Node>, StoreError> {
        let (filter, page) = (filter.clone(), page.clone());
        self.database
            .read(|c| Box::pin(async move { node::list(c, &filter, &page, None).await }))
            .await
            .map(|listed| listed.found)
    }

    /// A part of a page of the nodes that fit `filter`.
    pub async fn list_nodes_part(
        &self,
        filter: &NodeFilter,
        page: &Page<NodeSort>,
        part: Part,
    ) -> Result<Listed<Node>, StoreError> {
        let (filter, page) = (filter.clone(), page.clone());
        self.database
            .read(|c| Box::pin(async move { node::list(c, &filter, &page, Some(&part)).await }))
            .await
    }

    /// How many nodes without a parent there are in each state; of those that this project may see, where one is named.
    pub async fn tally_nodes(&self, seen_by: Option<&str>) -> Result<Vec<Tally>, StoreError> {
        let seen_by = seen_by.map(str::to_owned);
        self.database
            .read(|c| Box::pin(async move { node::tally(c, seen_by.as_deref()).await }))
            .await
    }

    /// How many nodes there are.
    pub async fn count_nodes(&self) -> Result<u64, StoreError> {
        self.database.read(|c| Box::pin(node::count(c))).await
    }

    /// Writes the whole node, if its version is still the one that was read, and these lines of its history. The
    /// answer carries the new version, and its secrets as they were sealed.
    pub async fn update_node(
        &self,
        node: &Node,
        history: &[HistoryEntry],
    ) -> Result<Node, StoreError> {
        self.admit_node(node).await?;
        let extent = if history.is_empty() { OneStatement } else { FirstDecides };
        let (node, lines) = (self.sealed(node).await?, history.to_vec());
        self.database
            .write(extent, |c| {
                Box::pin(async move {
                    let written = node::update(c, &node).await?;
                    history::append(c, node.id, &lines).await?;
                    Ok(written)
                })
            })
            .await
    }

    /// Deletes a node, if its version is still the one that was read, with all that belongs to it and the leases of its ports.
    pub async fn delete_node(&self, node: &Node) -> Result<(), StoreError> {
        let node = node.clone();
        self.database
            .write(FirstDecides, |c| {
                Box::pin(async move {
                    let ports = port::of(c, node.id).await?;
                    node::delete(c, &node).await?;
                    for port in ports {
                        lease::free(c, port.address).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Notes the power states that were seen, where they differ from those known; the answer is how many did.
    ///
    /// A node that was written since is left as it is: what was seen of its machine may be older than that.
    pub async fn record_power(
        &self,
        seen: &[SeenPower],
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let those = |wanted| {
            let fitting = seen.iter().filter(move |seen| seen.power == wanted);
            fitting.map(|seen| (seen.node, seen.version)).collect::<Vec<_>>()
        };
        let (on, off) = (those(PowerState::On), those(PowerState::Off));
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move {
                    c.write_alone().await?;
                    let on = node::record_power(c, &on, PowerState::On, now).await?;
                    let off = node::record_power(c, &off, PowerState::Off, now).await?;
                    Ok(on + off)
                })
            })
            .await
    }

    /// The nodes that have work or a change of power under way, for a conductor that starts.
    pub async fn busy_nodes(&self) -> Result<Vec<NodeUuid>, StoreError> {
        self.database.read(|c| Box::pin(node::busy(c))).await
    }

    /// The next `limit` nodes by id whose power is looked at from time to time: neither in `enroll` nor with work or a
    /// change of power under way.
    pub async fn sweep_page(
        &self,
        after: Option<NodeUuid>,
        limit: u32,
    ) -> Result<Vec<Node>, StoreError> {
        self.database.read(move |c| Box::pin(node::sweep_page(c, after, limit))).await
    }

    /// Writes a rack's document (`None`: it is new; else the version that was read) and all that comes of it, or
    /// nothing.
    pub async fn enroll(
        &self,
        rack: (&str, &Value, Option<i64>),
        new_nodes: &[Node],
        changed_nodes: &[Node],
        new_ports: &[Port],
        removed_ports: &[PortUuid],
    ) -> Result<(), StoreError> {
        let (name, version) = (rack.0.to_owned(), rack.2);
        self.admit_rack(&name, rack.1).await?;
        for node in new_nodes.iter().chain(changed_nodes) {
            self.admit_node(node).await?;
        }
        let document = self.sealed_rack(&name, rack.1).await?;
        let new_nodes = self.sealed_all(new_nodes).await?;
        let changed_nodes = self.sealed_all(changed_nodes).await?;
        let (new_ports, removed_ports) = (new_ports.to_vec(), removed_ports.to_vec());
        self.database
            .write(AnyDecides, move |c| {
                Box::pin(async move {
                    c.write_alone().await?;
                    match version {
                        None => rack::insert(c, &name, &document).await?,
                        Some(version) => rack::update(c, &name, &document, version).await?,
                    }
                    for id in removed_ports {
                        if let Some(port) = port::find(c, id).await? {
                            port::remove(c, id).await?;
                            lease::free(c, port.address).await?;
                        }
                    }
                    for node in &changed_nodes {
                        node::update(c, node).await?;
                    }
                    for node in &new_nodes {
                        node::insert(c, node).await?;
                    }
                    for port in &new_ports {
                        port::insert(c, port).await?;
                    }
                    Ok(())
                })
            })
            .await
    }
}
