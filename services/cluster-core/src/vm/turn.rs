//! What is concluded of a machine in one turn, and what is to be asked for next.

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

/// By what a machine's turn is decided.
#[derive(Clone, Debug)]
pub struct VmRules {
    /// What comes before the end of a lease and after it.
    pub ladder: Ladder,
    /// Within what time a request that nobody answered may be carried out.
    pub lands_within: SignedDuration,
    /// After what time a machine is shut off again that did not go off when its lease ended.
    pub ends_again_after: SignedDuration,
}

/// What a turn is decided on.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// What the cloud has.
    pub seen: &'a Seen,
    /// Whether what was sent to the cloud had arrived, before it was looked at.
    pub arrival: Arrival,
    /// The copy that is kept of the machine, if there is one.
    pub copy: Option<&'a Snapshot>,
    /// The id of one that is asked for now.
    pub new_copy: SnapshotUuid,
    /// The rules.
    pub rules: &'a VmRules,
    /// What time it is.
    pub now: Timestamp,
}

/// What a turn came to. All of it is to be written before anything is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turned {
    /// The machine with what was concluded.
    pub vm: Vm,
    /// What there is to say.
    pub events: Vec<VmEvent>,
    /// What of it is told outside: the rungs of its lease that are taken.
    pub told: Vec<LeaseTold>,
    /// A snapshot to be added.
    pub copy: Option<Snapshot>,
    /// What is to be asked of the cloud.
    pub ask: Option<VmAsk>,
}

/// What is asked of the cloud for an errand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmAsk {
    /// The errand itself.
    Errand(ErrandKind),
    /// That it keeps its new size.
    Confirm,
}

impl<'a> Look<'a> {
    /// The server, if it is there; nothing, where nobody looked.
    pub(super) fn server(&self) -> Option<Option<&'a ServerFacts>> {
        self.seen.at?;
        let found = self.seen.objects.get(&Key::Server(vm_machine()));
        Some(found.and_then(|found| match &found.facts {
            Facts::Server(facts) => Some(facts),
            Facts::None | Facts::Rules(_) | Facts::Addresses(_) => None,
        }))
    }
}

/// The machine with what was concluded of `look`, and what is next.
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

/// What was seen of it.
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
        events.push(VmEvent::info(&vm, "Built", "its server runs", now));
    }
    vm.problem = problem(&vm, look);
    tell(before, &vm, events, now);
    vm
}

/// Says what is in its way, once.
fn tell(before: &Vm, vm: &Vm, events: &mut Vec<VmEvent>, now: Timestamp) {
    let Some(problem) = &vm.problem else { return };
    if before.problem.as_ref().is_some_and(|it| it.reason == problem.reason) {
        return;
    }
    let event = if problem.is_final { VmEvent::error } else { VmEvent::warning };
    events.push(event(vm, &problem.reason, problem.message.clone(), now));
}

/// What is in its way.
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
            let message =
                format!("the cloud failed at its {key} {times} times, and is asked no more: {why}");
            return given("BuildFailed", message, "delete it, and ask for another one");
        }
        return look.seen.problem.clone();
    }
    match vm.server.as_ref().map(|server| &server.is) {
        None | Some(ServerIs::Leaving) => given(
            "ServerGone",
            "its server is gone, and was not deleted by clusterd".to_owned(),
            "delete it, and ask for another one",
        ),
        Some(ServerIs::Failed(why)) => given(
            "ServerFailed",
            format!("its server failed: {why}"),
            "reboot it hard, or delete it",
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

/// The next step of its errand.
fn errand(vm: &mut Vm, look: &Look<'_>, events: &mut Vec<VmEvent>) -> Option<VmAsk> {
    let errand = vm.errand.clone().filter(|_| vm.desire == Desire::Exist)?;
    let (server, now) = (look.server()?, look.now);
    let is_late = errand
        .sent
        .as_ref()
        .is_some_and(|sent| look.rules.lands_within < now.duration_since(sent.at));
    let kind = &errand.kind;
    // A server that failed counts as shut off.
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
        let message = format!("{} is not done: {why}", errand.kind);
        events.push(VmEvent::warning(vm, reason, message, now));
    }
}

impl Vm {
    /// It, once the cloud refused to do its errand, and what to say of that.
    pub fn refused(&self, why: &str, now: Timestamp) -> (Vm, Vec<VmEvent>) {
        let (mut vm, mut events) = (self.clone(), Vec::new());
        if let Some(errand) = &self.errand {
            end(&mut vm, ("ErrandRefused", errand, why), &mut events, now);
        }
        (vm, events)
    }

    /// Whether a turn is due soon: something is to be done, or being done.
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
