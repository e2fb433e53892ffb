//! The cloud part of a cluster's turn: observe, record, act, and decide when the next turn is due.

use std::collections::BTreeMap;

use cluster_core::{
    AddOnsObservation, ClusterObservation, ClusterSpec, DesiredState, Event, Key, LedgerEntry,
    MemberName, Severity, backing_off, desired_objects, failures,
};
use reconcile::Requeue;

use crate::actions::{TurnContext, act};
use crate::cloud::{
    CloudLookups, CloudWorkError, Ledger, LedgerMatch, Owner, is_at_work, no_later, observe, pause,
};
use crate::context::ConductorContext;
use crate::nodes::Nodes;
use crate::tenancy::CloudAccess;
use crate::turn_error::TurnError;

/// The result of a turn's work.
pub(crate) struct WorkResult {
    /// The latest observation.
    pub(crate) seen: ClusterObservation,
    /// When the next turn is due.
    pub(crate) next: Requeue,
}

/// Brings the cloud as close to the desired objects as is possible now.
///
/// Nothing is retried within a turn: the next turn is the retry, and observes first.
pub(crate) async fn work(
    context: &ConductorContext,
    cloud_access: &CloudAccess,
    spec: &ClusterSpec<'_>,
    lines: Vec<LedgerEntry>,
) -> Result<WorkResult, TurnError> {
    let now = (context.settings.clock)();
    let session = match cloud_access.of(spec.cluster, !lines.is_empty()).await {
        Ok(session) => session,
        Err(closed) => {
            let trouble = CloudWorkError::Tenancy(closed);
            tracing::warn!("cannot work in the cluster's project: {trouble}");
            return Ok(without_observation(
                context,
                trouble,
                "work in the cluster's project of the cloud",
            ));
        }
    };
    let of = (spec.cluster.id, spec.cluster.asked_at);
    let mut looks = context.observation_cache.take(of, now, context.settings.look_every);
    let place = (&session, cloud_access.own());
    let site = CloudLookups::new(place, spec.cluster.blueprint.zone(), looks.looked_up());
    let shape = desired_objects(spec);
    let mut ledger = Ledger::new(&context.store, spec.cluster.id, now, lines);
    let images = &context.settings.machines.kubernetes.images;
    let (observed, nodes) = tokio::join!(
        observe(&site, Owner::Cluster(spec), &ledger, &looks),
        Nodes::reach((&context.clients, images), spec, &shape)
    );
    let nodes = nodes?;
    let mut seen = match observed {
        Ok(objects) => {
            ClusterObservation { at: Some(now), objects, ..ClusterObservation::default() }
        }
        Err(trouble) => {
            tracing::warn!("cannot observe the cloud: {trouble}");
            return Ok(without_observation(context, trouble, "observe the cloud"));
        }
    };
    let limits = &context.settings.repair;
    seen.failures = failures(&shape, &seen);
    seen.held = backing_off(spec.cluster, &limits.backoff, now);
    let agreed = ledger.reconcile(&seen, &shape, limits.lands_within).await?;
    let asked_at = |machine: &MemberName| {
        let line = ledger.line(&Key::Server(machine.clone()))?;
        Some(line.updated_at.unwrap_or(line.created_at).max(context.watch.since()))
    };
    nodes.observe(&mut seen, asked_at).await?;
    let (mut troubles, mut inside) = (Vec::new(), None);
    if let Err(trouble) = nodes.admit(&seen).await {
        inside = Some(trouble.problem("admit members to the cluster"));
        troubles.push(trouble);
    }
    if let Err(trouble) = nodes.mark_gpu_nodes(&site).await {
        tracing::warn!("cannot mark nodes with GPUs: {trouble}");
        inside.get_or_insert_with(|| trouble.problem("mark nodes with GPUs"));
        troubles.push(trouble);
    }
    match nodes.apply_add_ons(&site, &seen).await {
        Ok(add_ons) => seen.add_ons = add_ons,
        Err(trouble) => {
            tracing::warn!("cannot install add-ons in the cluster: {trouble}");
            let told = trouble.problem("install add-ons in the cluster");
            let missing = BTreeMap::from([("add-ons".to_owned(), told.message)]);
            seen.add_ons = Some(AddOnsObservation { missing, credential: None });
            troubles.push(trouble);
        }
    }

    let turn_context = TurnContext {
        site: &site,
        member_configs: &context.member_configs,
        repair: limits,
        of: Owner::Cluster(spec),
        shape: &shape,
        nodes: Some(&nodes),
        now,
    };
    let acted = act(turn_context, &mut ledger, &mut seen).await?;
    troubles.extend(acted.troubles);

    let next = if !troubles.is_empty() {
        Requeue::After(pause(&context.settings, &troubles))
    } else if agreed == LedgerMatch::Struck || acted.is_gone_soon {
        Requeue::Now
    } else if is_at_work(&seen) || agreed == LedgerMatch::MayStillCome || nodes.is_under_way(&seen)
    {
        if spec.cluster.desire == DesiredState::Exist
            && acted.problem.is_none()
            && !acted.has_changed
        {
            looks.note(&seen, now);
            context.observation_cache.keep(spec.cluster.id, looks);
        }
        Requeue::After(context.settings.soon())
    } else {
        Requeue::After(context.settings.look_every)
    };
    let next = no_later(next, &seen.held, now);
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
    Ok(WorkResult { seen, next })
}

/// Returns the result of a turn without an observation.
fn without_observation(
    context: &ConductorContext,
    trouble: CloudWorkError,
    doing: &str,
) -> WorkResult {
    let problem = Some(trouble.problem(doing));
    let next = Requeue::After(pause(&context.settings, &[trouble]));
    WorkResult { seen: ClusterObservation { problem, ..ClusterObservation::default() }, next }
}
