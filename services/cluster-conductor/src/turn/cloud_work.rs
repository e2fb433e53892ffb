//! The work on the cloud objects of a cluster: observe, record, act, and decide when the next turn is due.

use std::collections::BTreeMap;
use std::slice;

use cluster_core::{
    AddOnsObservation, CloudGoal, CloudProgress, ClusterObservation, ClusterRecords, ClusterSpec,
    ClusterWork, DesiredState, Event, Key, Ledger, MemberName, ObjectOwner, Severity, backing_off,
    desired_objects, failures, next_turn, pause_after,
};
use reconcile::Requeue;

use crate::actions::{TurnContext, act};
use crate::cloud::{CloudLookups, CloudWorkError, observe, reconcile_ledger};
use crate::context::ConductorContext;
use crate::nodes::Nodes;
use crate::tenancy::CloudAccess;
use crate::turn_error::TurnError;

/// Brings the cloud as close to the desired objects as is possible now.
///
/// Nothing is retried within a turn: the next turn is the retry, and observes first.
pub(super) async fn work(
    context: &ConductorContext,
    cloud_access: &CloudAccess,
    records: &ClusterRecords,
) -> Result<ClusterWork, TurnError> {
    let ClusterRecords { cluster, groups, ledger: lines, .. } = records;
    let (spec, lines) = (&ClusterSpec { cluster, groups }, lines.clone());
    let now = (context.settings.clock)();
    let session = match cloud_access.of(spec.cluster, !lines.is_empty()).await {
        Ok(session) => session,
        Err(closed) => {
            let trouble = CloudWorkError::Tenancy(closed);
            tracing::warn!("cannot work in the cluster's project: {trouble}");
            return Ok(without_observation(
                context,
                &trouble,
                "work in the cluster's project of the cloud",
            ));
        }
    };
    let of = (spec.cluster.id, spec.cluster.asked_at);
    let mut looks = context.observation_cache.take(of, now, context.settings.look_every);
    let place = (&session, cloud_access.own());
    let site = CloudLookups::new(place, spec.cluster.blueprint.zone(), looks.looked_up());
    let shape = desired_objects(spec);
    let mut ledger = Ledger::new(spec.cluster.id, now, lines);
    let images = &context.settings.machines.kubernetes.images;
    let (observed, nodes) = tokio::join!(
        observe(&site, ObjectOwner::Cluster(spec), &ledger, &looks),
        Nodes::reach((&context.clients, images), spec, &shape)
    );
    let nodes = nodes?;
    let mut seen = match observed {
        Ok(objects) => {
            ClusterObservation { at: Some(now), objects, ..ClusterObservation::default() }
        }
        Err(trouble) => {
            tracing::warn!("cannot observe the cloud: {trouble}");
            return Ok(without_observation(context, &trouble, "observe the cloud"));
        }
    };
    let limits = &context.settings.repair;
    seen.failures = failures(&shape, &seen);
    seen.held = backing_off(spec.cluster, &limits.backoff, now);
    let compared = (&seen, &shape);
    let agreed =
        reconcile_ledger(&context.store, &mut ledger, compared, limits.lands_within).await?;
    let asked_at = |machine: &MemberName| {
        let line = ledger.line(&Key::Server(machine.clone()))?;
        Some(line.updated_at.unwrap_or(line.created_at).max(context.watch.since()))
    };
    nodes.observe(&mut seen, asked_at).await?;
    let (mut failed, mut inside) = (Vec::new(), None);
    if let Err(trouble) = nodes.admit(&seen).await {
        let failure = trouble.failure("admit members to the cluster");
        inside = Some(failure.problem.clone());
        failed.push(failure);
    }
    if let Err(trouble) = nodes.mark_gpu_nodes(&site).await {
        tracing::warn!("cannot mark nodes with GPUs: {trouble}");
        let failure = trouble.failure("mark nodes with GPUs");
        inside.get_or_insert_with(|| failure.problem.clone());
        failed.push(failure);
    }
    match nodes.apply_add_ons(&site, &seen).await {
        Ok(add_ons) => seen.add_ons = add_ons,
        Err(trouble) => {
            tracing::warn!("cannot install add-ons in the cluster: {trouble}");
            let failure = trouble.failure("install add-ons in the cluster");
            let missing = BTreeMap::from([("add-ons".to_owned(), failure.problem.message.clone())]);
            seen.add_ons = Some(AddOnsObservation { missing, credential: None });
            failed.push(failure);
        }
    }

    let turn_context = TurnContext {
        store: &context.store,
        site: &site,
        member_configs: &context.member_configs,
        goal: CloudGoal { owner: ObjectOwner::Cluster(spec), shape: &shape, repair: limits, now },
        nodes: Some(&nodes),
    };
    let acted = act(turn_context, &mut ledger, &mut seen).await?;
    failed.extend(acted.failures);

    let mut progress = CloudProgress::of(&failed, agreed, acted.is_gone_soon, &seen);
    if progress == CloudProgress::Settled && nodes.is_under_way(&seen) {
        progress = CloudProgress::InProgress;
    }
    if progress == CloudProgress::InProgress
        && spec.cluster.desire == DesiredState::Exist
        && acted.problem.is_none()
        && !acted.has_changed
    {
        looks.note(&seen, now);
        context.observation_cache.keep(spec.cluster.id, looks);
    }
    let next_turn = next_turn(progress, &failed, &seen.held, (&context.settings.pauses(), now));
    if !acted.given_up.is_empty() {
        let event = |message: &String| Event {
            id: None,
            cluster: spec.cluster.id,
            at: now,
            severity: Severity::Warning,
            reason: "CloudFailed".to_owned(),
            message: message.clone(),
        };
        let events: Vec<Event> = acted.given_up.iter().map(event).collect();
        context.store.append_events(spec.cluster.id, &events).await?;
    }
    seen.problem = acted.problem.or(inside);
    Ok(ClusterWork { seen, next_turn })
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
