//! Requests to a node: what each verb requires, which work it begins, and how the work ends.

use hardware::{PowerChange, PowerState};
use jiff::Timestamp;
use lease::RequiredState;

use crate::boot_setting::check_unchanging;
use crate::lending::{end_lease_of_reservation, returned};
use crate::maintenance::with_fault;
use crate::{
    DrainRequest, Event, Failure, Fault, HistoryEntry, Hypervisor, IllegalEvent, InspectInterface,
    Node, PowerRequest, RaidStage, Reason, RequestRefused, RescueInterface, State, Task,
    UpdateStage, Verb, VerbRequest, WantedSteps, Work, WorkUuid, elapsed, tasks,
};

/// Applies a verb to `node`: returns the node with its work begun and the entry for its history, or the reason for a refusal.
///
/// `work` becomes the id of the new work, if the verb begins any.
pub fn request_verb(
    node: &Node,
    request: impl Into<VerbRequest>,
    work: WorkUuid,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), RequestRefused> {
    let request = request.into();
    let verb = request.verb;
    let refuse = |_: IllegalEvent| RequestRefused::State {
        node: node.label(),
        state: node.provision_state,
        verb: verb.as_str(),
    };
    let next = node.provision_state.on(verb.event()).map_err(refuse)?;
    check_flags(node, verb)?;

    let mut asked = node.clone();
    asked.provision_state = next;
    asked.provision_updated_at = Some(now);
    asked.leaving = node.leaving.as_ref().and_then(DrainRequest::superseded);
    if verb != Verb::Rescue {
        asked.forget_rescue_password();
    }
    if verb == Verb::Unhold {
        return Ok(continued(node, asked, now));
    }
    asked.failure = (verb == Verb::Abort && next.is_failed()).then(|| aborted(node));
    let disables_ramdisk = request.disables_ramdisk;
    let steps = wanted_steps(node, request);
    let (target, tasks) = match disables_ramdisk {
        true => (target(node, verb, next), vec![Task::PlanSteps]),
        false => (target(node, verb, next), tasks_of(node, verb, &steps)),
    };
    // Work that boots the ramdisk or takes the machine out of use powers the machine off on its way.
    if node.disable_power_off && tasks.contains(&Task::Power(PowerState::Off)) {
        return Err(RequestRefused::PowerOffDisabled { node: node.label() });
    }
    asked.target_provision_state = target;
    asked.work = next.is_busy().then(|| Work {
        by_hand: verb == Verb::Clean,
        steps,
        disables_ramdisk,
        ..Work::new(work, tasks, now)
    });
    if asked.work.is_some() {
        // The work controls the power from now on. An earlier request for power would otherwise be carried out after the work and undo its
        // result.
        asked.power_request = None;
    }
    asked.hypervisor = hypervisor_after(verb, asked.hypervisor, now);
    if verb == Verb::Inspect {
        asked.inspection_started_at = Some(now);
        asked.inspection_finished_at = None;
    }
    let entry = HistoryEntry::changed(node, &asked, format!("{:?} requested", verb.as_str()), now);
    Ok((asked, entry))
}

/// The node `asked` whose work goes on after a step `hold` of `node`, and the entry for its history.
fn continued(node: &Node, mut asked: Node, now: Timestamp) -> (Node, HistoryEntry) {
    if let Some(held) = asked.work.as_mut().and_then(Work::task_mut) {
        *held = Task::Wait { seconds: 0 };
    }
    let event = format!("{:?} requested", Verb::Unhold.as_str());
    let entry = HistoryEntry::changed(node, &asked, event, now);
    (asked, entry)
}

/// The failure of work that an operator aborts.
fn aborted(node: &Node) -> Failure {
    let task = node.work.as_ref().and_then(Work::task);
    let doing = task.map_or("its work".into(), Task::describe);
    Failure::new(Reason::Aborted, format!("an operator aborted {doing}"))
}

