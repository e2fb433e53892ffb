//! The turn of a cluster: switches its servers off and on, and reconciles its cloud objects.

mod backups;
mod cloud_work;
mod lending;

use cluster_core::{
    Cluster, ClusterAction, ClusterOutcome, ClusterRecords, ClusterRules, ClusterUpdate,
    ClusterUuid, ProjectObservation, RecordChange, after_cluster_actions, plan_cluster, status,
};
use cluster_store::{ClusterChange, StoreError};
use reconcile::{Decided, Requeue, Turn, begin_span, end_span, execute};
use tracing::field::Empty;
use tracing::{Span, info, instrument};
use uuid::Uuid;

use crate::context::ConductorContext;
use crate::turn_error::TurnError;

/// Runs one turn of a cluster. Calls to the cloud carry the id of the request that last asked for a change.
#[instrument(skip_all, fields(cluster.id = %id, request.id = Empty))]
pub(crate) async fn turn(
    context: &ConductorContext,
    id: ClusterUuid,
) -> Result<Requeue, TurnError> {
    let Some(cluster) = context.cluster(id).await? else {
        context.uncount_conditions(id);
        return Ok(Requeue::OnChange);
    };
    context.count_conditions(&cluster);
    context.watch.answered((context.settings.clock)());
    // A request from before ids were recorded gets a new id in each turn.
    let request = cluster.asked_by.clone().unwrap_or_else(|| format!("req-{}", Uuid::new_v4()));
    Span::current().record("request.id", &request);
    let ledger = context.store.ledger_of(id).await?;
    let groups = context.store.groups_of(id).await?;
    let drained = context.store.drained_of(id).await?;
    let (tracer, subject) = (&context.settings.tracer, ("bedplate.cluster.id", id));
    let span = begin_span(tracer, cluster.trace_in_progress(), "cluster turn", subject);
    let turn = ClusterTurn(context);
    let executed = execute(&turn, ClusterRecords { cluster, groups, ledger, drained });
    let ended = openstack::on_behalf_of(request, Box::pin(span.run(executed))).await;
    end_span(span, &ended);
    Ok(ended?.1)
}

/// A turn of a cluster. Nothing else writes its conditions.
struct ClusterTurn<'a>(&'a ConductorContext);

impl Turn for ClusterTurn<'_> {
    type Record = ClusterRecords;
    type Seen = ProjectObservation;
    type Change = RecordChange<ClusterUpdate>;
    type Action = ClusterAction;
    type Outcome = ClusterOutcome;
    type Error = TurnError;

    async fn observe(&self, records: &ClusterRecords) -> Result<ProjectObservation, TurnError> {
        let ClusterRecords { cluster, ledger, .. } = records;
        let Some(cloud_access) = &self.0.cloud else { return Ok(ProjectObservation::NoCloud) };
        if cluster.cloud_project.is_some() || records.is_over() {
            return Ok(ProjectObservation::Recorded);
        }
        Ok(match cloud_access.project_of(cluster, !ledger.is_empty()).await {
            Ok(project) => ProjectObservation::New(project),
            Err(closed) => ProjectObservation::Unknown(closed.to_string()),
        })
    }

    fn decide(&self, records: &ClusterRecords, project: &ProjectObservation) -> Decided<Self> {
        Ok(plan_cluster(records, project, &self.rules(), (self.0.settings.clock)()))
    }

    async fn write(
        &self,
        records: ClusterRecords,
        change: RecordChange<ClusterUpdate>,
    ) -> Result<ClusterRecords, TurnError> {
        match change {
            RecordChange::Write(update) => {
                let cluster = self.update(&records.cluster, update).await?;
                Ok(ClusterRecords { cluster, ..records })
            }
            RecordChange::Delete => {
                self.delete(&records.cluster).await?;
                Ok(records)
            }
        }
    }

    async fn perform(
        &self,
        records: &ClusterRecords,
        action: ClusterAction,
    ) -> Result<ClusterOutcome, TurnError> {
        let fence = self.0.membership.fence();
        match (action, &self.0.cloud) {
            (ClusterAction::DeleteBackups, _) => {
                let deleted = backups::delete(self.0, &records.cluster).await;
                Ok(ClusterOutcome::BackupsDeleted(deleted))
            }
            // Without a cloud nothing is decided that needs one.
            (
                ClusterAction::SwitchOn
                | ClusterAction::SwitchOff
                | ClusterAction::ReconcileObjects,
                None,
            ) => Ok(ClusterOutcome::Changed),
            (ClusterAction::SwitchOn, Some(cloud_access)) => {
                fence.hold(lending::switch_on(cloud_access, &records.cluster)).await;
                Ok(ClusterOutcome::SwitchedOn)
            }
            (ClusterAction::SwitchOff, Some(cloud_access)) => {
                Ok(fence.hold(lending::switch_off(cloud_access, &records.cluster)).await)
            }
            (ClusterAction::ReconcileObjects, Some(cloud_access)) => {
                match cloud_work::work(self.0, cloud_access, records).await {
                    Ok(work) => Ok(ClusterOutcome::Reconciled(Box::new(work))),
                    Err(TurnError::Store(StoreError::Stale)) => Ok(ClusterOutcome::Changed),
                    Err(error) => Err(error),
                }
            }
        }
    }

    fn conclude(&self, records: &ClusterRecords, outcomes: Vec<ClusterOutcome>) -> Decided<Self> {
        let now = (self.0.settings.clock)();
        Ok(after_cluster_actions(records, &outcomes, &self.rules(), now))
    }
}

