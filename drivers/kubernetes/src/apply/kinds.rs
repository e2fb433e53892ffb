//! Where objects of a kind lie: what the API server says of itself (discovery), remembered for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Document;
use crate::client::Client;
use crate::error::{KubernetesError, if_found};
use crate::lenient;

/// How long what was learnt is believed: a control plane that is upgraded meanwhile loses kinds and gets others.
const FRESH: Duration = Duration::from_secs(300);

/// The resources of each group and version that was asked for.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    known: Mutex<HashMap<String, Learnt>>,
}

/// When it was learnt, and what.
type Learnt = (Instant, Arc<Vec<Resource>>);

/// A resource, by the API server's word (`meta/v1 APIResource`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Resource {
    /// As in paths; with a slash if it is below another one.
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// Its group and version where they are not the list's.
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

/// The resource of this group and version that `wanted` wants; asked for anew if what is remembered has none.
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

/// Where the object of a document lies.
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

/// Where a group and version begins: the first group, which has no name, lies apart.
fn root(api_version: &str) -> Vec<&str> {
    match api_version.split_once('/') {
        Some((group, version)) => vec!["apis", group, version],
        None => vec!["api", api_version],
    }
}
