//! The conclusion from an observation of a VM: the new record, and the request that is sent next to Nova.

use jiff::{SignedDuration, Timestamp};

use crate::failure::setbacks_of;
use crate::{ClusterObservation, DesiredState, Key, LeaseNotice, Problem, ServerState};

use super::action::{ActionStep, word};
use super::lease::LeaseTurn;
use super::observation::VmObservation;
use super::{
    ActionOrigin, SentRequest, ServerObservation, Snapshot, Vm, VmActionKind, VmEvent,
    vm_desired_objects, vm_machine,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VmConclusion {
    pub(super) vm: Vm,
    pub(super) events: Vec<VmEvent>,
    /// The notices about the stages of the lease that were taken.
    pub(super) notices: Vec<LeaseNotice>,
    /// A new snapshot to be recorded.
    pub(super) copy: Option<Snapshot>,
    pub(super) next_request: Option<NextRequest>,
}

/// How long Nova may change a server before the VM says so. A resize or a migration copies the disk.
const SLOW_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// The request to Nova that is sent next for the current action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextRequest {
    /// The action, which was never requested. The request is recorded once the last request before it is known.
    First,
    /// The action again, as is already recorded in the conclusion.
    Repeated(VmActionKind),
    /// The confirmation of a new size.
    Confirm,
}

/// Applies the observation, the lease and the current action to the record, in this order.
pub(super) fn conclude(vm: &Vm, look: &VmObservation<'_>) -> VmConclusion {
    let mut events = Vec::new();
    let seen = apply_observation(vm, look, &mut events);
    let mut descent = LeaseTurn { vm: seen, look, events, notices: Vec::new(), copy: None };
    descent.take_due_stages();
    let LeaseTurn { mut vm, mut events, notices, copy, .. } = descent;
    let next_request = conclude_action(&mut vm, look, &mut events);
    VmConclusion { vm, events, notices, copy, next_request }
}

/// Applies the observation to the record.
fn apply_observation(before: &Vm, look: &VmObservation<'_>, events: &mut Vec<VmEvent>) -> Vm {
    let (mut vm, now) = (before.clone(), look.now);
    let Some(facts) = look.server() else {
        vm.problem.clone_from(&look.seen.problem);
        report_problem(before, &vm, events, now);
        return vm;
    };
    let address = |key: &Key| look.seen.objects.get(key).and_then(|found| found.address);
    vm.address = address(&Key::Port(vm_machine())).or(vm.address);
    vm.public_address = address(&Key::MachineAddress(vm_machine()));
    vm.setbacks =
        setbacks_of(&vm.setbacks, vm.created_at, &vm_desired_objects(&vm), look.seen, now);
    vm.server = facts.and_then(|facts| {
        let found = look.seen.objects.get(&Key::Server(vm_machine()))?;
        let before = before.server.as_ref().filter(|it| it.id == found.id && it.is == facts.is);
        Some(ServerObservation {
            id: found.id.clone(),
            is: facts.is.clone(),
            since: before.map_or(now, |it| it.since),
            flavor: facts.flavor.clone(),
        })
    });
    let is_on = facts.is_some_and(|facts| facts.is == ServerState::On);
    if vm.built_at.is_none() && is_on && vm.desire == DesiredState::Exist {
        vm.built_at = Some(now);
        if let Some(user_data) = &mut vm.user_data {
            user_data.is_kept = false;
        }
        events.push(VmEvent::info(&vm, "Built", "the server is running", now));
    }
    vm.problem = problem(&vm, look);
    report_problem(before, &vm, events, now);
    vm
}

/// Adds an event about the problem of the VM, unless it was reported before.
fn report_problem(before: &Vm, vm: &Vm, events: &mut Vec<VmEvent>, now: Timestamp) {
    let Some(problem) = &vm.problem else { return };
    if before.problem.as_ref().is_some_and(|it| it.reason == problem.reason) {
        return;
    }
    let event = if problem.is_final { VmEvent::error } else { VmEvent::warning };
    events.push(event(vm, &problem.reason, problem.message.clone(), now));
}

