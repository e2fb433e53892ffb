//! What all objects have, and lists of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::client::{Body, Client};
use crate::error::{KubernetesError, gone_is_fine};
use crate::lenient;

/// How many objects a page has.
const PAGE: &str = "250";
/// The most pages that are read; a server whose pages do not end is broken.
const MOST_PAGES: usize = 2_000;

/// `meta/v1 ObjectMeta`, as much as is used.
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

/// `meta/v1 OwnerReference`.
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

/// All objects of a list, page after page.
pub(crate) async fn list<T: DeserializeOwned>(
    client: &Client,
    path: &[&str],
    selectors: &[(&'static str, String)],
) -> Result<Vec<T>, KubernetesError> {
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

/// Deletes the object at this path if it still is the one with this uid. Gone is fine, and so is one that came in its place.
pub(crate) async fn remove(
    client: &Client,
    path: &[&str],
    uid: &str,
    grace: Grace,
) -> Result<(), KubernetesError> {
    let preconditions = json!({"uid": uid});
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions, "propagationPolicy": "Background"});
    let mut call = client.delete(path).body(Body::Json(options));
    if grace == Grace::None {
        call = call.query("gracePeriodSeconds", "0");
    }
    match gone_is_fine(call.done().await) {
        Err(error) if error.is_changed() => Ok(()),
        other => other,
    }
}

/// How long what is deleted may take to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grace {
    /// As long as it says itself.
    Own,
    /// It does not matter any more what becomes of it.
    None,
}
