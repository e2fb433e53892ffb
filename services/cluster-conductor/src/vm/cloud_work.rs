//! The cloud part of a VM's turn: observe, record, act, and decide when the next turn is due.

use std::slice;
use std::sync::Arc;

use cluster_core::{
    CloudGoal, CloudProgress, ClusterObservation, Ledger, LedgerEntry, ObjectOwner, RequestArrival,
    Vm, VmEvent, failures, next_turn, pause_after, vm_desired_objects,
};
use cluster_store::StoreError;
use openstack::Session;
use openstack::compute::actions;
use reconcile::Requeue;

use crate::actions::{TurnContext, act};
use crate::cloud::{CachedObservations, CloudLookups, CloudWorkError, observe, reconcile_ledger};
use crate::context::ConductorContext;

/// The result of a turn's work.
pub(crate) struct VmWorkResult {
    /// The latest observation.
    pub(crate) seen: ClusterObservation,
    /// Whether Nova had received the request of the current action before the observation.
    pub(crate) arrival: RequestArrival,
    pub(crate) events: Vec<VmEvent>,
    /// When the next turn is due.
    pub(crate) next: Requeue,
}

/// Brings the cloud as close to the desired objects as is possible now.
///
/// Nothing is retried within a turn: the next turn is the retry, and observes first.
pub(crate) async fn work(
    context: &ConductorContext,
    (session, own): (&Session, &Session),
    vm: &Vm,
    lines: Vec<LedgerEntry>,
) -> Result<VmWorkResult, StoreError> {
    let (now, repair) = ((context.settings.clock)(), &context.settings.repair);
    let zone = vm.zone_name();
    let site = CloudLookups::new((session, own), zone.as_deref(), Arc::default());
    let shape = vm_desired_objects(vm);
    let mut ledger = Ledger::new(vm.id, now, lines);
    let look = async {
        // A received request has its effect in an observation that begins later.
        let arrival = arrival(session, vm).await?;
        let objects =
            observe(&site, ObjectOwner::Vm(vm), &ledger, &CachedObservations::default()).await?;
        Ok::<_, CloudWorkError>((arrival, objects))
    };
    let (arrival, mut seen) = match look.await {
        Ok((arrival, objects)) => (
            arrival,
            ClusterObservation { at: Some(now), objects, ..ClusterObservation::default() },
        ),
        Err(trouble) => {
            tracing::warn!("cannot observe the cloud: {trouble}");
            let failure = trouble.failure("observe the cloud");
            let pause = pause_after(slice::from_ref(&failure), &context.settings.pauses());
            let problem = Some(failure.problem);
            return Ok(VmWorkResult {
                seen: ClusterObservation { problem, ..ClusterObservation::default() },
                arrival: RequestArrival::NotYet,
                events: Vec::new(),
                next: Requeue::After(pause),
            });
        }
    };
    seen.failures = failures(&shape, &seen);
    // A failure that this observation shows starts the back-off at once.
    let counted = vm.with_setbacks(&shape, &seen, now);
    seen.held = counted.held(&repair.backoff, now);
    let compared = (&seen, &shape);
    let agreed =
        reconcile_ledger(&context.store, &mut ledger, compared, repair.lands_within).await?;
    let turn_context = TurnContext {
        store: &context.store,
        site: &site,
        member_configs: &context.member_configs,
        goal: CloudGoal { owner: ObjectOwner::Vm(vm), shape: &shape, repair, now },
        nodes: None,
    };
    let acted = act(turn_context, &mut ledger, &mut seen).await?;
    let progress = CloudProgress::of(&acted.failures, agreed, acted.is_gone_soon, &seen);
    let pauses = context.settings.pauses();
    let next = next_turn(progress, &acted.failures, &seen.held, (&pauses, now));
    let event = |why: &String| VmEvent::warning(vm, "CloudFailed", why.clone(), now);
    let events = acted.given_up.iter().map(event).collect();
    seen.problem = acted.problem;
    Ok(VmWorkResult { seen, arrival, events, next })
}

/// Returns whether Nova received the last request of the current action.
async fn arrival(session: &Session, vm: &Vm) -> Result<RequestArrival, CloudWorkError> {
    let sent = vm.errand.as_ref().and_then(|errand| errand.sent.as_ref());
    let (Some(sent), Some(server)) = (sent, &vm.server) else { return Ok(RequestArrival::NotYet) };
    match actions::last_request(session, &server.id).await {
        Ok(last) if last == sent.after => Ok(RequestArrival::NotYet),
        Ok(_) => Ok(RequestArrival::Arrived),
        // The server is deleted, which the observation shows.
        Err(error) if error.is_not_found() => Ok(RequestArrival::NotYet),
        Err(error) => Err(error.into()),
    }
}
