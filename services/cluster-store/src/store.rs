//! The public interface of the store: templates, clusters and their node groups.

mod admission;
mod allowance;
mod cluster_rows;
mod drain;
mod limits;
mod record;
mod seals;
mod vm;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use admission::Admission;
use allowance::QuotaDifference;
use audit_store::Recorder;
use cluster_core::{
    Cluster, ClusterSort, ClusterUuid, DefaultLimits, Event, Ident, NodeGroup, Page, Severity,
    Template, TemplateSort, cluster_notification,
};
use database::WriteKind::{AnyStatementCanFail, OneStatement};
use database::conductors::Conductors;
use database::outbox::{self, Outbox};
use database::seals::RegisteredKeys;
use database::table::{PagePart, PageRows};
use database::webhook_events::{self, EventOutbox, NotificationWriter, Subscriptions};
use database::{
    Connection, Database, Result, Schema, SchemaVersion, SizeLimit, Tripwire, WriteMetrics,
    reading, writing,
};

use jiff::Timestamp;

pub use drain::ServerOwners;
use sealing::Keyring;

use crate::refusal::QuotaWriteError;
use crate::table::{cluster, event, node_group, subdomain, template, vm_event};
use crate::write_notifier::WriteNotifier;
use crate::{AnyEvent, ClusterChange, Scope};

/// The SQL scripts of the tables, by version, starting with version 1.
pub const SCHEMA: Schema = &[
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    audit_store::SCHEMA,
    include_str!("schema-6.sql"),
    include_str!("schema-7.sql"),
    include_str!("schema-8.sql"),
    include_str!("schema-9.sql"),
    include_str!("schema-10.sql"),
    include_str!("schema-11.sql"),
    include_str!("schema-12.sql"),
    include_str!("schema-13.sql"),
    webhook_events::SCHEMA,
    include_str!("schema-15.sql"),
];

/// The schema version that permits what programs of version 0.1.0 cannot read, or would not do.
const UPGRADED: i64 = 15;

/// The channel of the notifications of conductors.
const CHANNEL: &str = "bedplate_clusterd";

/// Everything of clusterd that must not be lost. Clones share one database.
///
/// A write is committed when its future has returned. A future that is dropped earlier may have written or not.
#[derive(Clone)]
pub struct Store {
    database: Database,
    bell: WriteNotifier,
    trail: Recorder,
    known: RegisteredKeys,
    /// The keys that seal secrets, once [`Store::with_keys`] was called.
    keys: Option<Arc<Keyring>>,
    /// The largest size of documents that are written through this store.
    pub(crate) bound: SizeLimit,
    subscriptions: Subscriptions,
}

impl Store {
    /// Opens `sqlite:///path/file.db`, `sqlite::memory:` or `postgres://user@host/database`, and migrates its tables to the newest version.
    pub async fn open(url: &str) -> Result<Store> {
        Store::of(Database::open(url, SCHEMA).await?).await
    }

    /// Opens a store as [`Store::open`] does, with another timeout for PostgreSQL, and with writes that are counted.
    pub async fn open_with(url: &str, timeout: Duration, writes: WriteMetrics) -> Result<Store> {
        let database = Database::open_within(url, SCHEMA, timeout).await?;
        Store::of(database.with_write_metrics(writes)).await
    }

