//! How large machines would be, for what is asked of the API.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster_core::FlavorSize;

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
    /// What these flavors give a machine now, by id or name as they are given.
    ///
    /// # Errors
    ///
    /// When there is no cloud, or it does not answer in time or has no such flavor.
    pub async fn sizes(
        &self,
        flavors: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, FlavorSize>, Unmeasured> {
        let unknown = |why: String| Unmeasured { why, is_asked_wrong: false };
        let Some(session) = &self.world.cloud else {
            return Err(unknown("this clusterd was given no cloud that it could ask".to_owned()));
        };
        let told = tokio::time::timeout(PATIENCE, self.world.flavors.sizes(session, flavors)).await;
        let told = told.map_err(|_| {
            unknown(format!("the cloud did not answer within {} s", PATIENCE.as_secs()))
        })?;
        told.map_err(|trouble| Unmeasured {
            is_asked_wrong: matches!(trouble, Trouble::NoSuch { .. }),
            why: trouble.to_string(),
        })
    }
}