/// Returns the record of a hypervisor once `verb` was requested.
fn hypervisor_after(verb: Verb, host: Option<Hypervisor>, now: Timestamp) -> Option<Hypervisor> {
    match verb {
        // A machine that is installed again has to join the cloud again. A machine that is taken out of use stays a hypervisor until it is
        // off.
        Verb::Deploy | Verb::Rebuild => host.map(|host| host.installing(now)),
        Verb::Undeploy
        | Verb::Manage
        | Verb::Inspect
        | Verb::Provide
        | Verb::Clean
        | Verb::Abort
        | Verb::Adopt
        | Verb::Service
        | Verb::Rescue
        | Verb::Unrescue
        | Verb::Unhold => host,
    }
}

/// Returns the steps that the requested work runs.
fn wanted_steps(node: &Node, request: VerbRequest) -> WantedSteps {
    request.steps.unwrap_or_else(|| match request.verb {
        Verb::Clean => WantedSteps::Requested(Vec::new()),
        Verb::Service => WantedSteps::Service(Vec::new()),
        Verb::Deploy | Verb::Rebuild => WantedSteps::Deployment(Vec::new()),
        Verb::Provide => automated_steps(node),
        Verb::Manage
        | Verb::Inspect
        | Verb::Undeploy
        | Verb::Abort
        | Verb::Adopt
        | Verb::Rescue
        | Verb::Unrescue
        | Verb::Unhold => WantedSteps::default(),
    })
}

/// Returns the state that `verb` leads `node` to; `next` is the state that the node enters at once.
fn target(node: &Node, verb: Verb, next: State) -> Option<State> {
    match verb {
        Verb::Manage if next == State::Manageable => None,
        Verb::Manage | Verb::Inspect | Verb::Clean => Some(State::Manageable),
        Verb::Provide => Some(State::Available),
        Verb::Deploy | Verb::Rebuild | Verb::Adopt | Verb::Service | Verb::Unrescue => {
            Some(State::Active)
        }
        Verb::Rescue => Some(State::Rescued),
        Verb::Undeploy => Some(state_after_cleaning(node)),
        Verb::Abort if next == State::Active => None,
        Verb::Abort | Verb::Unhold => node.target_provision_state,
    }
}

/// Returns the tasks of the work that `verb` begins, if the node enters a busy state.
fn tasks_of(node: &Node, verb: Verb, steps: &WantedSteps) -> Vec<Task> {
    match verb {
        Verb::Manage => tasks::verify(node),
        Verb::Inspect => tasks::inspect(node),
        Verb::Provide => automated_clean(node, steps),
        Verb::Clean => tasks::clean(node, steps),
        Verb::Deploy | Verb::Rebuild => tasks::deploy(node, steps),
        Verb::Undeploy => tasks::undeploy(node),
        Verb::Adopt => tasks::adopt(node),
        Verb::Service => tasks::service(node),
        Verb::Rescue => tasks::rescue(node),
        Verb::Unrescue => tasks::unrescue(node),
        Verb::Abort | Verb::Unhold => Vec::new(),
    }
}

