//! The turn of a VM: observe, decide, record, request.

use std::time::Duration;

use cluster_core::{
    ClusterObservation, DesiredState, Ident, Problem, RequestArrival, Snapshot, SnapshotUuid, Vm,
    VmAction, VmActionKind, VmDecision, VmObservation, VmRequest, VmRules, VmUuid, vm_turn,
};
use cluster_store::{StoreError, VmChange, VmScope};
use jiff::Timestamp;
use lease::Due;
use newtype_uuid::GenericUuid;
use openstack::compute::actions::{self, ServerAction};
use openstack::{CloudError, Session};
use reconcile::{Queue, Requeue, time_left};
use tracing::{debug, info, instrument};

use super::cloud_work::VmWorkResult;
use super::{cloud_work, idle, notice};
use crate::context::{ConductorContext, ResourceRef};
use crate::settings::Settings;
use crate::tenancy::TenancyError;
use crate::turn_error::TurnError;

/// Runs one turn of a VM. Nothing else writes the conclusions in its record.
#[instrument(skip_all, fields(vm.id = %id))]
pub(crate) async fn turn(
    context: &ConductorContext,
    queue: &Queue<ResourceRef>,
    id: VmUuid,
) -> Result<Requeue, TurnError> {
    let ident = Ident::Id(id.into_untyped_uuid());
    let found = context.store.find_vms(&ident, &VmScope::All).await?;
    let Some(vm) = found.into_iter().next() else { return Ok(Requeue::OnChange) };
    let ledger = context.store.ledger_of(id).await?;
    if vm.desire == DesiredState::Gone && ledger.is_empty() {
        return Ok(delete_record(context, queue, &vm).await?);
    }
    if let Some(next) = record_project(context, &vm).await? {
        return Ok(next);
    }
    let copy = copy_of(context, &vm).await?;
    let sessions = context.session_for(&vm.project, vm.cloud_project.as_deref()).await;
    let worked = match &sessions {
        Ok(Some((session, own))) => cloud_work::work(context, (session, own), &vm, ledger).await?,
        Ok(None) => no_cloud(context),
        Err(closed) => unseen(context, of_tenancy(closed)),
    };
    let session = sessions.ok().flatten().map(|(session, _)| session);
    let session = session.as_ref();
    let now = (context.settings.clock)();
    let rules = rules(&context.settings);
    let look = VmObservation {
        seen: &worked.seen,
        arrival: worked.arrival,
        copy: copy.as_ref(),
        new_copy: SnapshotUuid::new_v4(),
        rules: &rules,
        now,
    };
    let mut turned = vm_turn(&vm, &look);
    turned.events.extend(worked.events);
    if let Some(session) = session
        && let Some(idle) =
            idle::look(session, &turned.vm, context.settings.vms.idle_every, now).await
    {
        turned.vm.idle = Some(idle);
    }
    let next = next(context, &turned, &worked.seen, worked.next, now);
    if turned.vm == vm && turned.events.is_empty() && turned.copy.is_none() && turned.ask.is_none()
    {
        debug!("nothing has changed");
        return Ok(next);
    }
    if let (Some(VmRequest::Action(_)), Some(session)) = (&turned.ask, session)
        && let Err(error) = record_last_request(session, &mut turned.vm).await
    {
        tracing::warn!("cannot read the last action of the server: {error}");
        return Ok(Requeue::After(context.settings.soon()));
    }
    let (before, after) = (vm.phase(), turned.vm.phase());
    let letters = notice::letters(context.settings.lending.addressees, &turned, now);
    let (copy, events) = (turned.copy.clone(), turned.events);
    let change = VmChange { vm: turned.vm, copy, events, letters };
    let written = match context.store.change_vm(&change).await {
        Ok(written) => written,
        Err(StoreError::Stale) => return Ok(Requeue::Now),
        Err(error) => return Err(error.into()),
    };
    if before != after {
        info!(state.from = %before, state.to = %after, "VM {id} is now {after}");
    }
    // Snapshots that depend on the VM have a turn: a new one, or one whose lease was extended.
    for copy in turned.copy.map(|it| it.id).into_iter().chain(vm.copy) {
        queue.wake(ResourceRef::Snapshot(copy));
    }
    match (turned.ask, session) {
        (Some(ask), Some(session)) => Ok(carry_out(context, session, &written, ask, now).await?),
        (Some(_) | None, _) => Ok(next),
    }
}

/// Returns the rules of a VM's turns.
fn rules(settings: &Settings) -> VmRules {
    VmRules {
        ladder: settings.vms.ladder.clone(),
        lands_within: settings.repair.lands_within,
        ends_again_after: settings.vms.ends_again_after,
    }
}

/// Reads the server's last request from Nova before a new action is requested. A repeated request keeps the value.
async fn record_last_request(session: &Session, vm: &mut Vm) -> Result<(), CloudError> {
    let Some(server) = &vm.server else { return Ok(()) };
    if let Some(VmAction { sent: Some(sent), .. }) = &mut vm.errand
        && sent.times <= 1
    {
        sent.after = actions::last_request(session, &server.id).await?;
    }
    Ok(())
}

