//! Changes of clusters by requests, in competition with other requests and the conductor.

use std::future::Future;

use cluster_core::{Cluster, MemberName, NodeGroup, check_can_resize, resize};
use cluster_store::{ClusterChange, StoreError};
use openstack_api::ApiError;

use crate::app::App;
use crate::error::{Error, Result};
use crate::request::Request;

/// How often a change is retried after a concurrent change.
const ATTEMPTS: usize = 8;

impl Request {
    /// Reads a cluster and its node groups, lets `decide` change them, writes the change and wakes the conductor.
    ///
    /// Starts again if someone else changed the cluster meanwhile. Refuses a change that exceeds the quota of the cluster's project or of
    /// the caller. A request that changes nothing is not recorded, so the cluster keeps the request that its turns work on.
    pub(crate) async fn change(
        &self,
        ident: &str,
        decide: impl Fn(Cluster, Vec<NodeGroup>) -> Result<ClusterChange>,
    ) -> Result<Cluster> {
        let cluster = retry_stale(|| async {
            let cluster = self.cluster(ident).await?;
            let groups = self.app.store.groups_of(cluster.id).await?;
            let mut change = decide(cluster.clone(), groups.clone())?;
            if change.changes_nothing(&cluster) {
                return Ok(cluster);
            }
            change.cluster.updated_at = Some((self.app.clock)());
            change.by = Some(self.user());
            let asked_before = change.cluster.asked_by.take();
            change.cluster.asked_by = openstack_api::request_id().or(asked_before);
            change.cluster.trace = openstack_api::current_trace();
            let touched = change.added.iter_mut().chain(&mut change.changed);
            let grown = touched.filter(|it| it.has_new_members(&groups));
            let unmeasured = self.app.measure(&change.cluster, grown).await;
            let written = self.app.store.change_within(&change, &self.app.settings.quotas).await;
            written.map_err(|error| Error::unmeasured(error, unmeasured))
        });
        let cluster = cluster.await?;
        self.app.conductor.wake(cluster.id);
        Ok(cluster)
    }
}

/// The change that gives `group` `count` members; the members in `remove` are removed first.
pub(crate) fn resized(
    app: &App,
    cluster: Cluster,
    group: &NodeGroup,
    count: u32,
    remove: &[MemberName],
) -> Result<ClusterChange> {
    check_can_resize(&cluster, group)?;
    let updated_at = Some((app.clock)());
    let resized = NodeGroup { updated_at, ..resize(group, count, remove)? };
    let said = format!("{} resized to {count} members", group.name);
    let events = vec![app.request_event(&cluster, "ResizeRequested", said)];
    let cluster = Cluster { asked_at: (app.clock)(), ..cluster };
    Ok(ClusterChange { changed: vec![resized], events, ..ClusterChange::of(cluster) })
}

/// Finds the default group of workers, which every cluster is created with.
pub(crate) fn default_workers(groups: &[NodeGroup]) -> Result<&NodeGroup, ApiError> {
    let workers = groups.iter().find(|group| group.is_default_workers());
    workers.ok_or_else(|| ApiError::broken("the cluster has no default workers"))
}

/// Repeats `attempt` until no concurrent change interferes, at most `ATTEMPTS` times.
pub(crate) async fn retry_stale<T, F>(attempt: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(Error::Store(StoreError::Stale)) => {}
            done => return done,
        }
    }
    attempt().await
}
