//! Merges two configs in the same way as Ignition merges a config with the configs in its `ignition.config.merge`.
//!
//! The child's values win. A merged list is the union of both lists, and entries with the same key are merged in turn. If the child has a
//! file at a path, the parent's directory or link at that path is dropped.

use ignition_config::v3_3::Config;
use serde_json::{Map, Value};

use crate::lists::{is_appended, key, lists_with_same_keys};

/// Returns `parent` overlaid with `child`.
pub fn merge(parent: &Config, child: &Config) -> Config {
    let value = |config: &Config| serde_json::to_value(config).expect("a config is JSON");
    let merged = merge_values(value(parent), value(child));
    serde_json::from_value(merged).expect("two configs of one type make a third")
}

fn merge_values(parent: Value, child: Value) -> Value {
    match (parent, child) {
        (Value::Object(parent), Value::Object(child)) => Value::Object(merge_fields(parent, child)),
        (parent, Value::Null) => parent,
        (_, child) => child,
    }
}

fn merge_fields(parent: Map<String, Value>, child: Map<String, Value>) -> Map<String, Value> {
    let whole_child = child.clone();
    let mut merged = Map::new();
    for (field, value) in parent {
        let over = child.get(&field).cloned().unwrap_or_default();
        let value = match (value, over) {
            (Value::Array(entries), over) => {
                let others = over.as_array().cloned().unwrap_or_default();
                let entries = merge_lists(&field, entries, others, &whole_child);
                if entries.is_empty() { Value::Null } else { Value::Array(entries) }
            }
            (value, over) => merge_values(value, over),
        };
        if !value.is_null() {
            merged.insert(field, value);
        }
    }
    for (field, value) in child {
        if !value.is_null() {
            merged.entry(field.clone()).or_insert(value);
        }
    }
    merged
}

fn merge_lists(
    list: &str,
    parent: Vec<Value>,
    child: Vec<Value>,
    whole_child: &Map<String, Value>,
) -> Vec<Value> {
    if is_appended(list) {
        return parent.into_iter().chain(child).collect();
    }
    let keys = |entries: &[Value]| entries.iter().map(|it| key(list, it)).collect::<Vec<_>>();
    let parent_keys = keys(&parent);
    let child_keys = keys(&child);
    let elsewhere: Vec<Option<String>> = lists_with_same_keys(list)
        .filter_map(|other| Some((other, whole_child.get(other)?.as_array()?)))
        .flat_map(|(other, entries)| entries.iter().map(move |it| key(other, it)))
        .collect();

    let mut merged = Vec::new();
    for (entry, its_key) in parent.into_iter().zip(&parent_keys) {
        match child_keys.iter().rposition(|it| it == its_key) {
            // A header without a value removes the parent's header.
            Some(place)
                if list == "httpHeaders"
                    && child[place].get("value").is_none_or(Value::is_null) => {}
            Some(place) => merged.push(merge_values(entry, child[place].clone())),
            None if elsewhere.contains(its_key) => {}
            None => merged.push(entry),
        }
    }
    let new = child.into_iter().zip(child_keys).filter(|(_, key)| !parent_keys.contains(key));
    merged.extend(new.map(|(entry, _)| entry));
    merged
}

#[cfg(test)]
mod tests;