/// Checks everything that can forbid `verb` besides the provision state.
fn check_flags(node: &Node, verb: Verb) -> Result<(), RequestRefused> {
    check_unchanging(node)?;
    let task = node.work.as_ref().and_then(Work::task);
    let begun = match task {
        Some(Task::UpdateFirmware(update)) if update.stage != UpdateStage::Ready => {
            Some(&update.step)
        }
        Some(Task::ChangeRaid(change)) if change.stage != RaidStage::Ready => Some(&change.step),
        Some(_) | None => None,
    };
    if let (Verb::Abort, Some(step)) = (verb, begun) {
        let step = step.name.to_string();
        return Err(RequestRefused::NotAbortable { node: node.label(), step });
    }
    let label = || node.label();
    if node.maintenance.is_some()
        && matches!(
            verb,
            Verb::Deploy
                | Verb::Rebuild
                | Verb::Inspect
                | Verb::Provide
                | Verb::Clean
                | Verb::Service
                | Verb::Rescue
                | Verb::Unrescue
        )
    {
        return Err(RequestRefused::Maintenance { node: label(), verb: verb.as_str() });
    }
    if node.protected.is_some() && matches!(verb, Verb::Rebuild | Verb::Undeploy) {
        return Err(RequestRefused::Protected { node: label(), verb: verb.as_str() });
    }
    if node.retired.is_some() && matches!(verb, Verb::Deploy | Verb::Provide) {
        return Err(RequestRefused::Retired { node: label(), verb: verb.as_str() });
    }
    let starts_machine = matches!(
        verb,
        Verb::Deploy | Verb::Rebuild | Verb::Service | Verb::Rescue | Verb::Unrescue
    );
    if node.wanted_by_lease() != RequiredState::AsRequested && starts_machine {
        return Err(RequestRefused::LeaseEnded { node: label(), verb: verb.as_str() });
    }
    if verb == Verb::Inspect && node.inspect_interface() == InspectInterface::NoInspect {
        return Err(RequestRefused::NoInspection { node: label() });
    }
    if matches!(verb, Verb::Rescue | Verb::Unrescue)
        && node.rescue_interface() == RescueInterface::NoRescue
    {
        return Err(RequestRefused::NoRescue { node: label() });
    }
    Ok(())
}

/// Returns the state in which automated cleaning ends. A retired node must not be offered again, so it becomes manageable, as in Ironic.
fn state_after_cleaning(node: &Node) -> State {
    if node.retired.is_some() { State::Manageable } else { State::Available }
}

fn automated_clean(node: &Node, steps: &WantedSteps) -> Vec<Task> {
    let is_wanted = node.automated_clean.unwrap_or(true);
    if is_wanted || node.wanted_by_lease() == RequiredState::Deleted {
        tasks::clean(node, steps)
    } else {
        Vec::new()
    }
}

/// Returns the steps of automated cleaning. If a lessee used the node, the disks are erased completely, so that the next lessee cannot read
/// the old data.
fn automated_steps(node: &Node) -> WantedSteps {
    let erases_disks = node.lessee.is_some() || node.wanted_by_lease() == RequiredState::Deleted;
    WantedSteps::Automated { erases_disks }
}

/// Returns the node with a request for a change of power, which the conductor gives up at `deadline`.
pub fn request_power(
    node: &Node,
    change: PowerChange,
    deadline: Timestamp,
) -> Result<Node, RequestRefused> {
    if node.provision_state.is_busy() {
        return Err(RequestRefused::Locked { node: node.label(), state: node.provision_state });
    }
    check_unchanging(node)?;
    let goes_on = match change {
        PowerChange::On | PowerChange::ForceRestart | PowerChange::SoftRestart => true,
        PowerChange::ForceOff | PowerChange::SoftOff => false,
    };
    if goes_on && node.wanted_by_lease() != RequiredState::AsRequested {
        return Err(RequestRefused::LeaseEnded { node: node.label(), verb: "power on" });
    }
    if node.disable_power_off && change != PowerChange::On {
        return Err(RequestRefused::PowerOffDisabled { node: node.label() });
    }
    let waiting = node.leaving.as_ref().filter(|leaving| leaving.is_waiting());
    let leaving = match waiting {
        Some(leaving) if !leaving.awaits_power() => {
            return Err(RequestRefused::Leaving {
                node: node.label(),
                host: leaving.host.clone(),
                then: leaving.then.as_str(),
                verb: "power",
            });
        }
        // A drain was needed to power the machine off. A request to power it on cancels the drain.
        Some(leaving) if change == PowerChange::On => leaving.cancelled(),
        Some(_) => None,
        None => node.leaving.clone(),
    };
    let power_request = Some(PowerRequest::new(change, deadline));
    Ok(Node { power_request, leaving, ..node.clone() })
}

