//! Checks that no answer holds a long list in memory: the list is read and written in parts, or is bounded.

use std::collections::BTreeSet;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::StreamExt;
use http::StatusCode;
use serde_json::Value;

use crate::listing::PART;

/// The reason why a list stays small in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBound {
    /// The list is read and written in parts.
    InParts,
    /// The list has at most so many elements, for this reason.
    AtMost(usize, &'static str),
    /// The list is read from a machine or a cloud, and bounded there.
    ByDriver(&'static str),
}

/// Returns the paths whose `GET` answers with a list: with an object of one array and nothing else but `next` and `links`.
pub fn lists(document: &Value) -> BTreeSet<String> {
    let all = document["paths"].as_object().unwrap().iter();
    let is_list = |(_, item): &(&String, &Value)| {
        let answer = &item["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let answer = match answer["$ref"].as_str() {
            Some(reference) => document.pointer(&reference[1..]).unwrap(),
            None => answer,
        };
        let Some(fields) = answer["properties"].as_object() else { return false };
        let own = fields.iter().filter(|(name, _)| !["next", "links"].contains(&name.as_str()));
        let kinds: Vec<&Value> = own.map(|(_, shape)| &shape["type"]).collect();
        kinds == ["array"]
    };
    all.filter(is_list).map(|(path, _)| path.clone()).collect()
}

/// Checks that the answer to a `GET` of `path` is a list that is kept so. The list must have more elements than its first part, if it is
/// read in parts; a list that a driver bounds is not looked at.
///
/// # Panics
///
/// Panics if the list is kept otherwise.
pub async fn check_list(path: &str, kept: MemoryBound, answer: Response<Body>) {
    if matches!(kept, MemoryBound::ByDriver(_)) {
        return;
    }
    let status = answer.status();
    let pieces: Vec<_> = answer.into_body().into_data_stream().collect().await;
    let pieces: Vec<Bytes> = pieces.into_iter().map(Result::unwrap).collect();
    let whole = String::from_utf8(pieces.concat()).unwrap();
    assert_eq!(status, StatusCode::OK, "{path}: {whole}");
    let list: Value = serde_json::from_str(&whole).unwrap();
    let fields = list.as_object().unwrap().iter();
    let elements = fields.filter(|(name, _)| *name != "links").find_map(|(_, it)| it.as_array());
    let elements = elements.unwrap();
    let longest = elements.iter().map(|element| element.to_string().len()).max().unwrap_or(0);
    match kept {
        MemoryBound::InParts => {
            let sizes: Vec<usize> = pieces.iter().map(Bytes::len).collect();
            let count = elements.len();
            assert!(pieces.len() > 1, "{path}: {count} elements are written at once");
            assert!(sizes.iter().all(|size| *size <= PART + longest), "{path}: {sizes:?}");
        }
        MemoryBound::AtMost(most, why) => {
            let count = elements.len();
            assert!(count <= most, "{path}: {count} elements, more than {most}: {why}");
        }
        MemoryBound::ByDriver(_) => {}
    }
}
