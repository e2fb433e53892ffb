//! Discovery: finds the path of a kind's objects by asking the API server, and caches the answer for a while.

use std::sync::Arc;

use serde::Deserialize;

use super::Document;
use crate::client::{Client, Resource};
use crate::error::{KubernetesError, Result, if_found};
use crate::lenient;

#[derive(Deserialize)]
struct Resources {
    #[serde(default, deserialize_with = "lenient::or_default")]
    resources: Vec<Resource>,
}

/// Returns the resource of this group and version that `wanted` selects. Asks the server again if the cached answer has none.
pub(crate) async fn resource(
    client: &Client,
    api_version: &str,
    wanted: impl Fn(&Resource) -> bool,
) -> Result<Option<Resource>> {
    let find = |all: &[Resource]| all.iter().find(|it| wanted(it)).cloned();
    if let Some(found) = client.kinds().remembered(api_version).and_then(|all| find(&all)) {
        return Ok(Some(found));
    }
    let listed = if_found(client.get(&root(api_version)).json::<Resources>().await)?;
    let Some(Resources { resources }) = listed else { return Ok(None) };
    let found = find(&resources);
    client.kinds().remember(api_version, Arc::new(resources));
    Ok(found)
}

/// Returns the path of a document's object.
pub(super) async fn object_path(client: &Client, document: &Document) -> Result<Vec<String>> {
    let (api_version, kind) = (document.api_version(), document.kind());
    let wanted = |it: &Resource| it.kind == kind && !it.name.contains('/');
    let Some(resource) = resource(client, api_version, wanted).await? else {
        let (api_version, kind) = (lenient::plain(api_version, 100), lenient::plain(kind, 100));
        return Err(KubernetesError::NoSuchKind { api_version, kind });
    };
    let mut path = root(api_version);
    if resource.namespaced {
        path.extend(["namespaces", document.namespace().unwrap_or("default")]);
    }
    path.extend([resource.name.as_str(), document.name()]);
    Ok(path.into_iter().map(str::to_owned).collect())
}

/// Returns the path of a group and version: the core group, which has no name, has another root.
fn root(api_version: &str) -> Vec<&str> {
    match api_version.split_once('/') {
        Some((group, version)) => vec!["apis", group, version],
        None => vec!["api", api_version],
    }
}