/// Moves the node to its next task and to the state that belongs to that task.
///
/// A change of state and the end of a step come with an entry for the node's history.
pub fn start_next_task(
    node: &Node,
    now: Timestamp,
) -> Result<(Node, Option<HistoryEntry>), IllegalEvent> {
    let mut next = node.clone();
    let Some(work) = &mut next.work else { return Ok((next, None)) };
    let step = match work.task() {
        Some(Task::Step(step)) if !work.confirms_step() => Some((step, work.task_started_at)),
        Some(
            Task::ConfirmBios { step, started_at }
            | Task::ReadFirmware { step, started_at }
            | Task::ReadRaid { step, started_at, .. },
        ) => Some((step, *started_at)),
        Some(Task::StepOnChildren(run)) => Some((&run.step, work.task_started_at)),
        Some(_) | None => None,
    };
    let step = step.map(|(step, started_at)| {
        let took = elapsed(started_at, now).as_secs();
        let place = step.children.as_ref().map_or("", |_| " on child nodes");
        format!("the {} step {}{place} took {took} s", step.kind.as_str(), step.name)
    });
    if work.task() == Some(&Task::Power(PowerState::On)) {
        work.switched_on_at = Some(work.asked_at.unwrap_or(now));
    }
    work.cursor += 1;
    work.task_started_at = now;
    work.intent = None;
    work.asked_at = None;

    let waiting = work.task().is_some_and(Task::is_waiting);
    let doing = work.task().map_or("done".into(), Task::describe);
    let event = match (node.provision_state.is_waiting(), waiting) {
        (_, false) if work.task() == Some(&Task::Hold) => Some(Event::Hold),
        (false, true) => Some(Event::Wait),
        (true, false) => Some(Event::Resume),
        (false, false) | (true, true) => None,
    };
    if let Some(event) = event {
        next.provision_state = node.provision_state.on(event)?;
        next.provision_updated_at = Some(now);
    }
    let told = match (step, event) {
        (Some(step), Some(_)) => format!("{step}; {doing}"),
        (Some(step), None) => step,
        (None, Some(_)) => doing.into_owned(),
        (None, None) => return Ok((next, None)),
    };
    let entry = HistoryEntry::changed(node, &next, told, now);
    Ok((next, Some(entry)))
}

/// Ends the work of a node whose tasks are all done. `cleaning` becomes the id of the cleaning that follows undeployment.
pub fn finish_work(
    node: &Node,
    cleaning: WorkUuid,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), IllegalEvent> {
    let by_hand = node.work.as_ref().is_some_and(|work| work.by_hand);
    let is_cleaned = node.provision_state == State::Cleaning && !by_hand;
    let is_withheld = is_cleaned && state_after_cleaning(node) == State::Manageable;
    let event = if by_hand || is_withheld { Event::DoneManually } else { Event::Done };
    let mut done = node.clone();
    done.provision_state = node.provision_state.on(event)?;
    done.provision_updated_at = Some(now);
    done.failure = None;
    done.work = None;
    done.target_provision_state = None;
    done.inspection_started_at = None;
    match node.provision_state {
        State::Inspecting => done.inspection_finished_at = Some(now),
        State::Deploying => {
            done.hypervisor = node.hypervisor.as_ref().map(|host| host.begun(now));
        }
        State::Deleting => end_instance(&mut done, cleaning, now),
        State::Rescuing => done.has_given_rescue_password(),
        // A retired node never becomes available, which is where `plan_lending` would release its lessee, so the lessee is released here.
        State::Cleaning if is_withheld && node.wanted_by_lease() == RequiredState::Deleted => {
            let (free, returned) = returned(&done, now);
            let event = format!("done, and {}", returned.event);
            let entry = HistoryEntry::changed(node, &free, event, now);
            return Ok((free, entry));
        }
        State::Enroll
        | State::Verifying
        | State::Manageable
        | State::InspectWait
        | State::InspectFailed
        | State::Cleaning
        | State::CleanWait
        | State::CleanFailed
        | State::CleanHold
        | State::Available
        | State::DeployWait
        | State::DeployFailed
        | State::DeployHold
        | State::Active
        | State::Servicing
        | State::ServiceWait
        | State::ServiceFailed
        | State::ServiceHold
        | State::RescueWait
        | State::Rescued
        | State::RescueFailed
        | State::Unrescuing
        | State::UnrescueFailed
        | State::Error
        | State::Adopting
        | State::AdoptFailed => {}
    }
    let entry = HistoryEntry::changed(node, &done, "done".to_owned(), now);
    Ok((done, entry))
}

