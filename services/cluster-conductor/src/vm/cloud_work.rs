//! The work on the cloud objects of a VM: observe, record, act, and decide when the next turn is due.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use cluster_core::{
    CloudGoal, CloudProgress, ClusterObservation, Ledger, LedgerEntry, ObjectOwner, Problem,
    RequestArrival, Vm, VmCloudWork, failures, next_turn, pause_after, vm_desired_objects,
};
use cluster_store::StoreError;
use openstack::Session;
use openstack::compute::actions;
use reconcile::Requeue;

use crate::actions::{TurnContext, act};
use crate::cloud::{CachedObservations, CloudLookups, CloudWorkError, observe, reconcile_ledger};
use crate::context::ConductorContext;
use crate::tenancy::TenancyError;

/// Brings the cloud as close to the desired objects as is possible now. Without access to the cloud, the observation says why.
pub(super) async fn work(
    context: &ConductorContext,
    vm: &Vm,
    lines: Vec<LedgerEntry>,
) -> Result<VmCloudWork, StoreError> {
    match context.session_for(&vm.project, vm.cloud_project.as_deref()).await {
        Ok(Some((session, own))) => work_in(context, (&session, own), vm, lines).await,
        Ok(None) => Ok(unseen(no_cloud(), context.settings.look_every)),
        Err(closed) => Ok(unseen(of_tenancy(&closed), context.settings.look_every)),
    }
}

/// Works in the project of the session. Nothing is retried within a turn: the next turn is the retry, and observes first.
async fn work_in(
    context: &ConductorContext,
    (session, own): (&Session, &Session),
    vm: &Vm,
    lines: Vec<LedgerEntry>,
) -> Result<VmCloudWork, StoreError> {
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
            return Ok(unseen(failure.problem, pause));
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
    let next_turn = next_turn(progress, &acted.failures, &seen.held, (&pauses, now));
    seen.problem = acted.problem;
    Ok(VmCloudWork { seen, arrival, given_up: acted.given_up, next_turn })
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

/// Returns the result of work without an observation.
fn unseen(problem: Problem, pause: Duration) -> VmCloudWork {
    VmCloudWork {
        seen: ClusterObservation { problem: Some(problem), ..ClusterObservation::default() },
        arrival: RequestArrival::NotYet,
        given_up: Vec::new(),
        next_turn: Requeue::After(pause),
    }
}

fn of_tenancy(closed: &TenancyError) -> Problem {
    let is_away = matches!(closed, TenancyError::KeystoneFailed(_));
    Problem {
        reason: if is_away { "CloudUnreachable" } else { "NoRole" }.to_owned(),
        message: format!("cannot work in the VM's project of the cloud: {closed}"),
        next_action:
            "check whether clusterd's user has a role in that project; clusterd keeps trying"
                .to_owned(),
        is_final: false,
    }
}

fn no_cloud() -> Problem {
    Problem {
        reason: "NoCloud".to_owned(),
        message: "clusterd has no cloud configured, so nothing was created".to_owned(),
        next_action: "delete the VM, or configure a cloud for clusterd".to_owned(),
        is_final: false,
    }
}
