//! Plans the end of a node's lease: its stages, and what the ended lease requires of the node.

use std::time::Duration;

use decision::{Decision, Requeue};
use hardware::{PowerChange, PowerState};
use jiff::{SignedDuration, Timestamp};
use lease::{Due, LeaseSchedule, LeaseStage, RequiredState};

use crate::{
    ClusterdCall, DrainOwner, DrainSeen, HistoryEntry, Node, NodeLease, NodeUpdate, Obstacle,
    PasswordRotation, RequestRefused, State, TakeOutRefused, Verb, WorkUuid, check_take_out,
    drain_noted, end_held, request_power, request_verb, returned, with_stage_taken,
};

/// The pause before the next attempt on a node that still carries servers.
const AFTER_HOLDING: Duration = Duration::from_secs(15);

/// The pause before the next attempt on a node whose machine failed.
const AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(60);

/// The settings and observations that decide the turns of a node with a lease.
#[derive(Clone, Debug)]
pub struct LeaseRules<'a> {
    pub schedule: &'a LeaseSchedule,
    /// How long a change of power may take.
    pub power_timeout: Duration,
    /// The compute host that has to be drained before the node is taken out.
    pub host: Option<&'a str>,
    /// The id of the work that the end of the lease begins.
    pub new_work: WorkUuid,
    /// The obstacle to the end of the lease that the node's history contains already.
    pub recorded_obstacle: Option<Obstacle>,
}

/// A step that an ended lease requires of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndStep {
    /// Switch the machine off in this way.
    Power(PowerChange),
    /// End the work that holds.
    Abort,
    /// Take the node out of use, which leads to cleaning.
    Undeploy,
    Clean,
    /// Remove the lessee from the node, which is clean.
    Release,
}

/// Returns whether a stage of the lease's end is due, which is recorded even while the node has work.
pub fn is_lease_stage_due(node: &Node, schedule: &LeaseSchedule, now: Timestamp) -> bool {
    let due = node.lending.as_ref().map(|lending| schedule.due(&lending.lease, now));
    matches!(due, Some(Due::Now(_)))
}

/// Decides the next step that the lease of `node` requires.
///
/// While the undo window is open the disks are not touched. Work in progress is never interrupted. The lessee is removed last, after the
/// node was cleaned, so that no other project can get a node with the lessee's data.
pub fn plan_lending(
    node: &Node,
    rules: &LeaseRules<'_>,
    now: Timestamp,
) -> Decision<NodeUpdate, ClusterdCall> {
    let Some(NodeLease { lease, drain, .. }) = &node.lending else {
        return Decision::rest(Requeue::OnChange);
    };
    let until = match rules.schedule.due(lease, now) {
        Due::Now(stage) => return take(node, stage, now),
        Due::At(at) => Some(at),
        Due::Nothing => None,
    };
    let Some(step) = end_step(node, lease.required_state()) else {
        return Decision::rest(Requeue::at(until, now));
    };
    if let Some(pause) = pause_after_failure(node, step, now) {
        return Decision::rest(Requeue::After(pause));
    }
    match (step, rules.host) {
        (EndStep::Power(_) | EndStep::Undeploy, Some(host)) => {
            let host = host.to_owned();
            // Without the record of the drain nobody would end the drain when the lease goes on.
            let is_recorded = drain.as_ref().is_some_and(|drain| drain.host == host);
            Decision::act(match is_recorded {
                true => ClusterdCall::Drain { host, forced: Vec::new() },
                false => ClusterdCall::Show { host },
            })
        }
        (EndStep::Power(_) | EndStep::Undeploy, None)
        | (EndStep::Abort | EndStep::Clean | EndStep::Release, _) => {
            carry_out(node, step, rules, now)
        }
    }
}

/// Decides what follows from clusterd's answer to the call of [`plan_lending`].
pub fn after_lease_call(
    node: &Node,
    seen: &DrainSeen,
    rules: &LeaseRules<'_>,
    now: Timestamp,
) -> Decision<NodeUpdate> {
    let (Some(lending), Some(host)) = (&node.lending, rules.host) else {
        return Decision::rest(Requeue::Now);
    };
    let is_recorded = lending.drain.as_ref().is_some_and(|drain| drain.host == host);
    if !is_recorded && let Some(owner) = DrainOwner::of(seen) {
        return NodeUpdate::decided(drain_noted(node, host, owner), []);
    }
    match (check_take_out(node, host, seen), end_step(node, lending.lease.required_state())) {
        (Err(why), _) => postpone(node, &why, rules, now),
        (Ok(()), Some(step)) => carry_out(node, step, rules, now),
        (Ok(()), None) => Decision::rest(Requeue::Now),
    }
}

