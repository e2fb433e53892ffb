//! A node whose machine is to be taken away from what runs on it: the request waits in the node's record until its compute host is drained.
//!
//! The API writes the intent in the transaction that checks the request, the conductor asks for the drain. Each stage is written down before
//! anything is asked of clusterd because of it, and each question may be asked twice.

use std::time::Duration;

use hardware::{PowerChange, PowerState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Failure, HistoryEntry, Node, Reason, State, Verb};

/// A request that waits until the node's compute host is drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaving {
    /// As which compute host the cloud knows the node.
    pub host: String,
    /// What waits for the drain.
    pub then: AfterDrain,
    /// Clusters that may lose their quorum by the drain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<String>,
    /// The user who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// When.
    pub asked_at: Timestamp,
    /// How far its drain is.
    pub stage: LeavingStage,
}

/// What follows once the host is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterDrain {
    /// Nothing: an operator works on the node, and does not wait for the drain.
    Maintenance,
    /// The node is installed again.
    Rebuild,
    /// The node is taken out of use.
    Undeploy,
    /// Its power changes.
    Power {
        /// To what.
        change: PowerChange,
        /// How long that may take, once it begins.
        timeout: Duration,
    },
}

/// How far the drain of a node's host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeavingStage {
    /// Nobody has looked yet whether the host is drained already.
    Wanted,
    /// clusterd is asked for the drain; whether it took the request is not known.
    Asking(DrainOwner),
    /// clusterd drains the host.
    Waiting(DrainOwner),
    /// The drain is to end: the host takes servers again, and nothing follows.
    Ending,
}

/// Who began the drain of a node's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainOwner {
    /// This request: the drain ends with it when the request cannot be carried out.
    Request,
    /// An operator, before this request: the drain is left as it is.
    Operator,
}

/// What clusterd tells of a host's drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainSeen {
    /// The cloud has no such host.
    NoHost,
    /// The host is not drained.
    NotDrained,
    /// Servers are moved away from it; so many are left.
    Draining(usize),
    /// Nothing is left on it that runs.
    Drained,
    /// So many servers do not move; or a cluster would lose its quorum by what came to the host since, and why.
    Stuck(usize, Option<String>),
    /// Its drain is ending: it takes servers again.
    Ending,
    /// The drain was refused: a cluster would lose its quorum.
    Refused(String),
    /// clusterd does not tell, and why.
    Unknown(String),
}

/// What is to be done next about a node that waits for a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeavingStep {
    /// Write down that the drain is at this stage.
    Enter(LeavingStage),
    /// Carry out what was waiting.
    Proceed,
    /// Nothing, for a while; what keeps the drain from going on, where anything does.
    Wait(Option<String>),
    /// The request cannot be carried out, and why; the drain it began ends with it.
    Refuse(String, LeavingEnd),
    /// Nothing is left to be done.
    Over,
}

/// What becomes of the drain when a request is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeavingEnd {
    /// It ends too.
    EndDrain,
    /// It is left as it is, if there is one.
    LeaveDrain,
}

/// Who asks a node to leave, and what may break.
#[derive(Clone, Debug)]
pub struct LeaveRequest {
    /// As which compute host the cloud knows the node.
    pub host: String,
    /// What follows the drain.
    pub then: AfterDrain,
    /// Clusters that may lose their quorum.
    pub forced: Vec<String>,
    /// The user who asks.
    pub by: Option<String>,
}

