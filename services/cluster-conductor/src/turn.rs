//! The turn of a cluster: observe, plan, act, record.

mod cloud_work;
mod lending;

use std::sync::Arc;
use std::time::Duration;

use cluster_core::{
    Cluster, ClusterObservation, ClusterSpec, ClusterUuid, Condition, ConditionStatus,
    DesiredState, Event, MemberName, NodeGroup, Problem, Severity, members_to_replace, status,
};
use cluster_store::{ClusterChange, StoreError};
use jiff::Timestamp;
use reconcile::{Requeue, time_left};
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Span, debug, info, instrument};
use uuid::Uuid;

use crate::context::ConductorContext;
use crate::turn_error::TurnError;
use cloud_work::WorkResult;
use lending::{LeaseTurn, SWITCHING_EVERY};

/// How often the conductor records that it is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
/// How soon a cluster has its next turn when it was changed during this one.
const SOON: Duration = Duration::from_millis(100);

/// Runs one turn of a cluster. Calls to the cloud carry the id of the request that last asked for a change.
#[instrument(skip_all, fields(cluster.id = %id, request.id = Empty))]
pub(crate) async fn turn(
    context: &ConductorContext,
    id: ClusterUuid,
) -> Result<Requeue, TurnError> {
    let Some(cluster) = context.cluster(id).await? else { return Ok(Requeue::OnChange) };
    context.watch.answered((context.settings.clock)());
    // A request from before ids were recorded gets a new id in each turn.
    let request = cluster.asked_by.clone().unwrap_or_else(|| format!("req-{}", Uuid::new_v4()));
    Span::current().record("request.id", &request);
    openstack::on_behalf_of(request, Box::pin(work(context, cluster))).await
}

/// Does the work of a turn. Nothing else writes the conditions of a cluster.
async fn work(context: &ConductorContext, cluster: Cluster) -> Result<Requeue, TurnError> {
    let id = cluster.id;
    let ledger = context.store.ledger_of(id).await?;
    if cluster.desire == DesiredState::Gone && ledger.is_empty() {
        return Ok(delete_record(context, &cluster).await?);
    }
    let due = match lending::take_due_stage(context, &cluster).await? {
        LeaseTurn::Took => return Ok(Requeue::Now),
        LeaseTurn::Rests(due) => due,
    };
    let cluster = match record_project(context, cluster, !ledger.is_empty()).await {
        Err(StoreError::Stale) => return Ok(Requeue::Now),
        placed => placed?,
    };
    let groups = context.store.groups_of(id).await?;
    let spec = ClusterSpec { cluster: &cluster, groups: &groups };
    if let (Some(cloud_access), true) = (&context.cloud, cluster.waking_since().is_some()) {
        lending::switch_on(cloud_access, &cluster).await;
    }
    let drained = context.store.drained_of(id).await?;
    let WorkResult { seen, next } = match &context.cloud {
        Some(cloud_access) if cluster.is_off() => {
            lending::keep_off(context, cloud_access, &cluster).await
        }
        Some(cloud_access) => match cloud_work::work(context, cloud_access, &spec, ledger).await {
            // The cluster was changed after it was read.
            Err(TurnError::Store(StoreError::Stale)) => {
                return Ok(Requeue::After(SOON.min(context.settings.look_every)));
            }
            worked => worked?,
        },
        None => WorkResult { seen: no_cloud(), next: Requeue::After(context.settings.look_every) },
    };
    let seen = ClusterObservation { drained, ..seen };
    let now = (context.settings.clock)();
    let next = no_later(next, &cluster, due, now);
    let concluded = cluster.with_observation(&groups, &seen, now);
    let replaced = members_to_replace(&spec, &seen, &context.settings.repair, now);
    if concluded == cluster && replaced.is_empty() {
        debug!("nothing has changed");
        return Ok(next);
    }
    let (before, after) = (status(&cluster, now), status(&concluded, now));
    let changed = replace(&groups, &replaced);
    let events = events(&cluster, &concluded, &replaced, now);
    let change = ClusterChange { changed, events, ..ClusterChange::of(concluded) };
    match context.store.change_cluster(&change).await {
        Ok(_) => {
            if before != after {
                info!(state.from = %before, state.to = %after, "cluster {id} is now {after}");
            }
            Ok(if replaced.is_empty() { next } else { Requeue::Now })
        }
        Err(StoreError::Stale) => Ok(Requeue::Now),
        Err(error) => Err(error.into()),
    }
}

