//! The work on the cloud objects of a cluster: observe, record, act, and decide when the next turn is due.

use std::collections::BTreeMap;
use std::slice;

use cluster_core::{
    AddOnsObservation, CallFailure, CallResults, CloudGoal, ClusterObservation, ClusterRecords,
    ClusterSpec, ClusterUuid, ClusterWork, Event, Key, Ledger, LedgerMatch, MemberName,
    ObjectOwner, Problem, Severity, backing_off, cluster_progress, desired_objects, failures,
    may_reuse_observation, next_turn, pause_after,
};
use jiff::Timestamp;
use openstack::Session;
use reconcile::Requeue;

use crate::actions::{TurnContext, act};
use crate::cloud::{CloudLookups, CloudWorkError, observe, reconcile_ledger};
use crate::context::ConductorContext;
use crate::nodes::Nodes;
use crate::tenancy::CloudAccess;
use crate::turn_error::TurnError;

/// Brings the cloud as close to the desired objects as is possible now. Without access to the cloud, the observation says why.
pub(super) async fn work(
    context: &ConductorContext,
    cloud_access: &CloudAccess,
    records: &ClusterRecords,
) -> Result<ClusterWork, TurnError> {
    let ClusterRecords { cluster, groups, ledger, .. } = records;
    let began_at = (context.settings.clock)();
    match cloud_access.of(cluster, !ledger.is_empty()).await {
        Ok(session) => {
            let spec = &ClusterSpec { cluster, groups };
            let ledger = Ledger::new(cluster.id, began_at, ledger.clone());
            work_in(context, (&session, cloud_access.own()), spec, ledger, began_at).await
        }
        Err(closed) => {
            let trouble = CloudWorkError::Tenancy(closed);
            tracing::warn!("cannot work in the cluster's project: {trouble}");
            let doing = "work in the cluster's project of the cloud";
            Ok(without_observation(context, &trouble, doing))
        }
    }
}

/// Works in the project of the session. Nothing is retried within a turn: the next turn is the retry, and observes first.
async fn work_in(
    context: &ConductorContext,
    sessions: (&Session, &Session),
    spec: &ClusterSpec<'_>,
    mut ledger: Ledger,
    now: Timestamp,
) -> Result<ClusterWork, TurnError> {
    let (cluster, settings) = (spec.cluster, &context.settings);
    let fence = context.membership.fence();
    let of = (cluster.id, cluster.asked_at);
    let mut looks = context.observation_cache.take(of, now, settings.look_every);
    let site = CloudLookups::new(sessions, cluster.blueprint.zone(), looks.looked_up());
    let shape = desired_objects(spec);
    let images = &settings.machines.kubernetes.images;
    let (observed, nodes) = tokio::join!(
        observe(&site, ObjectOwner::Cluster(spec), &ledger, &looks),
        Nodes::reach((&context.clients, images), spec, &shape)
    );
    let nodes = nodes?;
    let objects = match observed {
        Ok(objects) => objects,
        Err(trouble) => {
            tracing::warn!("cannot observe the cloud: {trouble}");
            return Ok(without_observation(context, &trouble, "observe the cloud"));
        }
    };
    let goal = CloudGoal {
        owner: ObjectOwner::Cluster(spec),
        shape: &shape,
        repair: &settings.repair,
        now,
    };
    let mut seen = ClusterObservation { at: Some(now), objects, ..ClusterObservation::default() };
    let agreed = compare(context, spec, &goal, &mut ledger, &mut seen).await?;
    observe_members(context, &nodes, &ledger, &mut seen).await?;
    let inside = fence.hold(work_inside(&nodes, &site, &mut seen)).await;
    let turn_context = TurnContext {
        store: &context.store,
        fence,
        site: &site,
        member_configs: &context.member_configs,
        goal,
        nodes: Some(&nodes),
    };
    let mut results = act(turn_context, &mut ledger, &mut seen).await?;
    results.failures.extend(inside.failures);
    let progress = cluster_progress(spec, &results, agreed, &seen);
    if may_reuse_observation(spec, &results, progress) {
        looks.note(&seen, now);
        context.observation_cache.keep(cluster.id, looks);
    }
    let pauses = settings.pauses();
    let next_turn = next_turn(progress, &results.failures, &seen.held, (&pauses, now));
    record_given_up(context, cluster.id, &results, now).await?;
    seen.problem = results.problem.or(inside.problem);
    Ok(ClusterWork { seen, next_turn })
}

