//! The decisions of a turn of a VM.

use std::time::Duration;

use ::lease::Due;
use decision::{Decision, Requeue, time_left};
use jiff::Timestamp;

use super::conclusion::{NextRequest, VmConclusion, conclude};
use super::observation::VmObservation;
use super::{
    IdleCheck, RequestArrival, SentRequest, Snapshot, Vm, VmAction, VmActionKind, VmEvent, VmRules,
};
use crate::{
    ClusterObservation, DesiredState, LeaseNotice, LedgerEntry, ProjectObservation, RecordChange,
    ServerState,
};

/// The shortest pause before a stage of the lease, so that a stage that is due does not repeat turns without a pause.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// The records that a turn of a VM reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmRecords {
    pub vm: Vm,
    /// The cloud objects of the VM.
    pub ledger: Vec<LedgerEntry>,
    /// The snapshot that is kept of the VM, when there is one.
    pub copy: Option<Snapshot>,
}

/// The change of a VM, with everything that is written in the same transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmUpdate {
    pub vm: Vm,
    pub events: Vec<VmEvent>,
    /// The notices about the stages of the lease that were taken.
    pub notices: Vec<LeaseNotice>,
    /// A new snapshot to be recorded.
    pub copy: Option<Snapshot>,
}

/// A call to the cloud for a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmCall {
    /// Bring the cloud as close to the desired objects as is possible now, and observe them.
    ReconcileObjects,
    /// Read from Nova how much processor time the server with this id has used.
    ReadDiagnostics { server: String },
    /// Read the id of the last request that Nova has recorded for the server. A newer one is the request that follows.
    ReadLastRequest { server: String },
    /// Send a request that is recorded, or a confirmation, which may be sent twice.
    Send { server: String, request: VmRequest },
}

/// A request to Nova for the current action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmRequest {
    Action(VmActionKind),
    /// The confirmation of a new size.
    Confirm,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmCallResult {
    Reconciled(Box<VmCloudWork>),
    /// The processor time of the server since its start, in ns.
    ProcessorTime(u64),
    /// Nova gives no diagnostics of the server to clusterd's user.
    NoDiagnostics,
    /// Nova does not answer now.
    DiagnosticsUnknown,
    LastRequest(Option<String>),
    /// Why the last request is not known.
    LastRequestUnknown(String),
    Sent,
    /// Why the request got no answer. Nova may have received it.
    Unanswered(String),
    Refused {
        request: VmRequest,
        why: String,
    },
}

/// The result of the work on the cloud objects of a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmCloudWork {
    pub seen: ClusterObservation,
    /// Whether Nova had received the request of the current action before the observation.
    pub arrival: RequestArrival,
    /// Descriptions of objects that were deleted because the cloud failed at them.
    pub given_up: Vec<String>,
    /// When the next turn is due for the objects.
    pub next_turn: Requeue,
}

/// A decision of a turn of a VM.
type Planned = Decision<RecordChange<VmUpdate>, VmCall>;

/// Decides the first step of a turn.
///
/// Pure: the same inputs always give the same decision.
pub fn plan_vm(records: &VmRecords, project: &ProjectObservation, rules: &VmRules) -> Planned {
    let VmRecords { vm, .. } = records;
    if records.is_over() {
        return Decision::write(RecordChange::Delete, Requeue::OnChange);
    }
    match project {
        // The project is recorded before anything is created in it.
        ProjectObservation::New(project) => {
            let vm = Vm { cloud_project: Some(project.clone()), ..vm.clone() };
            let update = VmUpdate { vm, events: Vec::new(), notices: Vec::new(), copy: None };
            Decision::write(RecordChange::Write(update), Requeue::Now)
        }
        ProjectObservation::Unknown(why) => Decision::rest(Requeue::After(rules.pauses.look_every))
            .warn_of(why, "cannot determine the project of the VM"),
        ProjectObservation::NoCloud | ProjectObservation::Recorded => {
            Decision::act(VmCall::ReconcileObjects)
        }
    }
}

/// Decides what follows from the calls of a turn: from the work on the cloud objects, the observation, the lease and the current action;
/// then from the answers of Nova.
pub fn after_vm_calls(
    records: &VmRecords,
    results: &[VmCallResult],
    rules: &VmRules,
    now: Timestamp,
) -> Planned {
    // The work is the only call of its decision.
    match results {
        [VmCallResult::Reconciled(work)] => after_work(records, work, rules, now),
        answers => after_answers(&records.vm, answers, now),
    }
}

impl VmRecords {
    /// Whether the VM is to be deleted, and owns nothing in the cloud any more.
    pub fn is_over(&self) -> bool {
        self.vm.desire == DesiredState::Gone && self.ledger.is_empty()
    }
}