/// The next step for a node that waits for a drain, given what clusterd answered to the question that its stage asks.
pub fn plan_leaving(leaving: &Leaving, seen: &DrainSeen) -> LeavingStep {
    use LeavingStage::{Asking, Ending, Waiting, Wanted};

    let follows = leaving.then != AfterDrain::Maintenance;
    match (leaving.stage, seen) {
        (_, DrainSeen::Unknown(why)) => LeavingStep::Wait(Some(why.clone())),
        (Ending, _) => LeavingStep::Over,
        (Wanted | Asking(_) | Waiting(_), DrainSeen::NoHost) if follows => LeavingStep::Proceed,
        (Wanted | Asking(_) | Waiting(_), DrainSeen::NoHost) => LeavingStep::Over,

        (Wanted, DrainSeen::NotDrained | DrainSeen::Ending) => {
            LeavingStep::Enter(Asking(DrainOwner::Request))
        }
        (Wanted, DrainSeen::Draining(_) | DrainSeen::Drained | DrainSeen::Stuck(..)) => {
            LeavingStep::Enter(Asking(DrainOwner::Operator))
        }

        (Asking(_), DrainSeen::NotDrained) => LeavingStep::Wait(None),
        (
            Asking(owner),
            DrainSeen::Draining(_) | DrainSeen::Drained | DrainSeen::Stuck(..) | DrainSeen::Ending,
        ) => match follows {
            true => LeavingStep::Enter(Waiting(owner)),
            false => LeavingStep::Over,
        },

        (Waiting(_), DrainSeen::Drained) => LeavingStep::Proceed,
        (Waiting(_), DrainSeen::Draining(_)) => LeavingStep::Wait(None),
        (Waiting(owner), DrainSeen::Stuck(_, Some(why))) => {
            LeavingStep::Refuse(why.clone(), owner.end())
        }
        (Waiting(_), DrainSeen::Stuck(left, None)) => {
            LeavingStep::Wait(Some(format!("{left} servers run on it and do not move")))
        }
        (Waiting(_), DrainSeen::NotDrained | DrainSeen::Ending) => LeavingStep::Refuse(
            format!("the drain of host {} was ended", leaving.host),
            LeavingEnd::LeaveDrain,
        ),
        // What an earlier request was granted stays, and clusterd refuses to add to it.
        (Wanted | Asking(_) | Waiting(_), DrainSeen::Refused(why)) => {
            LeavingStep::Refuse(why.clone(), LeavingEnd::LeaveDrain)
        }
    }
}

impl DrainOwner {
    /// What becomes of the drain when the request is not carried out.
    pub fn end(self) -> LeavingEnd {
        match self {
            DrainOwner::Request => LeavingEnd::EndDrain,
            DrainOwner::Operator => LeavingEnd::LeaveDrain,
        }
    }
}

impl AfterDrain {
    /// The word of the Bare Metal API for what follows.
    pub fn as_str(self) -> &'static str {
        match self {
            AfterDrain::Maintenance => "maintenance",
            AfterDrain::Rebuild => Verb::Rebuild.as_str(),
            AfterDrain::Undeploy => Verb::Undeploy.as_str(),
            AfterDrain::Power { change, .. } => match change {
                PowerChange::On => "power on",
                PowerChange::ForceOff => "power off",
                PowerChange::SoftOff => "soft power off",
                PowerChange::ForceRestart => "rebooting",
                PowerChange::SoftRestart => "soft rebooting",
            },
        }
    }
}

impl Leaving {
    /// Whether a request waits, and is not being taken back.
    pub fn is_waiting(&self) -> bool {
        self.stage != LeavingStage::Ending && self.then != AfterDrain::Maintenance
    }

    /// Whether a change of power waits.
    pub(crate) fn awaits_power(&self) -> bool {
        self.is_waiting() && matches!(self.then, AfterDrain::Power { .. })
    }

    /// The same, without what was waiting: the drain ends if this request began it.
    fn withdrawn(&self, end: LeavingEnd) -> Option<Leaving> {
        match end {
            LeavingEnd::EndDrain => Some(Leaving { stage: LeavingStage::Ending, ..self.clone() }),
            LeavingEnd::LeaveDrain => None,
        }
    }

    /// The intent once the node is asked for something else that needs no drain.
    pub(crate) fn superseded(&self) -> Option<Leaving> {
        (self.stage == LeavingStage::Ending).then(|| self.clone())
    }

    /// The intent once somebody takes back what was waiting.
    pub(crate) fn cancelled(&self) -> Option<Leaving> {
        match self.stage {
            LeavingStage::Wanted => None,
            LeavingStage::Asking(owner) | LeavingStage::Waiting(owner) => {
                self.withdrawn(owner.end())
            }
            LeavingStage::Ending => Some(self.clone()),
        }
    }
}

