//! Asking something of a node: what each verb needs, what it starts, and how its work ends.

use hardware::{PowerChange, PowerState};
use jiff::Timestamp;
use lease::Wanted;

use crate::lending::{end_with_instance, given_back};
use crate::{
    AgentCommand, Event, Failure, HistoryEntry, IllegalEvent, Leaving, Node, PowerRequest, Reason,
    State, Task, Work, WorkUuid, work,
};

/// What can be asked of a node by `PUT /v1/nodes/{node}/states/provision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// See that the BMC is there, or take the node back from `available` or a failure.
    Manage,
    /// Look at the hardware.
    Inspect,
    /// Clean it and make it available.
    Provide,
    /// Erase its disks by this command and come back to `manageable`.
    Clean(AgentCommand),
    /// Install it.
    Deploy,
    /// Install it again.
    Rebuild,
    /// Take it out of use, clean it, make it available.
    Undeploy,
    /// Stop waiting.
    Abort,
    /// Take over a machine that is in use already.
    Adopt,
}

/// Why a request was refused. The node is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The state does not allow it.
    #[error(
        "the requested action \"{verb}\" can not be performed on node \"{node}\" while it is in state \"{state}\""
    )]
    State {
        /// Which node.
        node: String,
        /// Where it is.
        state: State,
        /// What was asked, in the API's word.
        verb: &'static str,
    },
    /// An operator works on it.
    #[error(
        "node \"{node}\" is in maintenance: the action \"{verb}\" is not possible until that is switched off"
    )]
    Maintenance {
        /// Which node.
        node: String,
        /// What was asked, in the API's word.
        verb: &'static str,
    },
    /// It is protected.
    #[error(
        "node \"{node}\" is protected: the action \"{verb}\" is not possible until that is switched off"
    )]
    Protected {
        /// Which node.
        node: String,
        /// What was asked, in the API's word.
        verb: &'static str,
    },
    /// It is retired.
    #[error(
        "node \"{node}\" is retired: the action \"{verb}\" is not possible until that is switched off"
    )]
    Retired {
        /// Which node.
        node: String,
        /// What was asked, in the API's word.
        verb: &'static str,
    },
    /// Something needed is missing or wrong.
    #[error("{field}: {problem}")]
    Field {
        /// Which field: `instance_info.image_source`.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// What it was lent for is over.
    #[error(
        "the lease of node \"{node}\" has ended: the action \"{verb}\" is not possible until it is extended"
    )]
    LeaseEnded {
        /// Which node.
        node: String,
        /// What was asked, in the API's word.
        verb: &'static str,
    },
    /// Its power must not be switched off.
    #[error("node \"{node}\" has disable_power_off set: it can not be switched off")]
    PowerOffDisabled {
        /// Which node.
        node: String,
    },
    /// Another request waits for the drain of its compute host.
    #[error(
        "node \"{node}\" waits for the drain of host {host}, and for \"{then}\" after that: the action \"{verb}\" is not \
         possible until then; `bedplate undrain {host}` takes the request back"
    )]
    Leaving {
        /// Which node.
        node: String,
        /// Which host.
        host: String,
        /// What waits for the drain, in the API's word.
        then: &'static str,
        /// What was asked, in the API's word.
        verb: &'static str,
    },
    /// Work is under way that owns its power.
    #[error("node \"{node}\" is locked: it is {state} until its work is done")]
    Locked {
        /// Which node.
        node: String,
        /// Where it is.
        state: State,
    },
}

impl Verb {
    /// The event in the table.
    pub const fn event(self) -> Event {
        match self {
            Verb::Manage => Event::Manage,
            Verb::Inspect => Event::Inspect,
            Verb::Provide => Event::Provide,
            Verb::Clean(_) => Event::Clean,
            Verb::Deploy => Event::Deploy,
            Verb::Rebuild => Event::Rebuild,
            Verb::Undeploy => Event::Undeploy,
            Verb::Abort => Event::Abort,
            Verb::Adopt => Event::Adopt,
        }
    }

    /// The word of the Bare Metal API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Manage => "manage",
            Verb::Inspect => "inspect",
            Verb::Provide => "provide",
            Verb::Clean(_) => "clean",
            Verb::Deploy => "active",
            Verb::Rebuild => "rebuild",
            Verb::Undeploy => "deleted",
            Verb::Abort => "abort",
            Verb::Adopt => "adopt",
        }
    }
}

