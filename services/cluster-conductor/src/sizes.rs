//! How large machines would be, for what is asked of the API.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster_core::{Cluster, FlavorSize};

use crate::Conductor;
use crate::cloud::Trouble;

/// How long a cloud may take to say how large machines are.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why nobody knows how large machines are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unmeasured {
    /// The cause.
    pub why: String,
    /// Whether it is for whoever asks to ask otherwise: the cloud has no such flavor.
    pub is_asked_wrong: bool,
}

impl Conductor {
    /// What these flavors give a machine of this cluster now, by id or name as they are given: of those alone that its project of the
    /// cloud may use.
    ///
    /// # Errors
    ///
    /// When there is no cloud, or it does not answer in time or has no such flavor.
    pub async fn sizes(
        &self,
        cluster: &Cluster,
        flavors: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, FlavorSize>, Unmeasured> {
        let unknown = |why: String| Unmeasured { why, is_asked_wrong: false };
        if self.world.cloud.is_none() {
            return Err(unknown("this clusterd was given no cloud that it could ask".to_owned()));
        }
        let told = tokio::time::timeout(PATIENCE, self.told(cluster, flavors)).await;
        let told = told.map_err(|_| {
            unknown(format!("the cloud did not answer within {} s", PATIENCE.as_secs()))
        })?;
        told.map_err(|trouble| Unmeasured {
            is_asked_wrong: matches!(trouble, Trouble::NoSuch { .. }),
            why: trouble.to_string(),
        })
    }
    async fn told(
        &self,
        cluster: &Cluster,
        flavors: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, FlavorSize>, Trouble> {
        let Some((session, _)) = self.world.sessions(cluster, false).await? else {
            return Ok(BTreeMap::new());
        };
        self.world.flavors.sizes(&session, flavors).await
    }
}
