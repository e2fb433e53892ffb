//! The lease of a cluster in its turn: records the stages with their notices, and switches the servers off and on.

use std::time::Duration;

use cluster_core::{
    Cluster, ClusterObservation, Event, LeaseNotice, Problem, after_lease_stage, lease_due,
    lease_notice, off_problem, tag,
};
use cluster_store::{ClusterChange, StoreError};
use futures::future::join_all;
use jiff::Timestamp;
use lease::{Due, LeaseStage};
use newtype_uuid::GenericUuid;
use notices::{Notice, NoticeSubject};
use openstack::compute::actions::{ServerAction, act};
use openstack::compute::servers::{self, Server, ServerStatus};
use reconcile::Requeue;
use serde_json::{Map, Value};
use tracing::{info, warn};
use uuid::Uuid;

use super::cloud_work::WorkResult;
use crate::cloud::CloudWorkError;
use crate::context::ConductorContext;
use crate::settings::LendingSettings;
use crate::tenancy::CloudAccess;

/// How often to look while servers are being switched on or off.
pub(crate) const SWITCHING_EVERY: Duration = Duration::from_secs(2);

/// The result of a look at a lease.
pub(crate) enum LeaseTurn {
    /// A stage was taken, or another process changed the cluster: the turn starts again.
    Took,
    /// Nothing is due before this time.
    Rests(Option<Timestamp>),
}

/// Takes the stage of the cluster's lease that is due, if there is one.
pub(crate) async fn take_due_stage(
    context: &ConductorContext,
    cluster: &Cluster,
) -> Result<LeaseTurn, StoreError> {
    let LendingSettings { ladder, addressees } = &context.settings.lending;
    let now = (context.settings.clock)();
    let step = match lease_due(cluster, ladder, now) {
        Due::Now(step) => step,
        Due::At(at) => return Ok(LeaseTurn::Rests(Some(at))),
        Due::Nothing => return Ok(LeaseTurn::Rests(None)),
    };
    let told = lease_notice(step);
    let contact = cluster.lending.as_ref().and_then(|it| it.notify.as_ref());
    let letters = addressees.letters(&notice(cluster, &told, now), contact);
    let event = Event {
        id: None,
        cluster: cluster.id,
        at: now,
        severity: told.severity,
        reason: told.reason.to_owned(),
        message: told.message.clone(),
    };
    let taken = after_lease_stage(cluster, step, now);
    let change = ClusterChange { events: vec![event], letters, ..ClusterChange::of(taken) };
    match context.store.change_cluster(&change).await {
        Ok(_) => info!("the lease of cluster {}: {}", cluster.id, told.message),
        Err(StoreError::Stale) => {}
        Err(error) => return Err(error),
    }
    if matches!(step, LeaseStage::SwitchOff { .. }) {
        context.observation_cache.forget(cluster.id);
    }
    Ok(LeaseTurn::Took)
}

fn notice(cluster: &Cluster, told: &LeaseNotice, now: Timestamp) -> Notice {
    let happens_at =
        told.happens_at.map(|at| ("happens_at".to_owned(), Value::from(at.to_string())));
    let until = cluster.lending.as_ref().map(|it| it.lease.until.to_string());
    let until = until.map(|until| ("lease_until".to_owned(), Value::from(until)));
    let ways = "Extend the lease with bedplate cluster extend, undo its end with bedplate cluster undo, or use PUT \
                /bedplate/v1/clusters/ID/lease.";
    Notice {
        id: Uuid::new_v4(),
        at: now,
        event: told.event.to_owned(),
        subject: format!("Kubernetes cluster {}: {}", cluster.name, told.message),
        text: format!(
            "Kubernetes cluster {} ({}): {}.\n\n{ways}",
            cluster.name, cluster.id, told.message
        ),
        project_id: Some(cluster.project.clone()),
        about: NoticeSubject {
            kind: "cluster".to_owned(),
            id: cluster.id.into_untyped_uuid().to_string(),
            name: cluster.name.to_string(),
        },
        details: Map::from_iter(happens_at.into_iter().chain(until)),
    }
}

/// Switches off the servers of a cluster whose lease ended. Returns the observation, and when to look again.
pub(crate) async fn keep_off(
    context: &ConductorContext,
    cloud_access: &CloudAccess,
    cluster: &Cluster,
) -> WorkResult {
    let look_every = context.settings.look_every;
    let mut next = look_every;
    let problem = match switch(cloud_access, cluster, &ServerAction::Stop).await {
        Ok(still_on) => {
            if still_on > 0 {
                next = SWITCHING_EVERY.min(look_every);
            }
            off_problem(cluster, &context.settings.lending.ladder, still_on)
        }
        Err(trouble) => {
            warn!("cannot switch off the members of a cluster whose lease ended: {trouble}");
            let Problem { message, .. } = trouble.problem("switch off the members");
            let off = off_problem(cluster, &context.settings.lending.ladder, 0);
            Problem { message: format!("the lease has ended: {message}"), ..off }
        }
    };
    let seen = ClusterObservation { problem: Some(problem), ..ClusterObservation::default() };
    WorkResult { seen, next: Requeue::After(next) }
}

/// Switches on the servers of a cluster whose lease was extended after its end.
pub(crate) async fn switch_on(cloud_access: &CloudAccess, cluster: &Cluster) {
    match switch(cloud_access, cluster, &ServerAction::Start).await {
        Ok(0) => {}
        Ok(still_off) => {
            info!("switching on {still_off} members of cluster {}", cluster.id)
        }
        Err(trouble) => warn!("cannot switch on the members of a cluster: {trouble}"),
    }
}

/// Stops or starts all servers of the cluster. Returns how many are not in the wanted state yet.
async fn switch(
    cloud_access: &CloudAccess,
    cluster: &Cluster,
    action: &ServerAction,
) -> Result<usize, CloudWorkError> {
    let (on, off) = (ServerStatus::Active, ServerStatus::Shutoff);
    let (from, wanted) = if *action == ServerAction::Stop { (on, off) } else { (off, on) };
    let session = &cloud_access.of(cluster, true).await?;
    let all = servers::tagged(session, &tag(cluster.id)).await?;
    let others: Vec<Server> = all.into_iter().filter(|server| server.status != wanted).collect();
    let idle = others.iter().filter(|it| it.status == from && it.task_state.is_none());
    let asked = join_all(idle.map(|server| act(session, &server.id, action))).await;
    for answer in asked {
        match answer {
            Ok(()) => {}
            // The server is busy, or in the wanted state already: the next look shows which.
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(others.len())
}