/// Records the cloud's project in which the cluster will be created, before anything is. When the project cannot be determined, the turn
/// reports why.
async fn record_project(
    context: &ConductorContext,
    cluster: Cluster,
    is_begun: bool,
) -> Result<Cluster, StoreError> {
    let Some(cloud_access) = context.cloud.as_ref().filter(|_| cluster.cloud_project.is_none())
    else {
        return Ok(cluster);
    };
    let Ok(place) = cloud_access.project_of(&cluster, is_begun).await else { return Ok(cluster) };
    info!("cluster {} uses project {place} of the cloud", cluster.id);
    let noted = Cluster { cloud_project: Some(place), ..cluster };
    context.store.change_cluster(&ClusterChange::of(noted)).await
}

/// Returns when the next turn is due: at the next stage of the lease at the latest, and soon while servers are starting.
fn no_later(next: Requeue, cluster: &Cluster, due: Option<Timestamp>, now: Timestamp) -> Requeue {
    let due = due.map(|due| time_left(due, now));
    let waking = cluster.waking_since().map(|_| SWITCHING_EVERY);
    match (next, due.into_iter().chain(waking).min()) {
        (Requeue::After(pause), Some(due)) => Requeue::After(pause.min(due)),
        (next @ (Requeue::Now | Requeue::OnChange | Requeue::After(_)), _) => next,
    }
}

/// Returns the groups that change when these members are replaced by new ones.
fn replace(groups: &[NodeGroup], replaced: &[MemberName]) -> Vec<NodeGroup> {
    let mut changed = Vec::new();
    for group in groups {
        let mut new = group.clone();
        for machine in replaced.iter().filter(|machine| machine.group == group.name) {
            info!("replacing member {machine}");
            new.replace_machine(machine.number);
        }
        if new != *group {
            changed.push(new);
        }
    }
    changed
}

/// Returns the events of a turn: changed conditions and replaced members.
fn events(before: &Cluster, after: &Cluster, replaced: &[MemberName], at: Timestamp) -> Vec<Event> {
    let event = |severity, reason: &str, message: String| Event {
        id: None,
        cluster: before.id,
        at,
        severity,
        reason: reason.to_owned(),
        message,
    };
    let known = |new: &&Condition| {
        let old = before.conditions.iter().find(|old| old.kind == new.kind);
        old.is_some_and(|old| old.status == new.status && old.reason == new.reason)
    };
    let told = after.conditions.iter().filter(|new| !known(new)).map(|new| {
        let severity = if new.is_final { Severity::Error } else { Severity::Info };
        let message = match new.status {
            ConditionStatus::True => format!("{} is true", new.kind.as_str()),
            ConditionStatus::False | ConditionStatus::Unknown => {
                format!("{}: {}", new.kind.as_str(), new.message)
            }
        };
        event(severity, &new.reason, message)
    });
    let gone = replaced.iter().map(|machine| {
        event(
            Severity::Warning,
            "MachineReplaced",
            format!("{machine} did not recover and is replaced by a new member"),
        )
    });
    told.chain(gone).collect()
}

/// Deletes the record of a cluster that owns nothing in the cloud any more.
async fn delete_record(
    context: &ConductorContext,
    cluster: &Cluster,
) -> Result<Requeue, StoreError> {
    match context.store.delete_cluster(cluster).await {
        Ok(()) => {
            context.clients.forget(cluster.id);
            context.observation_cache.forget(cluster.id);
            info!("cluster {} is deleted, with everything it owned in the cloud", cluster.id);
            Ok(Requeue::OnChange)
        }
        Err(StoreError::Stale | StoreError::InUse { .. }) => Ok(Requeue::Now),
        Err(error) => Err(error),
    }
}

/// Returns the observation of a cluster when clusterd has no cloud.
fn no_cloud() -> ClusterObservation {
    let problem = Problem {
        reason: "NoCloud".to_owned(),
        message: "clusterd has no cloud configured, so nothing was created".to_owned(),
        next_action: "delete the cluster, or configure a cloud for clusterd".to_owned(),
        is_final: false,
    };
    ClusterObservation { problem: Some(problem), ..ClusterObservation::default() }
}

/// Records at regular intervals that this conductor is alive.
pub(crate) async fn stay_alive(context: Arc<ConductorContext>, stop: CancellationToken) {
    loop {
        let now = (context.settings.clock)();
        match context.store.touch_service(&context.settings.hostname, now).await {
            Ok(()) => context.watch.answered((context.settings.clock)()),
            Err(error) => {
                context.watch.failed();
                tracing::warn!("cannot record that this conductor is alive: {error}");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(ALIVE_EVERY) => {}
        }
    }
}
