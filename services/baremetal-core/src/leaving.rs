//! Plans the next step of a node that waits for the drain of its compute host.

use std::time::Duration;

use decision::{Decision, Requeue};
use jiff::Timestamp;

use crate::{
    AfterDrain, ClusterdCall, DrainFate, DrainOwner, DrainRequest, DrainSeen, DrainStage, Node,
    NodeUpdate, Reason, Verb, VerbRequest, WorkUuid, drain_refused, drain_stuck, request_power,
    request_verb,
};

/// The settings that decide the turns of a node that waits for a drain.
#[derive(Clone, Copy, Debug)]
pub struct LeavingRules {
    /// The interval of looking at a drain that makes no progress.
    pub poll_every: Duration,
    /// The id of the work that follows the drain.
    pub new_work: WorkUuid,
}

/// Decides the call to clusterd that belongs to the stage of the drain. The stage was recorded before, so after a crash the next turn
/// repeats the same call.
pub fn plan_leaving(leaving: &DrainRequest) -> Decision<NodeUpdate, ClusterdCall> {
    let host = leaving.host.clone();
    Decision::act(match leaving.stage {
        DrainStage::Wanted | DrainStage::Waiting(_) => ClusterdCall::Show { host },
        DrainStage::Asking(_) => ClusterdCall::Drain { host, forced: leaving.forced.clone() },
        DrainStage::Ending => ClusterdCall::Undrain { host },
    })
}

/// Decides what follows from clusterd's answer to the call of [`plan_leaving`].
pub fn after_leaving_call(
    node: &Node,
    seen: &DrainSeen,
    rules: &LeavingRules,
    now: Timestamp,
) -> Decision<NodeUpdate> {
    use DrainStage::{Asking, Ending, Waiting, Wanted};

    let Some(leaving) = &node.leaving else { return Decision::rest(Requeue::Now) };
    let turn = LeavingTurn { node, leaving, rules, now };
    let follows = leaving.then != AfterDrain::Maintenance;
    match (leaving.stage, seen) {
        (_, DrainSeen::Unknown(why)) => turn.wait_because(why),
        (Ending, _) => turn.end(),
        (Wanted | Asking(_) | Waiting(_), DrainSeen::NoHost) if follows => turn.proceed(),
        (Wanted | Asking(_) | Waiting(_), DrainSeen::NoHost) => turn.end(),

        (Wanted, DrainSeen::NotDrained | DrainSeen::Ending) => {
            turn.enter(Asking(DrainOwner::Request))
        }
        (Wanted, DrainSeen::Draining(_) | DrainSeen::Drained | DrainSeen::Stuck(..)) => {
            turn.enter(Asking(DrainOwner::Operator))
        }

        (Asking(_), DrainSeen::NotDrained) => turn.wait(),
        (
            Asking(owner),
            DrainSeen::Draining(_) | DrainSeen::Drained | DrainSeen::Stuck(..) | DrainSeen::Ending,
        ) => match follows {
            true => turn.enter(Waiting(owner)),
            false => turn.end(),
        },

        (Waiting(_), DrainSeen::Drained) => turn.proceed(),
        (Waiting(_), DrainSeen::Draining(_)) => turn.wait(),
        (Waiting(owner), DrainSeen::Stuck(_, Some(why))) => turn.refuse(why, owner.end()),
        (Waiting(_), DrainSeen::Stuck(left, None)) => {
            turn.wait_because(&format!("{left} servers run on the host and cannot be moved"))
        }
        (Waiting(_), DrainSeen::NotDrained | DrainSeen::Ending) => turn.refuse(
            &format!("the drain of host {} was ended", leaving.host),
            DrainFate::LeaveDrain,
        ),
        // clusterd refuses to extend a drain that it has granted to an earlier request, and keeps that drain.
        (Wanted | Asking(_) | Waiting(_), DrainSeen::Refused(why)) => {
            turn.refuse(why, DrainFate::LeaveDrain)
        }
    }
}

