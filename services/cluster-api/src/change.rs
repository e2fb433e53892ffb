//! Changes of clusters by requests, in competition with other requests and the conductor.

use std::future::Future;

use cluster_core::{Cluster, NodeGroup};
use cluster_store::{ClusterChange, StoreError};
use openstack_api::Caller;

use crate::app::App;
use crate::error::Error;

/// How often a change is retried after a concurrent change.
const ATTEMPTS: usize = 8;

impl App {
    /// Reads a cluster and its node groups, lets `decide` change them, writes the change and wakes the conductor.
    ///
    /// Starts again if someone else changed the cluster meanwhile. Refuses a change that exceeds the quota of the cluster's project or of
    /// the caller.
    pub(crate) async fn change(
        &self,
        caller: &Caller,
        ident: &str,
        decide: impl Fn(Cluster, Vec<NodeGroup>) -> Result<ClusterChange, Error>,
    ) -> Result<Cluster, Error> {
        let cluster = retry_stale(|| async {
            let cluster = self.cluster(caller, ident).await?;
            let groups = self.store.groups_of(cluster.id).await?;
            let mut change = decide(cluster, groups.clone())?;
            change.cluster.updated_at = Some((self.clock)());
            change.by = Some(self.user(caller));
            let asked_before = change.cluster.asked_by.take();
            change.cluster.asked_by = openstack_api::request_id().or(asked_before);
            let touched = change.added.iter_mut().chain(&mut change.changed);
            let grown = touched.filter(|it| it.has_new_members(&groups));
            let unmeasured = self.measure(&change.cluster, grown).await;
            let written = self.store.change_within(&change, &self.settings.quotas).await?;
            written.map_err(|denial| Error::Denied(denial, unmeasured))
        });
        let cluster = cluster.await?;
        self.conductor.wake(cluster.id);
        Ok(cluster)
    }
}

/// Repeats `attempt` until no concurrent change interferes, at most `ATTEMPTS` times.
pub(crate) async fn retry_stale<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(Error::Store(StoreError::Stale)) => {}
            done => return done,
        }
    }
    attempt().await
}