/// Asks `verb` of `node`: the node as it is from now on, with its work begun, or why not.
///
/// `work` is the id the work gets if any begins.
pub fn ask(
    node: &Node,
    verb: Verb,
    work: WorkUuid,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), Refusal> {
    let refuse = |_: IllegalEvent| Refusal::State {
        node: node.label(),
        state: node.provision_state,
        verb: verb.as_str(),
    };
    let next = node.provision_state.on(verb.event()).map_err(refuse)?;
    allow(node, verb)?;

    let mut asked = node.clone();
    asked.provision_state = next;
    asked.provision_updated_at = Some(now);
    asked.failure = None;
    asked.leaving = node.leaving.as_ref().and_then(Leaving::superseded);
    let (target, tasks) = match verb {
        Verb::Manage if next == State::Verifying => (Some(State::Manageable), work::verify()),
        Verb::Manage => (None, Vec::new()),
        Verb::Inspect => (Some(State::Manageable), work::inspect(node)),
        Verb::Provide => (Some(State::Available), automated_clean(node)),
        Verb::Clean(command) => (Some(State::Manageable), work::clean(node, command)),
        Verb::Deploy | Verb::Rebuild => (Some(State::Active), work::deploy(node)),
        Verb::Undeploy => (Some(goal_of_cleaning(node)), work::undeploy()),
        Verb::Adopt => (Some(State::Active), work::verify()),
        Verb::Abort => {
            let doing =
                node.work.as_ref().and_then(Work::task).map_or("its work", |task| task.describe());
            asked.failure =
                Some(Failure::new(Reason::Aborted, format!("an operator aborted {doing}")));
            (node.target_provision_state, Vec::new())
        }
    };
    // Each work that boots a ramdisk, or ends one use of the machine, switches it off on the way.
    if node.disable_power_off && tasks.contains(&Task::Power(PowerState::Off)) {
        return Err(Refusal::PowerOffDisabled { node: node.label() });
    }
    asked.target_provision_state = target;
    asked.work = next.is_busy().then(|| {
        let by_hand = matches!(verb, Verb::Clean(_));
        Work { by_hand, ..Work::new(work, tasks, now) }
    });
    if asked.work.is_some() {
        // Work switches the machine as it needs; what was asked of the power before would be done to what the work has made of it.
        asked.power_request = None;
    }
    asked.hypervisor = match verb {
        // What is installed anew has to join anew; what is taken out of use is a hypervisor until its machine is off.
        Verb::Deploy | Verb::Rebuild => asked.hypervisor.as_ref().map(|host| host.installing(now)),
        Verb::Undeploy
        | Verb::Manage
        | Verb::Inspect
        | Verb::Provide
        | Verb::Clean(_)
        | Verb::Abort
        | Verb::Adopt => asked.hypervisor,
    };
    if verb == Verb::Inspect {
        asked.inspection_started_at = Some(now);
        asked.inspection_finished_at = None;
    }
    let entry = HistoryEntry::changed(node, &asked, format!("asked to {}", verb.as_str()), now);
    Ok((asked, entry))
}

/// What stands against `verb` beside the state.
fn allow(node: &Node, verb: Verb) -> Result<(), Refusal> {
    let label = || node.label();
    if node.maintenance.is_some()
        && matches!(
            verb,
            Verb::Deploy | Verb::Rebuild | Verb::Inspect | Verb::Provide | Verb::Clean(_)
        )
    {
        return Err(Refusal::Maintenance { node: label(), verb: verb.as_str() });
    }
    if node.protected.is_some() && matches!(verb, Verb::Rebuild | Verb::Undeploy) {
        return Err(Refusal::Protected { node: label(), verb: verb.as_str() });
    }
    if node.retired.is_some() && matches!(verb, Verb::Deploy | Verb::Provide) {
        return Err(Refusal::Retired { node: label(), verb: verb.as_str() });
    }
    if node.wanted_by_lease() != Wanted::AsAsked && matches!(verb, Verb::Deploy | Verb::Rebuild) {
        return Err(Refusal::LeaseEnded { node: label(), verb: verb.as_str() });
    }
    Ok(())
}

/// Where automated cleaning leads. A retired node is not offered for use again: as in Ironic it becomes manageable.
fn goal_of_cleaning(node: &Node) -> State {
    if node.retired.is_some() { State::Manageable } else { State::Available }
}

/// The cleaning on the way to `available`. What a lessee wrote is not for the next one to read: their disks are erased as a whole.
fn automated_clean(node: &Node) -> Vec<crate::Task> {
    match node.automated_clean {
        _ if node.wanted_by_lease() == Wanted::Gone => work::clean(node, AgentCommand::EraseDisks),
        Some(false) => Vec::new(),
        Some(true) | None if node.lessee.is_some() => work::clean(node, AgentCommand::EraseDisks),
        Some(true) | None => work::clean(node, AgentCommand::EraseMetadata),
    }
}

