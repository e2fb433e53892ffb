//! Pages, filters and sort order of lists, for all services.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::index::FLAGS;
use crate::object::Object;
use crate::request::{ApiError, ApiRequest, ApiResult};
use crate::store::Condition;

pub(crate) struct Page<'o> {
    pub(crate) objects: Vec<&'o Object>,
    /// The URL of the next page. `None` on the last page.
    pub(crate) next: Option<String>,
}

/// Cuts the requested page out of `objects`, which are sorted. `key` is the text of an object that markers contain.
pub(crate) fn cut<'o>(
    asked: &ApiRequest,
    objects: Vec<&'o Object>,
    most: usize,
    key: fn(&Object) -> &str,
) -> ApiResult<Page<'o>> {
    let limit = match asked.query("limit") {
        None => most,
        Some(text) => {
            let limit: usize = text
                .parse()
                .map_err(|_| ApiError::bad(format!("Invalid input for query parameters limit. Value: {text}. '{text}' is not a non-negative integer")))?;
            if limit == 0 { most } else { limit.min(most) }
        }
    };
    let from = match asked.query("marker").filter(|marker| !marker.is_empty()) {
        None => asked.query("offset").and_then(|offset| offset.parse().ok()).unwrap_or(0),
        Some(marker) => {
            let at = objects.iter().position(|object| key(object) == marker);
            at.ok_or_else(|| ApiError::bad(format!("marker [{marker}] not found")))? + 1
        }
    };
    let more = objects.len() > from + limit;
    let objects: Vec<&Object> = objects.into_iter().skip(from).take(limit).collect();
    let next = match objects.last() {
        Some(last) if more => Some(next_url(asked, key(last))),
        _ => None,
    };
    Ok(Page { objects, next })
}

fn next_url(asked: &ApiRequest, marker: &str) -> String {
    let kept = asked.query.iter().filter(|(key, _)| key != "marker");
    let kept = kept.map(|(key, value)| (key.as_str(), value.as_str()));
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(kept.chain([("marker", marker)]));
    format!("{}{}?{}", asked.base, asked.path, query.finish())
}

/// Sorts objects by one or more keys.
pub(crate) fn sort(objects: &mut [&Object], keys: &[(String, bool)]) {
    objects.sort_by(|left, right| {
        let mut orders = keys.iter().map(|(key, descending)| {
            let order = compare(left.body.get(key), right.body.get(key));
            if *descending { order.reverse() } else { order }
        });
        orders.find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
    });
}

/// The keys and directions in `sort_key` and `sort_dir`.
pub(crate) fn order(asked: &ApiRequest) -> Vec<(String, bool)> {
    let mut directions = asked.query.iter().filter(|(key, _)| key == "sort_dir");
    let keys = asked.query.iter().filter(|(key, _)| key == "sort_key");
    keys.map(|(_, key)| {
        let descending = directions.next().is_some_and(|(_, value)| value == "desc");
        (key.clone(), descending)
    })
    .collect()
}

fn compare(left: Option<&Value>, right: Option<&Value>) -> Ordering {
    match (left, right) {
        (Some(Value::Number(left)), Some(Value::Number(right))) => {
            left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal)
        }
        (left, right) => words(left).cmp(&words(right)),
    }
}

/// A value as a query would write it.
pub(crate) fn words(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(true)) => "true".into(),
        Some(Value::Bool(false)) => "false".into(),
        Some(other) => other.to_string(),
    }
}

/// Whether a value equals the text in a query. Flags may be written in any case.
pub(crate) fn equals(value: Option<&Value>, wanted: &str) -> bool {
    match value {
        Some(Value::Bool(value)) => is_yes(wanted) == *value,
        Some(Value::Array(values)) => values.iter().any(|value| equals(Some(value), wanted)),
        Some(Value::String(text)) => text == wanted,
        value => words(value) == wanted,
    }
}

fn is_yes(text: &str) -> bool {
    ["true", "1", "t", "yes", "on"].contains(&text.to_ascii_lowercase().as_str())
}

/// The index entry for objects whose field has one of these values by [`equals`]. `None` if missing values match too.
pub(crate) fn said<'a>(field: &'a str, values: &[&'a str]) -> Option<Condition<'a>> {
    if FLAGS.contains(&field) {
        return values.iter().all(|value| is_yes(value)).then(|| vec![(field, "true")]);
    }
    let says_it = values.iter().all(|value| !value.is_empty());
    says_it.then(|| values.iter().map(|value| (field, *value)).collect())
}

/// The index entries for the tags in a query.
pub(crate) fn said_tags(asked: &ApiRequest) -> Vec<Condition<'_>> {
    let mut wanted = Vec::new();
    for (key, value) in &asked.query {
        let tags = value.split(',').filter(|tag| !tag.is_empty()).map(|tag| ("tags", tag));
        match key.as_str() {
            "tags" => wanted.extend(tags.map(|tag| vec![tag])),
            "tags-any" => wanted.push(tags.collect()),
            _ => {}
        }
    }
    wanted
}

/// Whether an object passes the tag filters `tags`, `tags-any`, `not-tags`, `not-tags-any` of a query.
pub(crate) fn tagged(asked: &ApiRequest, tags: &[Value]) -> bool {
    let has = |tag: &str| tags.iter().any(|mine| mine == tag);
    asked.query.iter().all(|(key, value)| {
        let mut wanted = value.split(',').filter(|tag| !tag.is_empty());
        match key.as_str() {
            "tags" => wanted.all(has),
            "tags-any" => wanted.any(has),
            "not-tags" => !wanted.all(has),
            "not-tags-any" => !wanted.any(has),
            _ => true,
        }
    })
}

/// Keeps only the fields that `fields` names.
pub(crate) fn pick(asked: &ApiRequest, body: Value) -> Value {
    let fields: Vec<&str> = asked
        .query
        .iter()
        .filter(|(key, _)| key == "fields")
        .flat_map(|(_, value)| value.split(','))
        .collect();
    let Value::Object(all) = body else { return body };
    let is_wanted = |key: &str| fields.is_empty() || fields.contains(&key);
    Value::Object(all.into_iter().filter(|(key, _)| is_wanted(key)).collect())
}

/// Links in the form of Nova, Neutron and Octavia.
pub(crate) fn links(next: Option<&str>) -> Option<Value> {
    next.map(|href| json!([{"rel": "next", "href": href}]))
}
