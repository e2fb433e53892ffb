//! Stores every object of every service, in the order of creation.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::index::{self, Index, PROJECT};
use crate::object::{Kind, Object};

#[derive(Debug, Default)]
struct Table {
    rows: BTreeMap<u64, Object>,
    by_id: HashMap<String, u64>,
    index: Index,
    /// The row that was last given out for changes. The index does not contain the row until `settle`.
    lent: Option<u64>,
    next: u64,
}

impl Table {
    /// Adds the row in `lent` to the index again.
    fn settle(&mut self, kind: Kind) {
        if let Some(row) = self.lent.take()
            && let Some(object) = self.rows.get(&row)
        {
            self.index.add(kind, row, object);
        }
    }

    /// The rows whose field contains the text, except the row in `lent`.
    fn rows(&self, field: &str, text: &str) -> &[u64] {
        match field {
            ID => self.by_id.get(text).map_or(&[], std::slice::from_ref),
            field => self.index.rows(field, text),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Store {
    tables: BTreeMap<Kind, Table>,
    /// How many objects were visited in order to find others.
    looked_at: Cell<u64>,
}

/// The id of an object, used like a field.
const ID: &str = "id";

/// One condition of a list: the object has at least one of these texts, each in its field.
pub(crate) type Condition<'a> = Vec<(&'a str, &'a str)>;

impl Store {
    /// Adds an object as the youngest of its kind.
    pub(crate) fn insert(&mut self, kind: Kind, object: Object) {
        let table = self.tables.entry(kind).or_default();
        table.next += 1;
        table.by_id.insert(object.id.clone(), table.next);
        table.index.add(kind, table.next, &object);
        table.rows.insert(table.next, object);
    }

    pub(crate) fn get(&self, kind: Kind, id: &str) -> Option<&Object> {
        let table = self.tables.get(&kind)?;
        table.rows.get(table.by_id.get(id)?)
    }

    /// The object with this id, for changes.
    pub(crate) fn get_mut(&mut self, kind: Kind, id: &str) -> Option<&mut Object> {
        let table = self.tables.get_mut(&kind)?;
        let row = *table.by_id.get(id)?;
        table.settle(kind);
        let object = table.rows.get_mut(&row)?;
        table.index.remove(kind, row, object);
        table.lent = Some(row);
        Some(object)
    }

    /// Changes the object with this id, if it exists.
    pub(crate) fn change(&mut self, kind: Kind, id: &str, change: impl FnOnce(&mut Object)) {
        if let Some(object) = self.get_mut(kind, id) {
            change(object);
        }
    }

    /// Sets a public field of the object with this id, if it exists.
    pub(crate) fn set(&mut self, kind: Kind, id: &str, field: &str, value: impl Into<Value>) {
        self.change(kind, id, |object| object.set(field, value));
    }

    /// Sets a hidden field of the object with this id, if it exists.
    pub(crate) fn keep(&mut self, kind: Kind, id: &str, field: &str, value: impl Into<Value>) {
        self.change(kind, id, |object| object.keep(field, value));
    }

    pub(crate) fn remove(&mut self, kind: Kind, id: &str) -> Option<Object> {
        let table = self.tables.get_mut(&kind)?;
        table.settle(kind);
        let row = table.by_id.remove(id)?;
        let object = table.rows.remove(&row)?;
        table.index.remove(kind, row, &object);
        Some(object)
    }

    /// All objects, sorted by kind and then by age, the oldest first.
    pub(crate) fn every(&self) -> impl Iterator<Item = (Kind, &Object)> {
        let all = self.tables.iter();
        all.flat_map(|(kind, table)| table.rows.values().map(|object| (*kind, object)))
    }

    /// All objects of a kind, the oldest first.
    pub(crate) fn all(&self, kind: Kind) -> impl DoubleEndedIterator<Item = &Object> {
        let all = self.tables.get(&kind).into_iter().flat_map(|table| table.rows.values());
        all.inspect(|_| self.look())
    }

    /// The objects of a kind whose field is this text or contains it, the oldest first.
    pub(crate) fn with_text(
        &self,
        kind: Kind,
        field: &str,
        text: &str,
    ) -> impl DoubleEndedIterator<Item = &Object> + use<'_> {
        let mut found = self.narrowed(kind, &[vec![(field, text)]]);
        found.retain(|object| index::says(object, field, text));
        found.into_iter()
    }

    /// A superset of the objects that meet all conditions, the oldest first. Only the most selective indexed condition is applied.
    pub(crate) fn narrowed(&self, kind: Kind, wanted: &[Condition<'_>]) -> Vec<&Object> {
        let Some(table) = self.tables.get(&kind) else { return Vec::new() };
        let known = |said: &&Condition<'_>| {
            said.iter().all(|(field, _)| *field == ID || index::has(kind, field))
        };
        let count = |said: &&Condition<'_>| -> usize {
            said.iter().map(|(field, text)| table.rows(field, text).len()).sum()
        };
        let Some(narrowest) = wanted.iter().filter(known).min_by_key(count) else {
            return self.all(kind).collect();
        };
        let rows = narrowest.iter().flat_map(|(field, text)| table.rows(field, text));
        // Each row once. The row in `lent` is always included, because the index does not know its current texts.
        let rows: BTreeSet<u64> = rows.copied().chain(table.lent).collect();
        rows.iter().filter_map(|row| table.rows.get(row)).inspect(|_| self.look()).collect()
    }

    /// The ids of the objects of a kind whose field contains this text.
    pub(crate) fn ids(&self, kind: Kind, field: &str, text: &str) -> Vec<String> {
        self.with_text(kind, field, text).map(|object| object.id.clone()).collect()
    }

    /// The oldest object of a kind with this name.
    pub(crate) fn named(&self, kind: Kind, name: &str) -> Option<&Object> {
        self.with_text(kind, "name", name).next()
    }

    /// The oldest object of a kind that `want` accepts. Visits all objects of the kind.
    pub(crate) fn find(&self, kind: Kind, want: impl Fn(&Object) -> bool) -> Option<&Object> {
        self.all(kind).find(|object| want(object))
    }

    /// The number of objects of a kind whose field contains this text.
    pub(crate) fn how_many(&self, kind: Kind, field: &str, text: &str) -> usize {
        let Some(table) = self.tables.get(&kind) else { return 0 };
        let lent = table.lent.and_then(|row| table.rows.get(&row));
        let lent = lent.filter(|object| index::says(object, field, text));
        table.rows(field, text).len() + usize::from(lent.is_some())
    }

    /// The number of objects of a kind in a project.
    pub(crate) fn count(&self, kind: Kind, project: &str) -> usize {
        self.how_many(kind, PROJECT, project)
    }

    /// How many objects were visited in order to find others. Lookups by id do not count.
    pub(crate) fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }

