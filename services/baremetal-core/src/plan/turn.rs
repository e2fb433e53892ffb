//! The decisions of a turn of a machine.

use std::borrow::Cow;
use std::time::Duration;

use decision::{Decision, Requeue};
use hardware::PowerChange;
use jiff::Timestamp;

use super::action::Action;
use super::seen::{BootSettingsSeen, Observed, PowerSeen};
use crate::{
    AccountPassword, BootAgain, Failure, HistoryEntry, IllegalEvent, Node, NodeUpdate,
    PasswordRotation, PowerRequest, Problem, State, StepPriorities, WorkUuid, boot_again, elapsed,
    fail_work, finish_work, start_next_task,
};

/// How many times less often a machine is looked at while its boot is awaited.
const REPORT_POLL_FACTOR: u32 = 10;

/// The time limits of tasks, and the interval of polling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the BMC to answer and to carry out a request.
    pub bmc: Duration,
    /// For the machine to switch on or off.
    pub power: Duration,
    /// From power-on to the agent's first report.
    pub boot: Duration,
    /// For one command of the agent.
    pub command: Duration,
    /// For one update of firmware or one change of a RAID volume, once the BMC has accepted it.
    pub firmware: Duration,
    /// For an agent that does not answer.
    pub silence: Duration,
    /// How long the conductor waits after the BMC accepted a change of power, before it asks again.
    pub ask_again: Duration,
    /// The interval of looking at a machine that the conductor waits for. A machine that boots is looked at less often, because its agent
    /// reports.
    pub poll_every: Duration,
}

/// The settings that decide the turns of a machine.
#[derive(Clone, Debug)]
pub struct PlanRules<'a> {
    pub timeouts: &'a Timeouts,
    /// The id of the work that follows the current work.
    pub new_work: WorkUuid,
    /// The priorities that the administrator gives to steps.
    pub priorities: &'a StepPriorities,
    /// Whether ramdisks stay on for the next work, unless a node says otherwise.
    pub fast_track: bool,
}

/// A decision of a turn of a machine.
pub(super) type Planned<A = Action> = Result<Decision<NodeUpdate, A>, IllegalEvent>;

#[derive(Clone, Copy)]
pub(super) struct MachineTurn<'a> {
    pub(super) node: &'a Node,
    pub(super) rules: &'a PlanRules<'a>,
    pub(super) now: Timestamp,
}