/// The node, with a request that waits for the drain of its host. It replaces what was waiting before, and goes on with its drain.
pub fn leave(node: &Node, request: LeaveRequest, now: Timestamp) -> (Node, HistoryEntry) {
    let stage = match node.leaving.as_ref().map(|before| before.stage) {
        Some(LeavingStage::Asking(owner) | LeavingStage::Waiting(owner)) => {
            LeavingStage::Asking(owner)
        }
        Some(LeavingStage::Wanted | LeavingStage::Ending) | None => LeavingStage::Wanted,
    };
    let LeaveRequest { host, then, forced, by } = request;
    let event = format!("asked to {}: host {host} is drained first", then.as_str());
    let leaving = Leaving { host, then, forced, asked_by: by, asked_at: now, stage };
    let asked = Node { leaving: Some(leaving), failure: None, ..node.clone() };
    let entry = HistoryEntry::changed(node, &asked, event, now);
    (asked, entry)
}

/// The node once nobody works on it any more: `host`, as which the cloud knows it, takes servers again, unless a request waits for its drain.
pub fn come_back(node: &Node, host: &str, by: Option<String>, now: Timestamp) -> Node {
    if node.leaving.as_ref().is_some_and(Leaving::is_waiting) {
        return node.clone();
    }
    let leaving = Leaving {
        host: host.to_owned(),
        then: AfterDrain::Maintenance,
        forced: Vec::new(),
        asked_by: by,
        asked_at: now,
        stage: LeavingStage::Ending,
    };
    Node { leaving: Some(leaving), ..node.clone() }
}

/// The node once its request was refused, and what its history says of that.
pub fn stays(node: &Node, why: &str, end: LeavingEnd, now: Timestamp) -> (Node, HistoryEntry) {
    let leaving = node.leaving.as_ref().and_then(|leaving| leaving.withdrawn(end));
    let (host, then) = names(node);
    let why = told(node, why);
    let cause = format!("\"{then}\" was not carried out on host {host}: {why}");
    let failure = Failure::new(Reason::DrainRefused, cause);
    let entry = HistoryEntry::failed(node, node, failure.to_string(), now);
    (Node { leaving, failure: Some(failure), ..node.clone() }, entry)
}

/// The node once it is told why it waits, and what its history says of that; `None` where it was told before.
pub fn held(node: &Node, why: &str, now: Timestamp) -> Option<(Node, HistoryEntry)> {
    let is_told = |failure: &Failure| failure.reason == Reason::DrainWaits;
    if node.failure.as_ref().is_some_and(is_told) {
        return None;
    }
    let is_ending =
        node.leaving.as_ref().is_some_and(|leaving| leaving.stage == LeavingStage::Ending);
    let (host, then) = names(node);
    let why = told(node, why);
    let cause = match is_ending {
        true => format!("host {host} takes no servers, its drain is not ended yet: {why}"),
        false => format!("\"{then}\" waits for the drain of host {host}: {why}"),
    };
    let failure = Failure::new(Reason::DrainWaits, cause);
    let entry = HistoryEntry::failed(node, node, failure.to_string(), now);
    Some((Node { failure: Some(failure), ..node.clone() }, entry))
}

/// The host that a node waits for, and the request that waits.
fn names(node: &Node) -> (&str, &'static str) {
    node.leaving.as_ref().map_or(("", ""), |leaving| (&leaving.host, leaving.then.as_str()))
}

/// What may be told of a node. Whose machines it carries is no business of the project it is lent to.
fn told<'a>(node: &Node, why: &'a str) -> &'a str {
    if node.lessee.is_some() { "it carries machines of others" } else { why }
}

impl Node {
    /// The power state that the request leads to which waits for the drain.
    pub(crate) fn power_after_drain(&self) -> Option<PowerState> {
        let leaving = self.leaving.as_ref().filter(|leaving| leaving.is_waiting())?;
        match leaving.then {
            AfterDrain::Power { change, .. } => {
                crate::PowerRequest::new(change, leaving.asked_at).leads_to()
            }
            AfterDrain::Maintenance | AfterDrain::Rebuild | AfterDrain::Undeploy => None,
        }
    }

    /// The provision state that its work leads to, or that the request leads to which waits for a drain.
    pub fn leads_to(&self) -> Option<State> {
        let waiting = self.leaving.as_ref().filter(|leaving| leaving.is_waiting());
        let after_drain = waiting.and_then(|leaving| match leaving.then {
            AfterDrain::Rebuild => Some(State::Active),
            AfterDrain::Undeploy => Some(State::Available),
            AfterDrain::Maintenance | AfterDrain::Power { .. } => None,
        });
        self.target_provision_state.or(after_drain)
    }
}

#[cfg(test)]
mod tests;