/// Asks for a change of power.
pub fn ask_power(node: &Node, change: PowerChange, deadline: Timestamp) -> Result<Node, Refusal> {
    if node.provision_state.is_busy() {
        return Err(Refusal::Locked { node: node.label(), state: node.provision_state });
    }
    let goes_on = match change {
        PowerChange::On | PowerChange::ForceRestart | PowerChange::SoftRestart => true,
        PowerChange::ForceOff | PowerChange::SoftOff => false,
    };
    if goes_on && node.wanted_by_lease() != Wanted::AsAsked {
        return Err(Refusal::LeaseEnded { node: node.label(), verb: "power on" });
    }
    if node.disable_power_off && change != PowerChange::On {
        return Err(Refusal::PowerOffDisabled { node: node.label() });
    }
    let waiting = node.leaving.as_ref().filter(|leaving| leaving.is_waiting());
    let leaving = match waiting {
        Some(leaving) if !leaving.awaits_power() => {
            return Err(Refusal::Leaving {
                node: node.label(),
                host: leaving.host.clone(),
                then: leaving.then.as_str(),
                verb: "power",
            });
        }
        // A machine that is to be on needs no drain any more.
        Some(leaving) if change == PowerChange::On => leaving.cancelled(),
        Some(_) => None,
        None => node.leaving.clone(),
    };
    let power_request = Some(PowerRequest::new(change, deadline));
    Ok(Node { power_request, leaving, ..node.clone() })
}

/// The node once its current task is done: at its next task, in the state that task belongs to.
///
/// A change of state comes with an entry for the node's history.
pub fn start_next_task(
    node: &Node,
    now: Timestamp,
) -> Result<(Node, Option<HistoryEntry>), IllegalEvent> {
    let mut next = node.clone();
    let Some(work) = &mut next.work else { return Ok((next, None)) };
    work.cursor += 1;
    work.task_started_at = now;
    work.intent = None;
    work.asked_at = None;

    let waiting = work.task().is_some_and(crate::Task::is_waiting);
    let doing = work.task().map_or("done", |task| task.describe());
    let event = match (node.provision_state.is_waiting(), waiting) {
        (false, true) => Event::Wait,
        (true, false) => Event::Resume,
        (false, false) | (true, true) => return Ok((next, None)),
    };
    next.provision_state = node.provision_state.on(event)?;
    next.provision_updated_at = Some(now);
    let entry = HistoryEntry::changed(node, &next, doing.to_owned(), now);
    Ok((next, Some(entry)))
}

/// The node once all its tasks are done. `cleaning` is the id of the work that follows, if any does.
pub fn finish(
    node: &Node,
    cleaning: WorkUuid,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), IllegalEvent> {
    let by_hand = node.work.as_ref().is_some_and(|work| work.by_hand);
    let is_cleaned = node.provision_state == State::Cleaning && !by_hand;
    let is_withheld = is_cleaned && goal_of_cleaning(node) == State::Manageable;
    let event = if by_hand || is_withheld { Event::DoneByHand } else { Event::Done };
    let mut done = node.clone();
    done.provision_state = node.provision_state.on(event)?;
    done.provision_updated_at = Some(now);
    done.failure = None;
    done.work = None;
    done.target_provision_state = None;
    match node.provision_state {
        State::Inspecting => done.inspection_finished_at = Some(now),
        State::Deploying => {
            done.hypervisor = node.hypervisor.as_ref().map(|host| host.begun(now));
        }
        State::Deleting => {
            // What was installed is gone with the state that named it; cleaning follows by itself.
            done.instance_info.clear();
            done.hypervisor = node.hypervisor.as_ref().map(|host| host.leaving(now));
            done.instance_uuid = None;
            done.instance_name = None;
            done.allocation = None;
            end_with_instance(&mut done, now);
            done.target_provision_state = Some(goal_of_cleaning(&done));
            done.work = Some(Work::new(cleaning, automated_clean(&done), now));
        }
        // A retired node never becomes available, where it would be given back: its lessee leaves it here.
        State::Cleaning if is_withheld && node.wanted_by_lease() == Wanted::Gone => {
            let (free, returned) = given_back(&done, now);
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
        | State::Available
        | State::DeployWait
        | State::DeployFailed
        | State::Active
        | State::Error
        | State::Adopting
        | State::AdoptFailed => {}
    }
    let entry = HistoryEntry::changed(node, &done, "done".to_owned(), now);
    Ok((done, entry))
}

/// The node once its work is given up. The machine is left as it is.
pub fn give_up(
    node: &Node,
    failure: Failure,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), IllegalEvent> {
    let mut failed = node.clone();
    failed.provision_state = node.provision_state.on(Event::Fail)?;
    failed.provision_updated_at = Some(now);
    failed.work = None;
    if failed.provision_state == State::Enroll {
        failed.target_provision_state = None;
    }
    let entry = HistoryEntry::failed(node, &failed, failure.to_string(), now);
    failed.failure = Some(failure);
    Ok((failed, entry))
}

/// The node once a step of the change of power that was asked for has happened.
///
/// Its power is told when all of them have: in a restart it is on throughout, as in Ironic. Clients wait for a restart by
/// waiting for "power on"; one that saw it off in between took the restart for a failure.
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

/// The power the machine will have once what was asked for has happened.
impl Node {
    /// The power state that was asked for and is not reached yet.
    pub fn target_power_state(&self) -> Option<PowerState> {
        let asked = self.power_request.as_ref().and_then(PowerRequest::leads_to);
        asked.or_else(|| self.power_after_drain())
    }
}