/// Ends the instance of a node that is undeployed: clears its fields. Cleaning begins without another request.
fn end_instance(node: &mut Node, cleaning: WorkUuid, now: Timestamp) {
    node.instance_info.clear();
    node.hypervisor = node.hypervisor.as_ref().map(|host| host.leaving(now));
    node.instance_uuid = None;
    node.instance_name = None;
    node.allocation = None;
    end_lease_of_reservation(node, now);
    node.target_provision_state = Some(state_after_cleaning(node));
    let steps = automated_steps(node);
    let tasks = automated_clean(node, &steps);
    node.work = Some(Work { steps, ..Work::new(cleaning, tasks, now) });
}

/// Ends the work of a node with a failure. The machine is left as it is.
pub fn fail_work(
    node: &Node,
    failure: Failure,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), IllegalEvent> {
    let mut failed = node.clone();
    failed.provision_state = node.provision_state.on(Event::Fail)?;
    failed.provision_updated_at = Some(now);
    failed.work = None;
    failed.inspection_started_at = None;
    if failed.provision_state == State::RescueFailed {
        failed.forget_rescue_password();
    }
    if failed.provision_state == State::Enroll {
        failed.target_provision_state = None;
    }
    let entry = HistoryEntry::failed(node, &failed, failure.to_string(), now);
    if let Some(fault) = fault_of_step(node, &failure) {
        failed = with_fault(failed, fault, &failure.cause);
    }
    failed.failure = Some(failure);
    Ok((failed, entry))
}

/// Returns the fault of a node whose work ends with `failure` during a clean or service step. As in Ironic, a failure before the first step is
/// no fault.
fn fault_of_step(node: &Node, failure: &Failure) -> Option<Fault> {
    let is_in_step = node.work.as_ref().and_then(Work::task).and_then(Task::step).is_some();
    if !is_in_step || failure.reason == Reason::Aborted {
        return None;
    }
    if matches!(node.provision_state, State::Cleaning | State::CleanWait) {
        return Some(Fault::CleanFailure);
    }
    let is_service = matches!(node.provision_state, State::Servicing | State::ServiceWait);
    is_service.then_some(Fault::ServiceFailure)
}

/// Returns the node after one step of the requested change of power has happened.
///
/// The power state changes only after the last step, as in Ironic: during a restart the API shows "power on" throughout. Clients wait for a
/// restart by waiting for "power on"; a client that saw "power off" in between would report a failed restart.
pub fn power_step_done(node: &Node) -> Node {
    let mut done = node.clone();
    let Some(mut request) = done.power_request.take() else { return done };
    let reached = request.remaining.pop();
    request.asked_at = None;
    if request.remaining.is_empty() {
        done.power_state = reached.map(PowerChange::leads_to).or(done.power_state);
    } else {
        done.power_request = Some(request);
    }
    done
}

impl Node {
    /// Returns the requested power state that is not reached yet.
    pub fn target_power_state(&self) -> Option<PowerState> {
        let asked = self.power_request.as_ref().and_then(PowerRequest::leads_to);
        asked.or_else(|| self.power_after_drain())
    }
}

#[cfg(test)]
mod tests;
