//! The cached answers to discovery: the resources of each group and version.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::lenient;

/// How long an answer is cached. An upgrade of the control plane removes and adds kinds.
const FRESH: Duration = Duration::from_secs(300);

/// The cached resources of each group and version.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryCache {
    known: Mutex<HashMap<String, CachedResources>>,
}

/// The time of an answer, and its resources.
type CachedResources = (Instant, Arc<Vec<Resource>>);

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

impl DiscoveryCache {
    pub(crate) fn remembered(&self, api_version: &str) -> Option<Arc<Vec<Resource>>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (learnt, resources) = known.get(api_version)?;
        (learnt.elapsed() < FRESH).then(|| resources.clone())
    }

    pub(crate) fn remember(&self, api_version: &str, resources: Arc<Vec<Resource>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(api_version.to_owned(), (Instant::now(), resources));
    }
}