/// A turn of a node that waits for a drain.
struct LeavingTurn<'a> {
    node: &'a Node,
    leaving: &'a DrainRequest,
    rules: &'a LeavingRules,
    now: Timestamp,
}

impl LeavingTurn<'_> {
    /// Records that the drain has reached this stage.
    fn enter(&self, stage: DrainStage) -> Decision<NodeUpdate> {
        let entered = DrainRequest { stage, ..self.leaving.clone() };
        NodeUpdate::decided(Node { leaving: Some(entered), ..self.node.clone() }, [])
    }

    /// Removes the request: nothing is left to do.
    fn end(&self) -> Decision<NodeUpdate> {
        NodeUpdate::decided(self.without_request(), [])
    }

    /// Looks again later.
    fn wait(&self) -> Decision<NodeUpdate> {
        Decision::rest(Requeue::After(self.rules.poll_every))
    }

    /// Looks again later, and records once what stops the drain.
    fn wait_because(&self, why: &str) -> Decision<NodeUpdate> {
        let Some((reported, entry)) = drain_stuck(self.node, why, self.now) else {
            return self.wait();
        };
        let line = format!("node {}: {}", self.node.label(), entry.event);
        let next_turn = Requeue::After(self.rules.poll_every);
        Decision { next_turn, ..NodeUpdate::decided(reported, [entry]) }.warn(line)
    }

    fn refuse(&self, why: &str, end: DrainFate) -> Decision<NodeUpdate> {
        let (stayed, entry) = drain_refused(self.node, why, end, self.now);
        let line = format!("the request to node {} is refused: {why}", self.node.label());
        NodeUpdate::decided(stayed, [entry]).warn(line)
    }

    /// Carries out the request that waited for the drain, unless something forbids it by now.
    fn proceed(&self) -> Decision<NodeUpdate> {
        let (host, then, label) = (&self.leaving.host, self.leaving.then, self.node.label());
        let free = self.without_request();
        let begun = |verb: Verb| {
            let DrainRequest { steps, disables_ramdisk, .. } = self.leaving.clone();
            let request = VerbRequest { verb, steps, disables_ramdisk };
            let asked = request_verb(&free, request, self.rules.new_work, self.now);
            let (user, project) = (&self.leaving.asked_by, &self.leaving.project);
            asked.map(|(to, entry)| (to, Some(entry.by(user.as_deref(), project.as_deref()))))
        };
        let begun = match then {
            AfterDrain::Maintenance => Ok((free, None)),
            AfterDrain::Undeploy => begun(Verb::Undeploy),
            AfterDrain::Rebuild => begun(Verb::Rebuild),
            AfterDrain::Service => begun(Verb::Service),
            AfterDrain::Rescue => begun(Verb::Rescue),
            AfterDrain::Power { change, timeout } => {
                request_power(&free, change, self.now + timeout).map(|to| (to, None))
            }
        };
        match begun {
            Ok((begun, entry)) => NodeUpdate::decided(begun, entry)
                .info(format!("host {host} is drained: node {label} continues with {then:?}")),
            Err(refusal) => {
                let (stayed, entry) =
                    drain_refused(self.node, &refusal.to_string(), self.fate(), self.now);
                let line =
                    format!("host {host} is drained, but the request to node {label} is refused");
                NodeUpdate::decided(stayed, [entry]).warn_of(refusal, line)
            }
        }
    }

    /// Returns whether the drain ends when the request is not carried out.
    fn fate(&self) -> DrainFate {
        match self.leaving.stage {
            DrainStage::Asking(owner) | DrainStage::Waiting(owner) => owner.end(),
            DrainStage::Wanted | DrainStage::Ending => DrainFate::LeaveDrain,
        }
    }

    /// Returns the node without the request, and without the recorded reason for waiting, because the drain has made progress.
    fn without_request(&self) -> Node {
        let waits = self.node.failure.as_ref().is_some_and(|it| it.reason == Reason::DrainWaits);
        let failure = self.node.failure.clone().filter(|_| !waits);
        Node { leaving: None, failure, ..self.node.clone() }
    }
}

#[cfg(test)]
mod tests;