/// Returns what an ended lease requires of its node now.
fn end_step(node: &Node, required: RequiredState) -> Option<EndStep> {
    // Work that holds would keep the machine for ever.
    if node.provision_state.is_held() && required != RequiredState::AsRequested {
        return Some(EndStep::Abort);
    }
    let is_changing = node.power_request.is_some()
        || node.boot_setting_request.is_some()
        || node.password_rotation.as_ref().is_some_and(PasswordRotation::is_in_progress);
    if node.provision_state.is_busy() || is_changing {
        return None;
    }
    match required {
        RequiredState::AsRequested => None,
        RequiredState::Off if node.power_state == Some(PowerState::Off) => None,
        RequiredState::Off if node.disable_power_off => None,
        // A soft power-off has failed before, so the machine is forced off.
        RequiredState::Off if node.failure.is_some() => Some(EndStep::Power(PowerChange::ForceOff)),
        RequiredState::Off => Some(EndStep::Power(PowerChange::SoftOff)),
        RequiredState::Deleted => return_step(node),
    }
}

/// Returns the next step by which a node returns from its lessee.
fn return_step(node: &Node) -> Option<EndStep> {
    match node.provision_state {
        State::Active
        | State::DeployFailed
        | State::ServiceFailed
        | State::Rescued
        | State::RescueFailed
        | State::UnrescueFailed
        | State::Error => {
            let stays = node.protected.is_some() || node.disable_power_off;
            (!stays).then_some(EndStep::Undeploy)
        }
        State::Available => Some(EndStep::Release),
        State::Manageable
            if node.disable_power_off || node.maintenance.is_some() || node.retired.is_some() =>
        {
            None
        }
        State::Manageable => Some(EndStep::Clean),
        // The machine was never verified and cannot have been used, so its disks need no cleaning.
        State::Enroll => Some(EndStep::Release),
        // The last work failed, and an operator has to request "manage".
        State::CleanFailed | State::InspectFailed | State::AdoptFailed => None,
        State::Verifying
        | State::Inspecting
        | State::InspectWait
        | State::Cleaning
        | State::CleanWait
        | State::CleanHold
        | State::Deploying
        | State::DeployWait
        | State::DeployHold
        | State::Servicing
        | State::ServiceWait
        | State::RescueWait
        | State::ServiceHold
        | State::Rescuing
        | State::Unrescuing
        | State::Deleting
        | State::Adopting => None,
    }
}

/// Records a stage of the lease's end. The notices about the stage are written with it.
fn take<A>(node: &Node, stage: LeaseStage, now: Timestamp) -> Decision<NodeUpdate, A> {
    let (node, entry) = with_stage_taken(node, stage, now);
    let update = NodeUpdate { stage: Some(stage), ..NodeUpdate::new(node, [entry]) };
    Decision::write(update, Requeue::Now)
}

/// Returns the rest of the pause before a machine that failed is asked for anything again.
fn pause_after_failure(node: &Node, step: EndStep, now: Timestamp) -> Option<Duration> {
    let asks = step != EndStep::Release;
    let failed_at = node.updated_at.filter(|_| asks && node.failure.is_some())?;
    // A failure with a time in the future says that the clock was set back: the pause must not last until the clock reaches that time.
    let pause = AFTER_FAILURE - now.duration_since(failed_at).abs();
    pause.is_positive().then_some(pause.unsigned_abs())
}

/// Records the request for the step. The following turns carry it out.
fn carry_out<A>(
    node: &Node,
    step: EndStep,
    rules: &LeaseRules<'_>,
    now: Timestamp,
) -> Decision<NodeUpdate, A> {
    let verb = |verb| {
        let asked = request_verb(node, verb, rules.new_work, now);
        asked.map(|(to, entry)| (to, Some(entry)))
    };
    let asked: Result<(Node, Option<HistoryEntry>), RequestRefused> = match step {
        EndStep::Release => {
            let (free, entry) = returned(node, now);
            let line = format!("node {} was returned by its lessee", node.label());
            return NodeUpdate::decided(free, [entry]).info(line);
        }
        EndStep::Power(change) => {
            request_power(node, change, now + rules.power_timeout).map(|off| (off, None))
        }
        EndStep::Abort => verb(Verb::Abort),
        EndStep::Undeploy => verb(Verb::Undeploy),
        EndStep::Clean => verb(Verb::Provide),
    };
    match asked {
        Ok((asked, entry)) => NodeUpdate::decided(asked, entry),
        Err(refusal) => Decision::rest(Requeue::OnChange)
            .warn_of(refusal, format!("cannot end the lease of node {} now", node.label())),
    }
}

/// Postpones the end of a lease while the node's compute host carries servers. The history gets one entry about the reason, except when
/// the only reason is that the drain is still moving servers.
fn postpone(
    node: &Node,
    why: &TakeOutRefused,
    rules: &LeaseRules<'_>,
    now: Timestamp,
) -> Decision<NodeUpdate> {
    let later = Requeue::After(AFTER_HOLDING);
    let obstacle = Some(Obstacle::LeaseEnd(why.to_string()));
    let is_moving = matches!(why, TakeOutRefused::Occupied { .. });
    if is_moving || rules.recorded_obstacle == obstacle {
        return Decision::rest(later);
    }
    let entry = end_held(node, &why.to_string(), now);
    let update = NodeUpdate { obstacle, ..NodeUpdate::new(node.clone(), [entry]) };
    let label = node.label();
    Decision::write(update, later).warn(format!(
        "the lease of node {label} has ended, but the node cannot be taken out yet: {why}"
    ))
}

#[cfg(test)]
mod tests;