impl MachineTurn<'_> {
    /// Looks again after a while.
    pub(super) fn look_again<A>(&self) -> Planned<A> {
        Ok(Decision::rest(Requeue::After(self.rules.timeouts.poll_every)))
    }

    /// Looks again after a longer while, at the latest when the machine is late: the report of its agent wakes the node. Thousands of machines
    /// spend most of a bring-up in their self-tests.
    pub(super) fn await_report<A>(&self, began: Timestamp) -> Planned<A> {
        let Timeouts { boot, poll_every, .. } = self.rules.timeouts;
        let left = boot.saturating_sub(elapsed(began, self.now));
        let pause = (*poll_every * REPORT_POLL_FACTOR).min(left.max(*poll_every));
        Ok(Decision::rest(Requeue::After(pause)))
    }

    /// Writes the node, and looks again after a while.
    pub(super) fn write_and_look_again<A>(&self, node: Node) -> Planned<A> {
        let next_turn = Requeue::After(self.rules.timeouts.poll_every);
        Ok(Decision { next_turn, ..NodeUpdate::decided(node, []) })
    }

    /// Writes the node as it is now, and then performs the action. The result of the action decides when the next turn is due.
    pub(super) fn intend(&self, node: Node, action: Action) -> Planned {
        let update = NodeUpdate::new(node, []);
        Ok(Decision { change: Some(update), ..Decision::act(action) })
    }

    /// Begins the next task, with the power state and the boot settings that were seen.
    pub(super) fn next_task(&self, seen: &Observed) -> Planned {
        let power_state = match seen.power {
            PowerSeen::Is(power) => Some(power),
            PowerSeen::NotAsked | PowerSeen::Failed(_) => self.node.power_state,
        };
        let node = Node { power_state, ..self.node.clone() };
        self.next_task_of(&match seen.boot_settings {
            BootSettingsSeen::Are(settings) => node.with_boot_settings(settings),
            BootSettingsSeen::NotSeen | BootSettingsSeen::Failed(_) => node,
        })
    }

    /// Begins the next task of `node`. If no task is left, ends the work in the same write, unless the node has to leave a `wait` state first.
    pub(super) fn next_task_of<A>(&self, node: &Node) -> Planned<A> {
        let (mut next, entry) = start_next_task(&self.without_power_off(node), self.now)?;
        if let Some(work) = next.work.as_mut().filter(|work| work.boots_once_more()) {
            // The token and the boot script of a boot derive from the id, and those of the last boot are refused from now on.
            work.id = self.rules.new_work;
        }
        let has_waited = next.provision_state != node.provision_state;
        if has_waited || next.work.as_ref().is_some_and(|work| work.task().is_some()) {
            return Ok(NodeUpdate::decided(next, entry));
        }
        let (done, end) = finish_work(&next, self.rules.new_work, self.now)?;
        Ok(NodeUpdate::decided(done, entry.into_iter().chain([end])))
    }

    /// Uses the agent that the boot of earlier work left running. The token of an agent derives from the id of the work that booted it, so the
    /// work takes that id.
    pub(super) fn use_idle_ramdisk(&self, booted: WorkUuid, seen: &Observed) -> Planned {
        let mut node = self.node.clone();
        if let Some(work) = &mut node.work {
            work.id = booted;
            // At the task that switches the machine on: the next one awaits the agent.
            work.cursor += 2;
        }
        let mut next = MachineTurn { node: &node, ..*self }.next_task(seen)?;
        if let Some(entry) = next.change.as_mut().and_then(|update| update.history.first_mut()) {
            entry.event = format!("the ramdisk of earlier work still runs; {}", entry.event);
        }
        Ok(next)
    }

    /// Returns the node, past the task that would switch its machine off if the ramdisk stays on for other work.
    fn without_power_off<'n>(&self, node: &'n Node) -> Cow<'n, Node> {
        if !node.leaves_ramdisk_on(self.rules.fast_track) {
            return Cow::Borrowed(node);
        }
        let mut node = node.clone();
        if let Some(work) = &mut node.work {
            work.cursor += 1;
        }
        Cow::Owned(node)
    }

    /// Ends the work: all tasks are done.
    pub(super) fn finish(&self) -> Planned {
        let (done, entry) = finish_work(self.node, self.rules.new_work, self.now)?;
        Ok(NodeUpdate::decided(done, [entry]))
    }

    /// Boots the ramdisk again, because the service missed a part of the boot, or its outcome.
    pub(super) fn boot_again(&self, why: BootAgain) -> Planned {
        let (again, entry) = boot_again(self.node, self.rules.new_work, why, self.now)?;
        let line = format!("node {}: {}", self.node.label(), entry.event);
        Ok(NodeUpdate::decided(again, [entry]).warn(line))
    }

    /// Fails the work. The machine is left as it is, except by a rescue.
    pub(super) fn give_up<A>(&self, failure: Failure) -> Planned<A> {
        let cause = failure.cause.clone();
        let (failed, entry) = fail_work(self.node, failure, self.now)?;
        let line = format!("the work on node {} failed", self.node.id);
        let failed = self.with_rescue_system_off(failed);
        Ok(NodeUpdate::decided(failed, [entry]).warn_of(cause, line))
    }

    /// Switches off the ramdisk of a rescue that failed (ironic, `rescuing_error_handler`). If the rescue failed before its ramdisk was
    /// booted, or if an operator aborted it, the machine is left as it is.
    fn with_rescue_system_off(&self, mut failed: Node) -> Node {
        let work = self.node.work.as_ref();
        let is_booted = work.is_some_and(|work| work.switched_on_at.is_some());
        if is_booted && failed.provision_state == State::RescueFailed {
            let deadline = self.now + self.rules.timeouts.power;
            failed.power_request = Some(PowerRequest::new(PowerChange::ForceOff, deadline));
        }
        failed
    }

    /// Retries a transient problem until the time limit has passed; every other problem fails the work.
    pub(super) fn retry_or_give_up(&self, problem: &Problem, late: bool) -> Planned {
        match problem.transient && !late {
            true => self.look_again(),
            false => self.give_up(problem.clone().into()),
        }
    }

    /// Ends the requested change of power with a failure, and the change of a boot setting that needs the power.
    pub(super) fn give_up_power<A>(&self, failure: Failure, event: String) -> Planned<A> {
        let entry = HistoryEntry::failed(self.node, self.node, event, self.now);
        let node = Node {
            power_request: None,
            boot_setting_request: None,
            failure: Some(failure),
            ..self.node.clone()
        };
        Ok(NodeUpdate::decided(node, [entry]))
    }

    /// Ends the change of the BMC password with a failure. `after` is the node with the password, or with both, that the BMC may have.
    pub(super) fn give_up_password<A>(&self, after: Node, failure: Failure) -> Planned<A> {
        let (cause, event) = (failure.cause.clone(), failure.to_string());
        let after = Node { failure: Some(failure), ..after };
        let entry = HistoryEntry::failed(self.node, &after, event, self.now);
        let line = format!("the change of the BMC password of node {} failed", self.node.id);
        Ok(NodeUpdate::decided(after, [entry]).warn_of(cause, line))
    }

    /// Tells that Neutron does not change the ports of a node without work. VIFs that cannot be bound stay unbound until the next deployment or
    /// attachment; ports that cannot be deleted or released are tried again.
    fn networks_refused<A>(&self, problem: &Problem) -> Planned<A> {
        let mut node = self.node.clone();
        node.failure.get_or_insert_with(|| problem.clone().into());
        node.network_changes.binds &= problem.transient;
        if node == *self.node {
            return self.look_again();
        }
        let event = format!("cannot change the ports in Neutron: {}", problem.cause);
        let entry = HistoryEntry::failed(self.node, &node, event, self.now);
        let next = Decision::rest(Requeue::After(self.rules.timeouts.poll_every));
        Ok(Decision { change: Some(NodeUpdate::new(node, [entry])), ..next })
    }

    /// Returns whether no retry follows a problem in an action: the problem is not transient, or the BMC timeout has passed.
    pub(super) fn is_final(&self, problem: &Problem, watching_since: Timestamp) -> bool {
        let work = self.node.work.as_ref().map(|work| work.task_started_at);
        let request = self.node.boot_setting_request.as_ref().map(|request| request.since);
        let rotation = self.node.password_rotation.as_ref().map(|rotation| rotation.since);
        let began = work.or(request).or(rotation).unwrap_or(watching_since).max(watching_since);
        !problem.transient || elapsed(began, self.now) > self.rules.timeouts.bmc
    }

    /// Decides what follows from a problem in an action: a transient problem is retried until the BMC timeout, and every other problem
    /// fails the work or the change of power.
    pub(super) fn after_problem<A>(
        &self,
        problem: &Problem,
        watching_since: Timestamp,
    ) -> Planned<A> {
        if !self.is_final(problem, watching_since) {
            return self.look_again();
        }
        let is_changing =
            self.node.power_request.is_some() || self.node.boot_setting_request.is_some();
        let rotation = self.node.password_rotation.as_ref();
        let is_rotating = rotation.is_some_and(PasswordRotation::is_in_progress);
        match self.node.work {
            Some(_) => self.give_up(problem.clone().into()),
            None if !is_changing && is_rotating => {
                let present = self.node.with_account_password(AccountPassword::Present);
                self.give_up_password(present, problem.clone().into())
            }
            None if !is_changing => self.networks_refused(problem),
            None => self.give_up_power(problem.clone().into(), problem.cause.clone()),
        }
    }
}