/// Sends the recorded request to Nova.
async fn carry_out(
    context: &ConductorContext,
    session: &Session,
    vm: &Vm,
    ask: VmRequest,
    now: Timestamp,
) -> Result<Requeue, StoreError> {
    let soon = Requeue::After(context.settings.soon());
    let Some(server) = &vm.server else { return Ok(soon) };
    let is_confirm = ask == VmRequest::Confirm;
    let action = match ask {
        VmRequest::Confirm => ServerAction::ConfirmResize,
        VmRequest::Action(VmActionKind::Start) => ServerAction::Start,
        VmRequest::Action(VmActionKind::Stop) => ServerAction::Stop,
        VmRequest::Action(VmActionKind::RebootSoft) => ServerAction::RebootSoftly,
        VmRequest::Action(VmActionKind::RebootHard) => ServerAction::RebootHard,
        VmRequest::Action(VmActionKind::Resize(flavor)) => {
            ServerAction::Resize { flavor_id: flavor.id }
        }
    };
    let Err(error) = actions::act(session, &server.id, &action).await else { return Ok(soon) };
    tracing::warn!("the cloud refused {action:?}: {error}");
    // A request that may have arrived is judged by the next observation.
    if is_confirm || error.is_transient() || error.is_outcome_unknown() {
        return Ok(soon);
    }
    let (refused, events) = vm.refused(&error.to_string(), now);
    match context.store.change_vm(&VmChange { events, ..VmChange::of(refused) }).await {
        Ok(_) | Err(StoreError::Stale) => Ok(soon),
        Err(error) => Err(error),
    }
}

/// Returns when the next turn is due: at the next stage of the lease at the latest.
fn next(
    context: &ConductorContext,
    turned: &VmDecision,
    seen: &ClusterObservation,
    next: Requeue,
    now: Timestamp,
) -> Requeue {
    let soon = context.settings.soon();
    let mut within = match next {
        Requeue::Now | Requeue::OnChange => return Requeue::Now,
        Requeue::After(pause) => pause,
    };
    if turned.ask.is_some()
        || turned.vm.desire == DesiredState::Gone
        || turned.vm.is_under_way(seen)
    {
        within = within.min(soon);
    }
    let due = turned.vm.lease.as_ref().map(|it| context.settings.vms.ladder.due(it, now));
    match due {
        Some(Due::At(at)) => {
            within = within.min(time_left(at, now).max(Duration::from_millis(1)));
        }
        Some(Due::Now(_)) => within = within.min(soon),
        Some(Due::Nothing) | None => {}
    }
    Requeue::After(within)
}

async fn copy_of(context: &ConductorContext, vm: &Vm) -> Result<Option<Snapshot>, StoreError> {
    let Some(id) = vm.copy else { return Ok(None) };
    let ident = Ident::Id(id.into_untyped_uuid());
    Ok(context.store.find_snapshots(&ident, &VmScope::All).await?.into_iter().next())
}

/// Deletes the record of a VM that owns nothing in the cloud any more.
async fn delete_record(
    context: &ConductorContext,
    queue: &Queue<ResourceRef>,
    vm: &Vm,
) -> Result<Requeue, StoreError> {
    let snapshots = context.store.snapshots_of(vm.id).await?;
    match context.store.delete_vm(vm).await {
        Ok(()) => {
            info!("VM {} is deleted, with everything it owned in the cloud", vm.id);
            // The time for which a snapshot is kept begins now.
            snapshots.into_iter().for_each(|id| queue.wake(ResourceRef::Snapshot(id)));
            Ok(Requeue::OnChange)
        }
        Err(StoreError::Stale | StoreError::InUse { .. }) => Ok(Requeue::Now),
        Err(error) => Err(error),
    }
}

/// Records the cloud's project in which the VM will be created, before anything is.
async fn record_project(
    context: &ConductorContext,
    vm: &Vm,
) -> Result<Option<Requeue>, StoreError> {
    let Some(cloud_access) = context.cloud.as_ref().filter(|_| vm.cloud_project.is_none()) else {
        return Ok(None);
    };
    let place = match cloud_access.place_of(&vm.project).await {
        Ok(place) => place,
        Err(closed) => {
            tracing::warn!("cannot determine the project of the VM: {closed}");
            return Ok(Some(Requeue::After(context.settings.look_every)));
        }
    };
    let placed = Vm { cloud_project: Some(place), ..vm.clone() };
    match context.store.change_vm(&VmChange::of(placed)).await {
        Ok(_) | Err(StoreError::Stale) => Ok(Some(Requeue::Now)),
        Err(error) => Err(error),
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

fn no_cloud(context: &ConductorContext) -> VmWorkResult {
    unseen(
        context,
        Problem {
            reason: "NoCloud".to_owned(),
            message: "clusterd has no cloud configured, so nothing was created".to_owned(),
            next_action: "delete the VM, or configure a cloud for clusterd".to_owned(),
            is_final: false,
        },
    )
}

fn unseen(context: &ConductorContext, problem: Problem) -> VmWorkResult {
    VmWorkResult {
        seen: ClusterObservation { problem: Some(problem), ..ClusterObservation::default() },
        arrival: RequestArrival::NotYet,
        events: Vec::new(),
        next: Requeue::After(context.settings.look_every),
    }
}
