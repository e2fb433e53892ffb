//! The changes between two JSON bodies, as lines that a person reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::versions::ranges;

/// The longest value in a line, in characters.
const LONGEST_VALUE: usize = 100;

/// The kind of a change at a place of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    Missing,
    Extra,
    Value,
}

/// One change of a body.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The place, such as `/nodes/0-3/name`. It is empty for the body itself.
    pub place: String,
    pub kind: ChangeKind,
    text: String,
}

impl Change {
    fn here(kind: ChangeKind, text: impl Into<String>) -> Change {
        Change { place: String::new(), kind, text: text.into() }
    }

    fn below(mut self, name: &str) -> Change {
        self.place = format!("/{name}{}", self.place);
        self
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "the body" } else { &self.place };
        write!(f, "{place} {}", self.text)
    }
}

/// Returns the changes from the body `want` to the body `got`.
pub fn changes(want: &Value, got: &Value) -> Vec<Change> {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => of_fields(want, got),
        (Value::Array(want), Value::Array(got)) => of_items(want, got),
        _ if want == got => Vec::new(),
        _ => {
            let text = format!("is {}, not {}", short(got), short(want));
            vec![Change::here(ChangeKind::Value, text)]
        }
    }
}

fn of_fields(want: &Map<String, Value>, got: &Map<String, Value>) -> Vec<Change> {
    let names: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
    let of_field = |name: &String| match (want.get(name), got.get(name)) {
        (Some(want), Some(got)) => changes(want, got),
        (Some(_), None) => vec![Change::here(ChangeKind::Missing, "is missing")],
        (None, Some(got)) => {
            vec![Change::here(ChangeKind::Extra, format!("is extra: {}", short(got)))]
        }
        (None, None) => Vec::new(),
    };
    names.into_iter().flat_map(|name| of_field(name).into_iter().map(|it| it.below(name))).collect()
}

/// Compares lists item by item. Items with names are compared by name if the lists have other names.
fn of_items(want: &[Value], got: &[Value]) -> Vec<Change> {
    if let (Some(wanted), Some(found)) = (named(want), named(got))
        && names(want) != names(got)
    {
        let mut found = of_fields(&wanted, &found);
        if found.is_empty() {
            found.push(Change::here(ChangeKind::Value, "is in another order"));
        }
        return found;
    }
    if want.len() != got.len() {
        let text = format!("has {} items, not {}", got.len(), want.len());
        return vec![Change::here(ChangeKind::Value, text)];
    }
    let mut places: BTreeMap<Change, Vec<usize>> = BTreeMap::new();
    for (at, (want, got)) in want.iter().zip(got).enumerate() {
        for change in changes(want, got) {
            places.entry(change).or_default().push(at);
        }
    }
    places.into_iter().map(|(change, at)| change.below(&ranges(at))).collect()
}

/// Returns the items of a list by their names, if each has another name.
fn named(items: &[Value]) -> Option<Map<String, Value>> {
    let mut named = Map::new();
    for (item, name) in items.iter().zip(names(items)) {
        if named.insert(name?.to_owned(), item.clone()).is_some() {
            return None;
        }
    }
    Some(named)
}

fn names(items: &[Value]) -> Vec<Option<&str>> {
    items.iter().map(|it| it.as_str().or_else(|| it["name"].as_str())).collect()
}

/// Returns a value as JSON, shortened.
pub(crate) fn short(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    if text.chars().count() <= LONGEST_VALUE {
        return text;
    }
    text.chars().take(LONGEST_VALUE).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(want: Value, got: Value, lines: &[&str]) {
        let found: Vec<_> = changes(&want, &got).iter().map(ToString::to_string).collect();
        assert_eq!(found, lines);
    }

    #[test]
    fn a_change_names_its_field() {
        check(
            json!({"a": {"b": 1, "c": null}, "d": [1]}),
            json!({"a": {"b": "1", "e": 2}, "d": [1]}),
            &["/a/b is \"1\", not 1", "/a/c is missing", "/a/e is extra: 2"],
        );
        check(json!(null), json!([]), &["the body is [], not null"]);
        check(json!({"a": {}}), json!({"a": []}), &["/a is [], not {}"]);
        check(json!({"a": 1}), json!({"a": 1}), &[]);
    }

    #[test]
    fn equal_changes_of_items_stand_together() {
        check(
            json!({"nodes": [{"a": 1}, {"a": 1}, {}, {"a": 1}]}),
            json!({"nodes": [{"a": 2}, {"a": 2}, {}, {"a": 2}]}),
            &["/nodes/0-1, 3/a is 2, not 1"],
        );
        check(json!([{}]), json!([{}, {}]), &["the body has 2 items, not 1"]);
    }

    #[test]
    fn items_with_other_names_are_compared_by_name() {
        check(
            json!([{"name": "a", "b": 1}, {"name": "c"}]),
            json!([{"name": "d"}, {"name": "a", "b": 2}]),
            &["/a/b is 2, not 1", "/c is missing", "/d is extra: {\"name\":\"d\"}"],
        );
        check(json!(["a", "b"]), json!(["b", "a"]), &["the body is in another order"]);
        check(json!(["a", "a"]), json!(["a"]), &["the body has 1 items, not 2"]);
    }

    #[test]
    fn a_long_value_is_shortened() {
        let long = "x".repeat(200);
        let text = changes(&json!(1), &json!(long))[0].to_string();
        assert_eq!(text, format!("the body is \"{}…, not 1", "x".repeat(99)));
    }
}