fn after_work(records: &VmRecords, work: &VmCloudWork, rules: &VmRules, now: Timestamp) -> Planned {
    let VmCloudWork { seen, arrival, given_up, next_turn } = work;
    let copy = records.copy.as_ref();
    let look = VmObservation { seen, arrival: *arrival, copy, rules, now };
    let VmConclusion { mut vm, mut events, notices, copy, next_request } =
        conclude(&records.vm, &look);
    let failed = |why: &String| VmEvent::warning(&records.vm, "CloudFailed", why.clone(), now);
    events.extend(given_up.iter().map(failed));
    let idle_check = seen.at.and_then(|_| check_idle(&mut vm, rules, now));
    let requests = vm.server.as_ref().zip(next_request).map(|(server, next)| {
        let server = server.id.clone();
        match next {
            NextRequest::First => VmCall::ReadLastRequest { server },
            NextRequest::Repeated(kind) => {
                VmCall::Send { server, request: VmRequest::Action(kind) }
            }
            NextRequest::Confirm => VmCall::Send { server, request: VmRequest::Confirm },
        }
    });
    let next_turn = match requests {
        Some(_) => Requeue::After(rules.pauses.soon),
        None => vm.next_turn(seen, *next_turn, rules, now),
    };
    let has_changed = vm != records.vm || !events.is_empty() || copy.is_some();
    let update = VmUpdate { vm, events, notices, copy };
    Decision {
        change: has_changed.then_some(RecordChange::Write(update)),
        actions: idle_check.into_iter().chain(requests).collect(),
        ..Decision::rest(next_turn)
    }
}

/// Checks whether the VM is idle, if a check is due. Returns the call that the check needs.
fn check_idle(vm: &mut Vm, rules: &VmRules, now: Timestamp) -> Option<VmCall> {
    let server = vm.server.as_ref().filter(|_| vm.built_at.is_some())?;
    if vm.idle.as_ref().is_some_and(|idle| now.duration_since(idle.at) < rules.idle_every) {
        return None;
    }
    if server.is == ServerState::On {
        return Some(VmCall::ReadDiagnostics { server: server.id.clone() });
    }
    vm.idle = Some(IdleCheck::by_power(server, now));
    None
}

/// Decides what follows from answers of Nova. The decision before has said when the next turn is due.
fn after_answers(before: &Vm, answers: &[VmCallResult], now: Timestamp) -> Planned {
    let (mut vm, mut events) = (before.clone(), Vec::new());
    let mut decision = Decision::rest(Requeue::OnChange);
    for answer in answers {
        match answer {
            VmCallResult::ProcessorTime(worked) => {
                vm.idle = Some(IdleCheck::by_diagnostics(vm.idle.as_ref(), *worked, now));
            }
            // A running VM is never reported idle without diagnostics.
            VmCallResult::NoDiagnostics => {
                let check = vm.server.as_ref().map(|server| IdleCheck::by_power(server, now));
                vm.idle = check.or(vm.idle);
            }
            VmCallResult::LastRequest(last) => {
                decision.actions.extend(vm.first_request(last.clone(), now));
            }
            VmCallResult::LastRequestUnknown(why) => {
                decision = decision.warn_of(why, "cannot read the last action of the server");
            }
            VmCallResult::Unanswered(why) => {
                decision = decision.warn_of(why, "a request to Nova got no answer");
            }
            VmCallResult::Refused { request, why } => {
                decision = decision.warn_of(why, format!("Nova refused {request:?}"));
                // The next observation shows whether the new size is still to be confirmed.
                if *request != VmRequest::Confirm {
                    let (refused, reported) = vm.refused(why, now);
                    vm = refused;
                    events.extend(reported);
                }
            }
            VmCallResult::Reconciled(_) | VmCallResult::DiagnosticsUnknown | VmCallResult::Sent => {
            }
        }
    }
    if vm != *before || !events.is_empty() {
        let update = VmUpdate { vm, events, notices: Vec::new(), copy: None };
        decision.change = Some(RecordChange::Write(update));
    }
    decision
}

impl Vm {
    /// Records that the request for the current action is sent now for the first time. Returns the call.
    fn first_request(&mut self, after: Option<String>, now: Timestamp) -> Option<VmCall> {
        let server = self.server.as_ref()?.id.clone();
        let action = self.action.take_if(|action| action.sent.is_none())?;
        let request = VmRequest::Action(action.kind.clone());
        let sent = Some(SentRequest { at: now, after, times: 1 });
        self.action = Some(VmAction { sent, ..action });
        Some(VmCall::Send { server, request })
    }

    /// Returns when the next turn is due: at the next stage of the lease at the latest.
    fn next_turn(
        &self,
        seen: &ClusterObservation,
        of_objects: Requeue,
        rules: &VmRules,
        now: Timestamp,
    ) -> Requeue {
        let Requeue::After(mut pause) = of_objects else { return Requeue::Now };
        let soon = rules.pauses.soon;
        if self.desire == DesiredState::Gone || self.is_under_way(seen) {
            pause = pause.min(soon);
        }
        match self.lease.as_ref().map(|lease| rules.schedule.due(lease, now)) {
            Some(Due::At(at)) => pause = pause.min(time_left(at, now).max(SHORTEST_PAUSE)),
            Some(Due::Now(_)) => pause = pause.min(soon),
            Some(Due::Nothing) | None => {}
        }
        Requeue::After(pause)
    }
}
