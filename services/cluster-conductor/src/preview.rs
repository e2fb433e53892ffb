//! Previews a cluster: its objects and the quota it needs, before anything is created.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster_core::{
    Action, Cluster, ClusterObservation, ClusterSpec, Key, NodeGroup, QuotaNeed, QuotaShortage,
    desired_objects, plan, private_api_warning, quota_need, single_endpoint_warning,
    unknown_labels_warning,
};
use cluster_store::StoreError;

use crate::Conductor;
use crate::cloud::{self, CloudLookups};

/// How long to wait for the cloud.
const CLOUD_TIMEOUT: Duration = Duration::from_secs(10);

/// The preview of a cluster.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The actions that could be performed at once.
    pub first: Vec<Action>,
    /// Every desired object: its key and its name.
    pub objects: Vec<(String, String)>,
    /// The quota that all objects need. Processors and memory are 0 when the sizes of the flavors are unknown.
    pub need: QuotaNeed,
    /// The quotas that are too small for the objects that do not exist yet, or why they are unknown.
    pub shortages: Result<Vec<QuotaShortage>, String>,
    /// Reasons against the cluster that do not prevent its creation.
    pub warnings: Vec<String>,
}

impl Conductor {
    /// Previews a cluster, and checks the project's quotas. Creates nothing.
    ///
    /// # Errors
    ///
    /// When the store fails. A cloud that does not answer is part of the preview.
    pub async fn preview(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
    ) -> Result<Preview, StoreError> {
        let spec = ClusterSpec { cluster, groups };
        let shape = desired_objects(&spec);
        let ledger = self.context.store.ledger_of(cluster.id).await?;
        let present = ledger.iter().filter(|line| line.cloud_id.is_some());
        let there: BTreeSet<Key> = present.filter_map(|line| line.kind.parse().ok()).collect();
        let asked = async {
            let sessions = self.context.sessions(cluster, !ledger.is_empty()).await;
            let sessions = sessions.map_err(|closed| closed.to_string())?;
            let Some((session, own)) = sessions else {
                return Err("clusterd has no cloud configured".to_owned());
            };
            let site = CloudLookups::new((&session, own), cluster.blueprint.zone(), Arc::default());
            cloud::outlook(&site, &shape, &there).await.map_err(|trouble| trouble.to_string())
        };
        let late = || format!("the cloud did not answer within {} s", CLOUD_TIMEOUT.as_secs());
        let outlook = tokio::time::timeout(CLOUD_TIMEOUT, asked).await;
        let outlook = outlook.unwrap_or_else(|_| Err(late()));
        let (need, shortages) = match outlook {
            Ok((need, shortages)) => (need, Ok(shortages)),
            Err(why) => (quota_need(&shape, &BTreeMap::new(), |_| false), Err(why)),
        };
        let objects = shape.iter().map(|(key, object)| (key.to_string(), object.name.clone()));
        let objects = objects.collect();
        let labels = groups.iter().map(|group| &group.labels).chain([&cluster.blueprint.labels]);
        let private = private_api_warning(&spec);
        let private = private.map(|from| format!("{from}; clusterd has to be in one of them"));
        let lone = single_endpoint_warning(&spec).map(str::to_owned);
        let warnings = lone.into_iter().chain(private).chain(unknown_labels_warning(labels));
        Ok(Preview {
            first: plan(&spec, &ClusterObservation::default()),
            objects,
            need,
            shortages,
            warnings: warnings.collect(),
        })
    }
}
