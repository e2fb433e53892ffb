//! The decisions of a turn of a machine that joins or leaves a cloud.

use std::time::Duration;

use decision::{Decision, Requeue, time_left};
use jiff::Timestamp;

use super::action::JoinAction;
use super::seen::AggregateSeen;
use crate::{Failure, Hypervisor, Node, NodeUpdate, Problem, Reason};

/// The times that rule the turns of a machine that joins or leaves a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRules {
    /// When the conductor began to watch. Time limits count from here at the earliest.
    pub watching_since: Timestamp,
    /// The interval of looking at a machine that the conductor waits for.
    pub poll_every: Duration,
}

/// How many times longer the pause between looks at the cloud is than between looks at a BMC.
const CLOUD_POLL_FACTOR: u32 = 3;

/// A turn of a machine that joins or leaves a cloud.
pub(super) struct JoinTurn<'a> {
    pub(super) node: &'a Node,
    pub(super) host: &'a Hypervisor,
    pub(super) rules: &'a JoinRules,
    pub(super) now: Timestamp,
}

impl JoinTurn<'_> {
    /// When joining fails at the latest.
    fn deadline(&self) -> Timestamp {
        self.host.deadline(self.rules.watching_since)
    }

    pub(super) fn look_again<A>(&self) -> Decision<NodeUpdate, A> {
        let pause = time_left(self.deadline(), self.now);
        Decision::rest(self.cloud_pause(pause))
    }

    /// Returns when the conductor looks at the cloud again: after `pause` at the latest.
    pub(super) fn cloud_pause(&self, pause: Duration) -> Requeue {
        Requeue::After(pause.min(self.rules.poll_every * CLOUD_POLL_FACTOR))
    }

    /// Looks again until the deadline; then joining fails.
    pub(super) fn wait<A>(&self, failure: Failure) -> Decision<NodeUpdate, A> {
        if self.now < self.deadline() { self.look_again() } else { self.give_up(failure) }
    }

    /// Decides what follows when the cloud does not do as asked.
    pub(super) fn after_problem<A>(&self, problem: &Problem) -> Decision<NodeUpdate, A> {
        match problem.transient {
            true => self.wait(problem.clone().into()),
            false => self.give_up(problem.clone().into()),
        }
    }

    /// Records that the host has reached the next state.
    pub(super) fn advance<A>(&self) -> Decision<NodeUpdate, A> {
        self.record(self.host.at(self.host.state.next(), self.now))
    }

    /// Records the progress of the host.
    pub(super) fn record<A>(&self, to: Hypervisor) -> Decision<NodeUpdate, A> {
        let (joining, entry) = self.node.joining(to, self.now);
        let line =
            entry.as_ref().map(|entry| format!("node {}: {}", self.node.label(), entry.event));
        let decision = NodeUpdate::decided(joining, entry);
        line.into_iter().fold(decision, Decision::info)
    }

    /// Calls the cloud until the deadline; then joining fails.
    pub(super) fn act(&self, action: JoinAction) -> Decision<NodeUpdate, JoinAction> {
        if self.now >= self.deadline() {
            return self.give_up(not_done(self.host));
        }
        Decision::act(action)
    }

    /// Records that joining has failed.
    pub(super) fn give_up<A>(&self, failure: Failure) -> Decision<NodeUpdate, A> {
        let cause = failure.cause.clone();
        let (given_up, entry) = self.node.not_joined(failure, self.now);
        NodeUpdate::decided(given_up, [entry])
            .warn_of(cause, format!("node {} did not join the cloud", self.node.label()))
    }

    /// Puts the host into the aggregate `name`, which defines the availability zone `zone` if that is set.
    pub(super) fn step_into_aggregate(
        &self,
        name: &str,
        zone: Option<&String>,
        all: &[AggregateSeen],
    ) -> Decision<NodeUpdate, JoinAction> {
        match all.iter().find(|one| one.name == name) {
            None => {
                self.act(JoinAction::MakeAggregate { name: name.to_owned(), zone: zone.cloned() })
            }
            Some(found) if zone.is_some() && found.zone.as_ref() != zone => {
                let cause = format!(
                    "the host aggregate {name:?} exists but is not the availability zone of that name"
                );
                self.give_up(Failure::new(Reason::CloudRefuses, cause))
            }
            Some(found) if found.has_host => self.advance(),
            Some(found) => self.act(JoinAction::AddHost { aggregate: found.id.clone() }),
        }
    }
}

fn not_done(host: &Hypervisor) -> Failure {
    let doing = host.state.describe().unwrap_or("joining");
    let cause = format!("the cloud accepted the request for {doing} but did not carry it out");
    Failure::new(Reason::CloudRefuses, cause)
}
