//! The sizes of flavors, for requests to the API.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster_core::{Cluster, FlavorSize};

use crate::Conductor;
use crate::cloud::CloudWorkError;

/// How long to wait for the cloud.
const CLOUD_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the sizes of flavors are unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SizesUnknown {
    pub why: String,
    /// Whether the caller has to change the request, because the cloud has no such flavor: a retry of the same request fails again.
    pub is_asked_wrong: bool,
}

impl Conductor {
    /// Returns the current sizes of these flavors, by the ids or names that were given. Only flavors that the cluster's project may use are
    /// found.
    ///
    /// # Errors
    ///
    /// When there is no cloud, it does not answer in time, or it has no such flavor.
    pub async fn sizes(
        &self,
        cluster: &Cluster,
        flavors: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, FlavorSize>, SizesUnknown> {
        let unknown = |why: String| SizesUnknown { why, is_asked_wrong: false };
        if self.context.cloud.is_none() {
            return Err(unknown("clusterd has no cloud configured".to_owned()));
        }
        let found = tokio::time::timeout(CLOUD_TIMEOUT, self.find(cluster, flavors)).await;
        let found = found.map_err(|_| {
            unknown(format!("the cloud did not answer within {} s", CLOUD_TIMEOUT.as_secs()))
        })?;
        found.map_err(|trouble| SizesUnknown {
            is_asked_wrong: matches!(trouble, CloudWorkError::NoSuch { .. }),
            why: trouble.to_string(),
        })
    }
    async fn find(
        &self,
        cluster: &Cluster,
        flavors: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, FlavorSize>, CloudWorkError> {
        let Some((session, _)) = self.context.sessions(cluster, false).await? else {
            return Ok(BTreeMap::new());
        };
        self.context.flavors.sizes(&session, flavors).await
    }
}