    fn look(&self) {
        self.looked_at.set(self.looked_at.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;
    use tokio::time::Instant;

    use super::*;

    fn port(id: &str, project: &str, groups: &[&str]) -> Object {
        let body = serde_json::json!({"id": id, "name": id, "security_groups": groups});
        let Value::Object(body) = body else { unreachable!("it is one") };
        let (born, project) = (Instant::now(), project.to_owned());
        Object { id: id.to_owned(), project, born, body, hidden: Map::new() }
    }

    #[track_caller]
    fn finds(store: &Store, field: &str, text: &str, want: &[&str]) {
        let found: Vec<&str> =
            store.with_text(Kind::Port, field, text).map(|one| one.id.as_str()).collect();
        assert_eq!(found, want, "{field} {text}");
        assert_eq!(store.how_many(Kind::Port, field, text), want.len(), "{field} {text}");
    }

    #[test]
    fn an_object_is_found_by_its_current_fields() {
        let mut store = Store::default();
        store.insert(Kind::Port, port("a", "p", &["g", "h", "g"]));
        store.insert(Kind::Port, port("b", "q", &["g"]));
        store.insert(Kind::Port, port("c", "p", &["h"]));
        finds(&store, "security_groups", "g", &["a", "b"]);
        finds(&store, PROJECT, "p", &["a", "c"]);
        store.get_mut(Kind::Port, "a").unwrap().set("security_groups", ["h"].as_slice());
        // Twice: before and after the lent row is added to the index again.
        for _ in 0..2 {
            finds(&store, "security_groups", "g", &["b"]);
            finds(&store, "security_groups", "h", &["a", "c"]);
            store.get_mut(Kind::Port, "b").unwrap();
        }
        store.remove(Kind::Port, "b").unwrap();
        finds(&store, "security_groups", "g", &[]);
        store.remove(Kind::Port, "a").unwrap();
        finds(&store, "security_groups", "h", &["c"]);
        finds(&store, PROJECT, "p", &["c"]);
    }

    #[test]
    fn the_most_selective_condition_is_applied() {
        let mut store = Store::default();
        for number in 0..100 {
            store.insert(Kind::Port, port(&format!("n{number}"), "p", &["g"]));
        }
        let wanted = |name| [vec![(PROJECT, "p")], vec![("name", name)], vec![("unknown", "x")]];
        assert_eq!(store.narrowed(Kind::Port, &wanted("n7")).len(), 1);
        assert_eq!(store.narrowed(Kind::Port, &wanted("no")).len(), 0);
        assert_eq!(store.looked_at(), 1);
        assert_eq!(store.narrowed(Kind::Port, &[vec![("unknown", "x")]]).len(), 100);
    }
}
