//! Metadata of objects, lists in pages, and deletion.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::client::{Body, Client};
use crate::error::{Result, ignore_not_found};
use crate::lenient;

/// The number of objects in a page.
const PAGE: &str = "250";
/// The most pages that are read; a server that sends more is broken.
const MOST_PAGES: usize = 2_000;

/// The used fields of `meta/v1 ObjectMeta`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) resource_version: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "lenient::time")]
    pub(crate) creation_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "lenient::time")]
    pub(crate) deletion_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) owner_references: Vec<Owner>,
}

/// The used fields of `meta/v1 OwnerReference`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    pub(crate) kind: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) controller: bool,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue", deserialize_with = "lenient::or_default")]
    more: String,
}

/// Reads all objects of a list, page by page.
pub(crate) async fn list<T: DeserializeOwned>(
    client: &Client,
    path: &[&str],
    selectors: &[(&'static str, String)],
) -> Result<Vec<T>> {
    let mut everything = Vec::new();
    let mut more = String::new();
    for _ in 0..MOST_PAGES {
        let mut call = client.get(path).query("limit", PAGE);
        for (name, value) in selectors {
            call = call.query(name, value);
        }
        if !more.is_empty() {
            call = call.query("continue", &more);
        }
        let answer = call.send().await?;
        let page: Page<T> = answer.json()?;
        everything.extend(page.items.into_iter().flatten());
        if page.metadata.more.is_empty() {
            return Ok(everything);
        }
        if page.metadata.more == more {
            return Err(answer.malformed("its pages do not end"));
        }
        more = page.metadata.more;
    }
    Ok(everything)
}

/// Deletes the object at this path if it still has this uid. An object that is gone, or was replaced, is no error.
pub(crate) async fn remove(client: &Client, path: &[&str], uid: &str, grace: Grace) -> Result<()> {
    let preconditions = json!({"uid": uid});
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions, "propagationPolicy": "Background"});
    let mut call = client.delete(path).body(Body::Json(options));
    if grace == Grace::None {
        call = call.query("gracePeriodSeconds", "0");
    }
    match ignore_not_found(call.done().await) {
        Err(error) if error.is_changed() => Ok(()),
        other => other,
    }
}

/// The grace period of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grace {
    /// The object's own grace period.
    Own,
    /// No grace period: the outcome does not matter any more.
    None,
}