    /// Returns the same store, with writes that report to this tripwire.
    pub fn with_tripwire(self, tripwire: Tripwire) -> Store {
        Store { database: self.database.with_tripwire(tripwire), ..self }
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

    /// Returns the writer of notifications about the change that the current task makes.
    fn notifier(&self) -> NotificationWriter {
        NotificationWriter::of_task(&self.subscriptions, Timestamp::now())
    }

    async fn of(database: Database) -> Result<Store> {
        writing!(database, AnyStatementCanFail, |c| allowance::count_all(c).await)?;
        writing!(database, AnyStatementCanFail, |c| subdomain::insert_missing(c).await)?;
        let trail = Recorder::new(database.clone(), "clusterd");
        let store = Store {
            database,
            bell: WriteNotifier::new(),
            trail,
            known: RegisteredKeys::default(),
            keys: None,
            bound: SizeLimit::default(),
            subscriptions: Subscriptions::default(),
        };
        store.note_seals().await?;
        Ok(store)
    }

    /// Returns the file of a SQLite database, or `None` for PostgreSQL.
    pub fn file(url: &str) -> Option<PathBuf> {
        Database::file(url)
    }

    /// Checks the whole database file for damage, if the file exists. Fails with `Damaged`; changes nothing.
    pub async fn check(url: &str) -> Result<()> {
        Database::check(url).await
    }

    /// Returns the conductors on the database.
    pub fn conductors(&self) -> Conductors {
        Conductors::new(self.database.clone(), CHANNEL)
    }

    /// Returns the kind of the database and the schema version of its tables.
    pub async fn schema(&self) -> Result<(&'static str, SchemaVersion)> {
        Ok((self.database.kind(), self.database.schema_version().await?))
    }

    /// Whether no program of version 0.1.0 may work on the database any more. Until then, requests for what only newer ones can do are
    /// refused. A process learns of it within seconds.
    pub fn is_upgraded(&self) -> bool {
        self.database.has_reached(UPGRADED)
    }

    /// Returns the audit trail, which is in the same database.
    pub fn trail(&self) -> &Recorder {
        &self.trail
    }

    /// Adds a template.
    pub async fn insert_template(&self, new: &Template) -> Result<()> {
        self.admit_template(new).await?;
        let new = new.clone();
        writing!(self.database, OneStatement, |c| template::insert(c, &new).await)
    }

    /// Returns the templates with this id or name that `scope` may use, its own first.
    pub async fn find_templates(&self, ident: &Ident, scope: &Scope) -> Result<Vec<Template>> {
        let (ident, scope) = (ident.clone(), scope.clone());
        reading!(self.database, |c| template::find(c, &ident, &scope).await)
    }

    /// Returns one page of the templates that `scope` may use, without the hidden templates of other projects.
    pub async fn list_templates(
        &self,
        scope: &Scope,
        page: &Page<TemplateSort>,
    ) -> Result<Vec<Template>> {
        let (scope, page) = (scope.clone(), page.clone());
        reading!(self.database, |c| template::list(c, &scope, &page, None).await)
            .map(|listed| listed.found)
    }

    /// Returns a part of a page of the templates that `scope` may use.
    pub async fn list_templates_part(
        &self,
        scope: &Scope,
        page: &Page<TemplateSort>,
        part: PagePart,
    ) -> Result<PageRows<Template>> {
        let (scope, page) = (scope.clone(), page.clone());
        reading!(self.database, |c| template::list(c, &scope, &page, Some(&part)).await)
    }

    /// Writes a template, if its version is still the one that was read. Returns the template with its new version.
    pub async fn update_template(&self, changed: &Template) -> Result<Template> {
        self.admit_template(changed).await?;
        let changed = changed.clone();
        writing!(self.database, OneStatement, |c| template::update(c, &changed).await)
    }

    /// Deletes a template, if its version is still the one that was read. `InUse` while a cluster refers to the template.
    pub async fn delete_template(&self, old: &Template) -> Result<()> {
        let old = old.clone();
        writing!(self.database, OneStatement, |c| template::delete(c, &old).await)
    }

    /// Adds a cluster with its node groups and events, unless the limits of its project or its owner forbid it; with `within` `None` no
    /// limit applies.
    ///
    /// `Duplicate` when another cluster has the same subdomain in the DNS zone.
    pub async fn insert_cluster(
        &self,
        new: &Cluster,
        groups: &[NodeGroup],
        events: &[Event],
        within: Option<&DefaultLimits>,
    ) -> Result<(), QuotaWriteError> {
        self.admit_cluster(new, groups).await?;
        let (new, groups, events) = (new.clone(), groups.to_vec(), events.to_vec());
        let (within, notifier) = (within.cloned(), self.notifier());
        let written = writing!(self.database, AnyStatementCanFail, |c| {
            let asked = QuotaDifference::of_new(&new, &groups);
            if let Some(defaults) = &within {
                c.lock_name(&new.project).await?;
                let by = new.user.as_str();
                if let Some(denial) = allowance::refusal(c, (&new, by), &asked, defaults).await? {
                    return Ok(Admission::Refused(denial));
                }
            }
            cluster::insert(c, &new).await?;
            subdomain::insert(c, &new).await?;
            for group in &groups {
                node_group::insert(c, group).await?;
            }
            asked.write(c, &new).await?;
            event::append(c, new.id, &events).await?;
            tell(c, &notifier, (None, Some(&new))).await?;
            Ok(Admission::Granted(()))
        })?;
        written.granted()
    }

    /// Returns the clusters with this id or name in `scope`.
    pub async fn find_clusters(&self, ident: &Ident, scope: &Scope) -> Result<Vec<Cluster>> {
        let (ident, scope) = (ident.clone(), scope.clone());
        reading!(self.database, |c| cluster::find(c, &ident, &scope).await)
    }

    /// Returns one page of the clusters in `scope`.
    pub async fn list_clusters(
        &self,
        scope: &Scope,
        page: &Page<ClusterSort>,
    ) -> Result<Vec<Cluster>> {
        let (scope, page) = (scope.clone(), page.clone());
        reading!(self.database, |c| cluster::list(c, &scope, &page, None).await)
            .map(|listed| listed.found)
    }

    /// Returns a part of a page of the clusters in `scope`.
    pub async fn list_clusters_part(
        &self,
        scope: &Scope,
        page: &Page<ClusterSort>,
        part: PagePart,
    ) -> Result<PageRows<Cluster>> {
        let (scope, page) = (scope.clone(), page.clone());
        reading!(self.database, |c| cluster::list(c, &scope, &page, Some(&part)).await)
    }

    /// Returns the numbers of clusters and of their members in `scope`.
    pub async fn count_clusters(&self, scope: &Scope) -> Result<(u64, u64)> {
        let scope = scope.clone();
        reading!(self.database, |c| cluster::count(c, &scope).await)
    }

    /// Returns the ids of all clusters, with which a conductor starts.
    pub async fn cluster_ids(&self) -> Result<Vec<ClusterUuid>> {
        reading!(self.database, |c| cluster::ids(c).await)
    }

    /// Returns the node groups of a cluster, oldest first.
    pub async fn groups_of(&self, of: ClusterUuid) -> Result<Vec<NodeGroup>> {
        reading!(self.database, |c| node_group::of(c, of).await)
    }

    /// Returns the node groups of each of these clusters, oldest first.
    pub async fn groups_of_each(
        &self,
        of: &[ClusterUuid],
    ) -> Result<BTreeMap<ClusterUuid, Vec<NodeGroup>>> {
        let of = of.to_vec();
        reading!(self.database, |c| node_group::of_each(c, &of).await)
    }

    /// Writes a change, if every version in it is still the one that was read; otherwise writes nothing. Returns the cluster with its new
    /// version.
    pub async fn change_cluster(&self, change: &ClusterChange) -> Result<Cluster> {
        self.admit_change(change).await?;
        let (change, notifier) = (change.clone(), self.notifier());
        let written = writing!(self.database, AnyStatementCanFail, |c| {
            let asked = QuotaDifference::by(c, &change).await?;
            write(c, &change, &asked, &notifier).await
        })?;
        self.bell.ring(written.id);
        Ok(written)
    }

    /// As [`Store::change_cluster`], unless the limits of the cluster's project or of the requesting user forbid the change.
    pub async fn change_within(
        &self,
        change: &ClusterChange,
        defaults: &DefaultLimits,
    ) -> Result<Cluster, QuotaWriteError> {
        self.admit_change(change).await?;
        let (change, defaults) = (change.clone(), defaults.clone());
        let notifier = self.notifier();
        let written = writing!(self.database, AnyStatementCanFail, |c| {
            c.lock_name(&change.cluster.project).await?;
            // A change that was decided on an old version is stale: it is neither counted nor refused by a limit.
            cluster::check_version(c, &change.cluster).await?;
            let asked = QuotaDifference::by(c, &change).await?;
            let by = (&change.cluster, change.by());
            match allowance::refusal(c, by, &asked, &defaults).await? {
                Some(denial) => Ok(Admission::Refused(denial)),
                None => write(c, &change, &asked, &notifier).await.map(Admission::Granted),
            }
        })?;
        let written = written.granted::<QuotaWriteError>()?;
        self.bell.ring(written.id);
        Ok(written)
    }

    /// Returns the outbox of notices.
    pub fn outbox(&self) -> Outbox {
        Outbox::new(self.database.clone())
    }

    /// Removes a letter that cannot be delivered from the outbox, and adds the event `said` about it.
    ///
    /// `NoOwner` when the cluster or VM of the event is deleted; the letter then stays. A letter that was removed before adds no second
    /// event.
    pub async fn give_up_letter(&self, letter: i64, said: Option<&AnyEvent>) -> Result<()> {
        let reported = said.cloned();
        writing!(self.database, AnyStatementCanFail, |c| match (
            outbox::delete(c, letter).await?,
            reported
        ) {
            (true, Some(AnyEvent::Cluster(said))) => {
                event::append(c, said.cluster, std::slice::from_ref(&said)).await
            }
            (true, Some(AnyEvent::Vm(said))) => {
                vm_event::append(c, said.vm, std::slice::from_ref(&said)).await
            }
            (true, None) | (false, _) => Ok(()),
        })?;
        if let Some(AnyEvent::Cluster(said)) = said {
            self.bell.ring(said.cluster);
        }
        Ok(())
    }

    /// Deletes a cluster with all its rows, if its version is still the one that was read. `InUse` while its ledger has an entry.
    pub async fn delete_cluster(&self, old: &Cluster) -> Result<()> {
        let (id, old, notifier) = (old.id, old.clone(), self.notifier());
        let extent = if notifier.is_on() { AnyStatementCanFail } else { OneStatement };
        writing!(self.database, extent, |c| {
            tell(c, &notifier, (Some(&old), None)).await?;
            cluster::delete(c, &old).await
        })?;
        self.bell.ring(id);
        Ok(())
    }
}

async fn write(
    connection: &mut Connection,
    change: &ClusterChange,
    asked: &QuotaDifference,
    notifier: &NotificationWriter,
) -> Result<Cluster> {
    let before = match notifier.is_on() {
        true => cluster::some(connection, &[change.cluster.id]).await?.pop(),
        false => None,
    };
    let written = cluster::update(connection, &change.cluster).await?;
    for group in &change.removed {
        node_group::delete(connection, group).await?;
    }
    for group in &change.changed {
        node_group::update(connection, group).await?;
    }
    for group in &change.added {
        node_group::insert(connection, group).await?;
    }
    asked.write(connection, &written).await?;
    let at = change.events.iter().map(|event| event.at).max().unwrap_or_default();
    let lost = outbox::append(connection, &change.letters, at).await?;
    let mut events = change.events.clone();
    if lost > 0 {
        events.push(Event {
            id: None,
            cluster: written.id,
            at,
            severity: Severity::Error,
            reason: "NoticeLost".to_owned(),
            message: format!("{lost} notices were dropped because the outbox is full: check the webhook and the mail server"),
        });
    }
    event::append(connection, written.id, &events).await?;
    if let Some(before) = &before {
        tell(connection, notifier, (Some(before), Some(&written))).await?;
    }
    Ok(written)
}

/// Writes the notification about a change of a cluster, from its state before to its state after.
async fn tell(
    connection: &mut Connection,
    notifier: &NotificationWriter,
    (before, after): (Option<&Cluster>, Option<&Cluster>),
) -> Result<()> {
    let Some(cluster) = after.or(before).filter(|_| notifier.is_on()) else { return Ok(()) };
    let groups = node_group::of(connection, cluster.id).await?;
    let told = cluster_notification(before, after, &groups, notifier.now());
    notifier.write(connection, told.as_slice()).await
}
