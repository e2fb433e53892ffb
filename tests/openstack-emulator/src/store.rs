//! Every object of every service, in the order they were made.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::kept::age;

/// What an object is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are OpenStack's")]
pub enum Kind {
    Domain,
    Project,
    User,
    Role,
    Trust,
    ApplicationCredential,
    Region,
    Service,
    Endpoint,
    Image,
    Flavor,
    Keypair,
    Server,
    ServerGroup,
    ComputeHost,
    Aggregate,
    Provider,
    Network,
    Subnet,
    Router,
    Port,
    SecurityGroup,
    SecurityGroupRule,
    FloatingIp,
    LoadBalancer,
    Listener,
    Pool,
    Member,
    HealthMonitor,
    LoadBalancerFlavor,
    LoadBalancerFlavorProfile,
    Zone,
    Recordset,
    VolumeType,
    Volume,
    Snapshot,
}

/// One object of a service.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Object {
    /// Its id: a UUID, mostly.
    pub id: String,
    /// The project it belongs to; empty when it belongs to none.
    pub project: String,
    /// When it was made.
    #[serde(with = "age")]
    pub born: Instant,
    /// What its service shows of it.
    pub body: Map<String, Value>,
    /// What the service knows besides.
    pub hidden: Map<String, Value>,
}

impl Object {
    /// The text of a field that is shown; empty when there is none.
    pub fn text(&self, field: &str) -> &str {
        self.body.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text of a field that is not shown; empty when there is none.
    pub fn note(&self, field: &str) -> &str {
        self.hidden.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number in a field that is shown; 0 when there is none.
    pub fn number(&self, field: &str) -> i64 {
        self.body.get(field).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Whether a field that is shown is true.
    pub fn is(&self, field: &str) -> bool {
        self.body.get(field).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The list in a field that is shown; empty when there is none.
    pub fn list(&self, field: &str) -> &[Value] {
        self.body.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Sets a field that is shown.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.body.insert(field.to_owned(), value.into());
    }

    /// Sets a field that is not shown.
    pub fn keep(&mut self, field: &str, value: impl Into<Value>) {
        self.hidden.insert(field.to_owned(), value.into());
    }

    /// All that is shown, as JSON.
    pub fn shown(&self) -> Value {
        Value::Object(self.body.clone())
    }
}

#[derive(Debug, Default)]
struct Table {
    rows: BTreeMap<u64, Object>,
    by_id: HashMap<String, u64>,
    by_parent: HashMap<String, BTreeSet<u64>>,
    counts: HashMap<String, usize>,
    next: u64,
}

/// The id of what an object is part of for good, where that is asked for often.
fn parent(kind: Kind, object: &Object) -> Option<&str> {
    let fields = [(Kind::SecurityGroupRule, "security_group_id"), (Kind::Recordset, "zone_id")];
    let (_, field) = fields.into_iter().find(|(part, _)| *part == kind)?;
    Some(object.text(field))
}

/// All objects.
#[derive(Debug, Default)]
pub(crate) struct Store {
    tables: BTreeMap<Kind, Table>,
}

impl Store {
    /// Adds an object, the youngest of its kind.
    pub(crate) fn insert(&mut self, kind: Kind, object: Object) {
        let table = self.tables.entry(kind).or_default();
        table.next += 1;
        table.by_id.insert(object.id.clone(), table.next);
        *table.counts.entry(object.project.clone()).or_default() += 1;
        if let Some(parent) = parent(kind, &object) {
            table.by_parent.entry(parent.to_owned()).or_default().insert(table.next);
        }
        table.rows.insert(table.next, object);
    }

    /// The object of that id.
    pub(crate) fn get(&self, kind: Kind, id: &str) -> Option<&Object> {
        let table = self.tables.get(&kind)?;
        table.rows.get(table.by_id.get(id)?)
    }

    /// The object of that id, to be changed.
    pub(crate) fn get_mut(&mut self, kind: Kind, id: &str) -> Option<&mut Object> {
        let table = self.tables.get_mut(&kind)?;
        table.rows.get_mut(table.by_id.get(id)?)
    }

    /// Takes an object out.
    pub(crate) fn remove(&mut self, kind: Kind, id: &str) -> Option<Object> {
        let table = self.tables.get_mut(&kind)?;
        let row = table.by_id.remove(id)?;
        let object = table.rows.remove(&row)?;
        if let Some(siblings) = parent(kind, &object).and_then(|it| table.by_parent.get_mut(it)) {
            siblings.remove(&row);
        }
        if let Some(count) = table.counts.get_mut(&object.project) {
            *count = count.saturating_sub(1);
        }
        Some(object)
    }

    /// All there is, the oldest of each kind first.
    pub(crate) fn every(&self) -> impl Iterator<Item = (Kind, &Object)> {
        let all = self.tables.iter();
        all.flat_map(|(kind, table)| table.rows.values().map(|object| (*kind, object)))
    }

    /// All of a kind, the oldest first.
    pub(crate) fn all(&self, kind: Kind) -> impl DoubleEndedIterator<Item = &Object> {
        self.tables.get(&kind).into_iter().flat_map(|table| table.rows.values())
    }

    /// The parts of a security group or a zone, the oldest first.
    pub(crate) fn parts(
        &self,
        kind: Kind,
        parent: &str,
    ) -> impl Iterator<Item = &Object> + use<'_> {
        let table = self.tables.get(&kind);
        let rows = table.and_then(|table| Some((table, table.by_parent.get(parent)?)));
        rows.into_iter().flat_map(|(table, rows)| rows.iter().filter_map(|row| table.rows.get(row)))
    }

    /// All of a kind, the oldest first, to be changed.
    pub(crate) fn all_mut(&mut self, kind: Kind) -> impl Iterator<Item = &mut Object> {
        self.tables.get_mut(&kind).into_iter().flat_map(|table| table.rows.values_mut())
    }

    /// The ids of those of a kind that `want` wants.
    pub(crate) fn ids(&self, kind: Kind, want: impl Fn(&Object) -> bool) -> Vec<String> {
        self.all(kind).filter(|object| want(object)).map(|object| object.id.clone()).collect()
    }

    /// The first of a kind that `want` wants.
    pub(crate) fn find(&self, kind: Kind, want: impl Fn(&Object) -> bool) -> Option<&Object> {
        self.all(kind).find(|object| want(object))
    }

    /// How many of a kind a project has.
    pub(crate) fn count(&self, kind: Kind, project: &str) -> usize {
        let table = self.tables.get(&kind);
        table.and_then(|table| table.counts.get(project)).copied().unwrap_or_default()
    }
}