impl ClusterTurn<'_> {
    fn rules(&self) -> ClusterRules<'_> {
        let (settings, is_upgraded) = (&self.0.settings, self.0.store.is_upgraded());
        let mut backups = settings.backup_schedule();
        // A clusterd of version 0.1.0 would forget the objects of a cluster's backups.
        backups.rules = backups.rules.filter(|_| is_upgraded);
        ClusterRules {
            schedule: &settings.lending.schedule,
            repair: &settings.repair,
            pauses: settings.pauses(),
            backups,
            is_upgraded,
        }
    }

    /// Writes the cluster, with the letters about the stage of its lease.
    async fn update(&self, before: &Cluster, update: ClusterUpdate) -> Result<Cluster, StoreError> {
        let ClusterUpdate { cluster, groups: changed, events, notice } = update;
        let now = (self.0.settings.clock)();
        let letters = notice
            .iter()
            .flat_map(|lease_notice| lending::letters(self.0, &cluster, lease_notice, now));
        let letters = letters.collect();
        let after = cluster.clone();
        let change = ClusterChange { changed, events, letters, ..ClusterChange::of(cluster) };
        let written = self.0.store.change_cluster(&change).await?;
        self.0.count_conditions(&written);
        if let Some(lease_notice) = &notice {
            info!("the lease of cluster {}: {}", before.id, lease_notice.message);
        }
        if after.is_off() && !before.is_off() {
            self.0.observation_cache.forget(before.id);
        }
        let (was, is) = (status(before, now), status(&after, now));
        if was != is {
            info!(state.from = %was, state.to = %is, "cluster {} is now {is}", before.id);
        }
        Ok(written)
    }

    /// Deletes the record of a cluster that owns nothing in the cloud any more.
    async fn delete(&self, cluster: &Cluster) -> Result<(), StoreError> {
        match self.0.store.delete_cluster(cluster).await {
            // The ledger has an entry by now.
            Err(StoreError::InUse { .. }) => return Err(StoreError::Stale),
            deleted => deleted?,
        }
        self.0.uncount_conditions(cluster.id);
        self.0.clients.forget(cluster.id);
        self.0.observation_cache.forget(cluster.id);
        info!("cluster {} is deleted, with everything it owned in the cloud", cluster.id);
        Ok(())
    }
}