/// Compares the observation with the desired objects and with the ledger.
async fn compare(
    context: &ConductorContext,
    spec: &ClusterSpec<'_>,
    goal: &CloudGoal<'_>,
    ledger: &mut Ledger,
    seen: &mut ClusterObservation,
) -> Result<LedgerMatch, TurnError> {
    seen.failures = failures(goal.shape, seen);
    seen.held = backing_off(spec.cluster, &goal.repair.backoff, goal.now);
    let lands_within = goal.repair.lands_within;
    Ok(reconcile_ledger(&context.store, ledger, (seen, goal.shape), lands_within).await?)
}

/// Observes the members. The time that a member may take begins with the latest of three events: the request for its server, the start of
/// this process, and the end of an outage of the database.
async fn observe_members(
    context: &ConductorContext,
    nodes: &Nodes<'_>,
    ledger: &Ledger,
    seen: &mut ClusterObservation,
) -> Result<(), TurnError> {
    let asked_at = |machine: &MemberName| {
        let line = ledger.line(&Key::Server(machine.clone()))?;
        Some(line.updated_at.unwrap_or(line.created_at).max(context.watch.since()))
    };
    Ok(nodes.observe(seen, asked_at).await?)
}

/// The failures of the work in a cluster's own Kubernetes.
#[derive(Default)]
struct KubernetesWork {
    failures: Vec<CallFailure>,
    /// The first problem with members. Problems with add-ons are in their observation.
    problem: Option<Problem>,
}

/// Admits members to the cluster, marks its nodes with GPUs, uncordons a member that has rebooted, labels and taints its nodes, and installs
/// its add-ons. A failure of one does not stop the others.
async fn work_inside(
    nodes: &Nodes<'_>,
    site: &CloudLookups<'_>,
    seen: &mut ClusterObservation,
) -> KubernetesWork {
    let mut work = KubernetesWork::default();
    if let Err(trouble) = nodes.admit(seen).await {
        work.note(trouble.failure("admit members to the cluster"));
    }
    if let Err(trouble) = nodes.mark_gpu_nodes(site).await {
        tracing::warn!("cannot mark nodes with GPUs: {trouble}");
        work.note(trouble.failure("mark nodes with GPUs"));
    }
    if let Err(trouble) = nodes.end_reboot(seen).await {
        tracing::warn!("cannot uncordon a member that has rebooted: {trouble}");
        work.note(trouble.failure("uncordon a member that has rebooted"));
    }
    if let Err(trouble) = nodes.mark_nodes_of_groups().await {
        tracing::warn!("cannot label and taint nodes: {trouble}");
        work.note(trouble.failure("label and taint nodes"));
    }
    match nodes.apply_add_ons(site, seen).await {
        Ok(add_ons) => seen.add_ons = add_ons,
        Err(trouble) => {
            tracing::warn!("cannot install add-ons in the cluster: {trouble}");
            let failure = trouble.failure("install add-ons in the cluster");
            let missing = BTreeMap::from([("add-ons".to_owned(), failure.problem.message.clone())]);
            seen.add_ons = Some(AddOnsObservation { missing, credential: None });
            work.failures.push(failure);
        }
    }
    work
}

impl KubernetesWork {
    fn note(&mut self, failure: CallFailure) {
        self.problem.get_or_insert_with(|| failure.problem.clone());
        self.failures.push(failure);
    }
}

/// Records an event for each object that was deleted because the cloud failed at it.
async fn record_given_up(
    context: &ConductorContext,
    cluster: ClusterUuid,
    results: &CallResults,
    now: Timestamp,
) -> Result<(), TurnError> {
    if results.given_up.is_empty() {
        return Ok(());
    }
    let event = |message: &String| {
        Event::new(cluster, Severity::Warning, "CloudFailed", message.clone(), now)
    };
    let events: Vec<Event> = results.given_up.iter().map(event).collect();
    Ok(context.store.append_events(cluster, &events).await?)
}

/// Returns the result of a turn without an observation.
fn without_observation(
    context: &ConductorContext,
    trouble: &CloudWorkError,
    doing: &str,
) -> ClusterWork {
    let failure = trouble.failure(doing);
    let pause = pause_after(slice::from_ref(&failure), &context.settings.pauses());
    let problem = Some(failure.problem);
    let seen = ClusterObservation { problem, ..ClusterObservation::default() };
    ClusterWork { seen, next_turn: Requeue::After(pause) }
}
