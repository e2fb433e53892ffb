//! Discovery: finds the path of a kind's objects by asking the API server, and caches the answer for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Document;
use crate::client::Client;
use crate::error::{KubernetesError, if_found};
use crate::lenient;

/// How long an answer is cached. An upgrade of the control plane removes and adds kinds.
const FRESH: Duration = Duration::from_secs(300);

/// The cached resources of each group and version.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    known: Mutex<HashMap<String, Learnt>>,
}

/// The time of an answer, and its resources.
type Learnt = (Instant, Arc<Vec<Resource>>);

/// A resource, as the API server describes it (`meta/v1 APIResource`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Resource {
    /// The name in paths; a subresource has a slash.
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// Group and version, if they differ from the list's.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub(crate) group: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub(crate) version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default, deserialize_with = "lenient::or_default")]
    resources: Vec<Resource>,
}

impl Kinds {
    fn remembered(&self, api_version: &str) -> Option<Arc<Vec<Resource>>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (learnt, resources) = known.get(api_version)?;
        (learnt.elapsed() < FRESH).then(|| resources.clone())
    }

    fn remember(&self, api_version: &str, resources: Arc<Vec<Resource>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(api_version.to_owned(), (Instant::now(), resources));
    }
}

/// Returns the resource of this group and version that `wanted` selects. Asks the server again if the cached answer has none.
pub(crate) async fn resource(
    client: &Client,
    api_version: &str,
    wanted: impl Fn(&Resource) -> bool,
) -> Result<Option<Resource>, KubernetesError> {
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
pub(super) async fn place(
    client: &Client,
    document: &Document,
) -> Result<Vec<String>, KubernetesError> {
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
