//! A turn of a VM: the new record, and the request to send to Nova.

use ::lease::Ladder;
use jiff::{SignedDuration, Timestamp};

use crate::setback::setbacks_of;
use crate::{Desire, Facts, Key, LeaseTold, Problem, Seen, SnapshotUuid, vm_machine};

use super::errand::Next;
use super::lease::Descent;
use super::{
    Arrival, Asker, ErrandKind, Sent, ServerFacts, ServerIs, ServerSeen, Snapshot, Vm, VmEvent,
    vm_shape,
};

/// The times that rule a VM's turn.
#[derive(Clone, Debug)]
pub struct VmRules {
    /// When the stages of a lease are due.
    pub ladder: Ladder,
    /// How long the cloud may still carry out a request that got no answer.
    pub lands_within: SignedDuration,
    /// How long to wait before a VM that did not switch off at the end of its lease is switched off again.
    pub ends_again_after: SignedDuration,
}

/// Everything that a turn is decided from.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The observation of the VM's cloud objects.
    pub seen: &'a Seen,
    /// Whether Nova received the request of the current action. Read before `seen`, so that the observation includes its effect.
    pub arrival: Arrival,
    /// The snapshot that is kept of the VM, when there is one.
    pub copy: Option<&'a Snapshot>,
    /// The id of a new snapshot, should the turn need one.
    pub new_copy: SnapshotUuid,
    pub rules: &'a VmRules,
    pub now: Timestamp,
}

/// The result of a turn. The conductor writes all of the result before it sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turned {
    pub vm: Vm,
    pub events: Vec<VmEvent>,
    /// The notices about the stages of the lease that were taken.
    pub told: Vec<LeaseTold>,
    /// A new snapshot to be recorded.
    pub copy: Option<Snapshot>,
    pub ask: Option<VmAsk>,
}

/// A request to Nova for the current action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmAsk {
    /// The action itself.
    Errand(ErrandKind),
    /// The confirmation of a new size.
    Confirm,
}

impl<'a> Look<'a> {
    /// Returns the server of the observation: `None` when the cloud was not observed, `Some(None)` when the VM has no server.
    pub(super) fn server(&self) -> Option<Option<&'a ServerFacts>> {
        self.seen.at?;
        let found = self.seen.objects.get(&Key::Server(vm_machine()));
        Some(found.and_then(|found| match &found.facts {
            Facts::Server(facts) => Some(facts),
            Facts::None | Facts::Rules(_) | Facts::Addresses(_) => None,
        }))
    }
}

/// Decides one turn: applies the observation, the lease and the current action, in this order.
///
/// Pure: the same inputs always give the same turn.
pub fn vm_turn(vm: &Vm, look: &Look<'_>) -> Turned {
    let mut events = Vec::new();
    let seen = concluded(vm, look, &mut events);
    let mut descent = Descent { vm: seen, look, events, told: Vec::new(), copy: None };
    descent.descend();
    let Descent { mut vm, mut events, told, copy, .. } = descent;
    let ask = errand(&mut vm, look, &mut events);
    Turned { vm, events, told, copy, ask }
}

/// Applies the observation to the record.
fn concluded(before: &Vm, look: &Look<'_>, events: &mut Vec<VmEvent>) -> Vm {
    let (mut vm, now) = (before.clone(), look.now);
    let Some(facts) = look.server() else {
        vm.problem.clone_from(&look.seen.problem);
        tell(before, &vm, events, now);
        return vm;
    };
    let address = |key: &Key| look.seen.objects.get(key).and_then(|found| found.address);
    vm.address = address(&Key::Port(vm_machine())).or(vm.address);
    vm.public_address = address(&Key::MachineAddress(vm_machine()));
    vm.setbacks = setbacks_of(&vm.setbacks, vm.created_at, &vm_shape(&vm), look.seen, now);
    vm.server = facts.and_then(|facts| {
        let found = look.seen.objects.get(&Key::Server(vm_machine()))?;
        let before = before.server.as_ref().filter(|it| it.id == found.id && it.is == facts.is);
        Some(ServerSeen {
            id: found.id.clone(),
            is: facts.is.clone(),
            since: before.map_or(now, |it| it.since),
            flavor: facts.flavor.clone(),
        })
    });
    let is_on = facts.is_some_and(|facts| facts.is == ServerIs::On);
    if vm.built_at.is_none() && is_on && vm.desire == Desire::Exist {
        vm.built_at = Some(now);
        if let Some(user_data) = &mut vm.user_data {
            user_data.is_kept = false;
        }
        events.push(VmEvent::info(&vm, "Built", "the server is running", now));
    }
    vm.problem = problem(&vm, look);
    tell(before, &vm, events, now);
    vm
}