fn problem(vm: &Vm, look: &VmObservation<'_>) -> Option<Problem> {
    let given = |reason: &str, message: String, next_action: &str| {
        Some(Problem {
            reason: reason.to_owned(),
            message,
            next_action: next_action.to_owned(),
            is_final: true,
        })
    };
    if vm.desire == DesiredState::Gone {
        return look.seen.problem.clone();
    }
    if vm.built_at.is_none() {
        if let Some((key, setback)) = vm.given_up().next() {
            let (times, why) = (setback.times, &setback.why);
            let message = format!(
                "the cloud failed {times} times to create {key}, and clusterd gave up: {why}"
            );
            return given("BuildFailed", message, "delete the VM and create another one");
        }
        return look.seen.problem.clone();
    }
    match vm.server.as_ref().map(|server| &server.is) {
        None | Some(ServerState::Leaving) => given(
            "ServerGone",
            "the server disappeared, and clusterd did not delete it".to_owned(),
            "delete the VM and create another one",
        ),
        Some(ServerState::Failed(why)) => given(
            "ServerFailed",
            format!("the server failed: {why}"),
            "do a hard reboot, or delete the VM",
        ),
        Some(ServerState::Building | ServerState::Resized | ServerState::Changing)
            if look.seen.problem.is_none() =>
        {
            slow_server(vm, look.now)
        }
        Some(
            ServerState::Building
            | ServerState::On
            | ServerState::Off
            | ServerState::Resized
            | ServerState::Changing
            | ServerState::Other(_),
        ) => look.seen.problem.clone(),
    }
}

/// The problem of a server that Nova changes for so long that it may never end: Nova itself has no limit.
fn slow_server(vm: &Vm, now: Timestamp) -> Option<Problem> {
    let server = vm.server.as_ref()?;
    (now.duration_since(server.since) >= SLOW_AFTER).then(|| Problem {
        reason: "ServerBusy".to_owned(),
        message: format!("the server is {} since {}", word(&server.is), server.since),
        next_action: "ask the administrator of the cloud, or delete the VM".to_owned(),
        is_final: false,
    })
}

/// Decides the next step of the current action.
fn conclude_action(
    vm: &mut Vm,
    look: &VmObservation<'_>,
    events: &mut Vec<VmEvent>,
) -> Option<NextRequest> {
    let action = vm.action.clone().filter(|_| vm.desire == DesiredState::Exist)?;
    let (server, now) = (look.server()?, look.now);
    let is_late = action
        .sent
        .as_ref()
        .is_some_and(|sent| look.rules.lands_within < now.duration_since(sent.at));
    let kind = &action.kind;
    // A failed server counts as switched off.
    let is_failed = server.is_none_or(|it| matches!(it.is, ServerState::Failed(_)));
    if action.asker == ActionOrigin::Lease && is_failed {
        vm.action = None;
        return None;
    }
    match action.next(server, look.arrival, is_late) {
        ActionStep::Wait => None,
        ActionStep::Ask => {
            let Some(before) = action.sent.clone() else { return Some(NextRequest::First) };
            let sent = SentRequest { at: now, times: before.times.saturating_add(1), ..before };
            vm.action = Some(super::VmAction { sent: Some(sent), ..action.clone() });
            Some(NextRequest::Repeated(action.kind))
        }
        ActionStep::Confirm => Some(NextRequest::Confirm),
        ActionStep::Done => {
            if let VmActionKind::Resize(flavor) = kind {
                vm.flavor = flavor.clone();
            }
            vm.action = None;
            events.push(VmEvent::info(vm, "ActionDone", format!("done: {kind}"), now));
            None
        }
        ActionStep::Refuse(why) => {
            end(vm, ("ActionRefused", &action, &why), events, now);
            None
        }
        ActionStep::Fail(why) => {
            end(vm, ("ActionFailed", &action, &why), events, now);
            None
        }
    }
}

fn end(
    vm: &mut Vm,
    (reason, action, why): (&str, &super::VmAction, &str),
    events: &mut Vec<VmEvent>,
    now: Timestamp,
) {
    vm.action = None;
    let is_ending = action.asker == ActionOrigin::Lease && action.kind == VmActionKind::Stop;
    let was_told = is_ending && vm.ending_failed_at.is_some();
    if is_ending {
        vm.ending_failed_at = Some(now);
    }
    if !was_told {
        let message = format!("{} was not done: {why}", action.kind);
        events.push(VmEvent::warning(vm, reason, message, now));
    }
}

impl Vm {
    /// Returns the VM after Nova refused its action, with the events to record.
    pub(super) fn refused(&self, why: &str, now: Timestamp) -> (Vm, Vec<VmEvent>) {
        let (mut vm, mut events) = (self.clone(), Vec::new());
        if let Some(action) = &self.action {
            end(&mut vm, ("ActionRefused", action, why), &mut events, now);
        }
        (vm, events)
    }

    /// Whether the next turn is due soon, because something is in progress.
    pub(super) fn is_under_way(&self, seen: &ClusterObservation) -> bool {
        let is_at_work = seen.objects.values().any(|found| {
            matches!(
                found.state,
                crate::CloudObjectState::Working | crate::CloudObjectState::Deleting
            )
        });
        let is_changing = self.server.as_ref().is_some_and(|server| {
            matches!(server.is, ServerState::Building | ServerState::Changing)
        });
        is_at_work || is_changing || self.action.is_some()
    }
}