/// Adds an event about the problem of the VM, unless it was reported before.
fn tell(before: &Vm, vm: &Vm, events: &mut Vec<VmEvent>, now: Timestamp) {
    let Some(problem) = &vm.problem else { return };
    if before.problem.as_ref().is_some_and(|it| it.reason == problem.reason) {
        return;
    }
    let event = if problem.is_final { VmEvent::error } else { VmEvent::warning };
    events.push(event(vm, &problem.reason, problem.message.clone(), now));
}

/// Returns the problem of the VM.
fn problem(vm: &Vm, look: &Look<'_>) -> Option<Problem> {
    let given = |reason: &str, message: String, next_action: &str| {
        Some(Problem {
            reason: reason.to_owned(),
            message,
            next_action: next_action.to_owned(),
            is_final: true,
        })
    };
    if vm.desire == Desire::Gone {
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
        None | Some(ServerIs::Leaving) => given(
            "ServerGone",
            "the server disappeared, and clusterd did not delete it".to_owned(),
            "delete the VM and create another one",
        ),
        Some(ServerIs::Failed(why)) => given(
            "ServerFailed",
            format!("the server failed: {why}"),
            "do a hard reboot, or delete the VM",
        ),
        Some(
            ServerIs::Building
            | ServerIs::On
            | ServerIs::Off
            | ServerIs::Resized
            | ServerIs::Changing
            | ServerIs::Other(_),
        ) => look.seen.problem.clone(),
    }
}

/// Decides the next step of the current action.
fn errand(vm: &mut Vm, look: &Look<'_>, events: &mut Vec<VmEvent>) -> Option<VmAsk> {
    let errand = vm.errand.clone().filter(|_| vm.desire == Desire::Exist)?;
    let (server, now) = (look.server()?, look.now);
    let is_late = errand
        .sent
        .as_ref()
        .is_some_and(|sent| look.rules.lands_within < now.duration_since(sent.at));
    let kind = &errand.kind;
    // A failed server counts as switched off.
    let is_failed = server.is_none_or(|it| matches!(it.is, ServerIs::Failed(_)));
    if errand.asker == Asker::Lease && is_failed {
        vm.errand = None;
        return None;
    }
    match errand.next(server, look.arrival, is_late) {
        Next::Wait => None,
        Next::Ask => {
            let times = errand.sent.as_ref().map_or(0, |sent| sent.times).saturating_add(1);
            let after = errand.sent.as_ref().and_then(|sent| sent.after.clone());
            let sent = Some(Sent { at: now, after, times });
            vm.errand = Some(super::Errand { sent, ..errand.clone() });
            Some(VmAsk::Errand(errand.kind))
        }
        Next::Confirm => Some(VmAsk::Confirm),
        Next::Done => {
            if let ErrandKind::Resize(flavor) = kind {
                vm.flavor = flavor.clone();
            }
            vm.errand = None;
            events.push(VmEvent::info(vm, "ErrandDone", format!("done: {kind}"), now));
            None
        }
        Next::Refuse(why) => {
            end(vm, ("ErrandRefused", &errand, &why), events, now);
            None
        }
        Next::Fail(why) => {
            end(vm, ("ErrandFailed", &errand, &why), events, now);
            None
        }
    }
}

fn end(
    vm: &mut Vm,
    (reason, errand, why): (&str, &super::Errand, &str),
    events: &mut Vec<VmEvent>,
    now: Timestamp,
) {
    vm.errand = None;
    let is_ending = errand.asker == Asker::Lease && errand.kind == ErrandKind::Stop;
    let was_told = is_ending && vm.ending_failed_at.is_some();
    if is_ending {
        vm.ending_failed_at = Some(now);
    }
    if !was_told {
        let message = format!("{} was not done: {why}", errand.kind);
        events.push(VmEvent::warning(vm, reason, message, now));
    }
}

impl Vm {
    /// Returns the VM after Nova refused its action, with the events to record.
    pub fn refused(&self, why: &str, now: Timestamp) -> (Vm, Vec<VmEvent>) {
        let (mut vm, mut events) = (self.clone(), Vec::new());
        if let Some(errand) = &self.errand {
            end(&mut vm, ("ErrandRefused", errand, why), &mut events, now);
        }
        (vm, events)
    }

    /// Whether the next turn is due soon, because something is in progress.
    pub fn is_under_way(&self, seen: &Seen) -> bool {
        let is_at_work = seen.objects.values().any(|found| {
            matches!(found.state, crate::FoundState::Working | crate::FoundState::Leaving)
        });
        let is_changing = self
            .server
            .as_ref()
            .is_some_and(|server| matches!(server.is, ServerIs::Building | ServerIs::Changing));
        is_at_work || is_changing || self.errand.is_some()
    }
}
