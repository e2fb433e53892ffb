//! Joining an OpenStack: the steps by which an installed machine becomes a compute host.

mod action;
mod leave;
mod seen;
mod turn;

use decision::{Decision, Requeue};
use jiff::Timestamp;

use crate::{
    EarlierReport, Failure, HistoryEntry, Hypervisor, JoinState, Node, NodeUpdate, Problem, Reason,
    RequestRefused, State,
};
use turn::JoinTurn;

pub use action::JoinAction;
pub use seen::{AggregateSeen, CloudSeen, HypervisorSeen, ServiceSeen};
pub use turn::JoinRules;

/// Decides the next step of a node's machine that joins or leaves a cloud, given an observation of the part of the cloud that the host's
/// state is about. Each state is recorded before the cloud is called because of it.
///
/// Pure: the same inputs give the same decision. After an observation of another part of the cloud, the conductor looks again.
pub fn plan_join(
    node: &Node,
    seen: &CloudSeen,
    rules: &JoinRules,
    now: Timestamp,
) -> Decision<NodeUpdate, JoinAction> {
    let Some(host) = node.hypervisor.as_ref() else { return Decision::rest(Requeue::OnChange) };
    let turn = JoinTurn { node, host, rules, now };
    match (host.state, seen) {
        (JoinState::Leaving, _) => leave::plan(&turn, seen),
        (JoinState::Installing | JoinState::Joined | JoinState::Failed, _) => {
            Decision::rest(Requeue::OnChange)
        }
        (_, CloudSeen::Failed(problem)) => turn.after_problem(problem),

        (JoinState::AwaitingService, CloudSeen::Service(service)) => match host.before {
            EarlierReport::Unknown => {
                let said = service.as_ref().and_then(|service| service.reported_at);
                let before = said.map_or(EarlierReport::None, EarlierReport::At);
                turn.record(Hypervisor { before, ..host.clone() })
            }
            EarlierReport::None | EarlierReport::At(_) => match service {
                Some(service) if service.up && is_new(host.before, service) => turn.advance(),
                Some(_) | None => turn.wait(no_service(host, service.as_ref())),
            },
        },
        (JoinState::AwaitingHypervisor, CloudSeen::Hypervisor(Some(found))) if found.up => {
            let id = Some(found.id.clone());
            turn.record(Hypervisor { id, ..host.at(host.state.next(), now) })
        }
        (JoinState::AwaitingHypervisor, CloudSeen::Hypervisor(found)) => {
            turn.wait(no_hypervisor(host, found.as_ref()))
        }
        (JoinState::AwaitingProvider, CloudSeen::Provider(true)) => turn.advance(),
        (JoinState::AwaitingProvider, CloudSeen::Provider(false)) => turn.wait(no_provider(host)),
        (JoinState::Zoning, CloudSeen::Aggregates(all)) => match &host.availability_zone {
            Some(zone) => turn.step_into_aggregate(zone, Some(zone), all),
            None => turn.advance(),
        },
        (JoinState::Grouping, CloudSeen::Aggregates(all)) => match &host.aggregate {
            // The aggregate of the availability zone has the same name and contains the host already.
            Some(name) if host.availability_zone.as_ref() == Some(name) => turn.advance(),
            Some(name) => turn.step_into_aggregate(name, None, all),
            None => turn.advance(),
        },
        (JoinState::Enabling, CloudSeen::Service(Some(service))) if service.enabled => {
            turn.advance()
        }
        (JoinState::Enabling, CloudSeen::Service(Some(service))) => {
            turn.act(JoinAction::Enable { service: service.id.clone() })
        }
        (JoinState::Enabling, CloudSeen::Service(None)) => turn.wait(no_service(host, None)),
        (
            JoinState::AwaitingService
            | JoinState::AwaitingHypervisor
            | JoinState::AwaitingProvider
            | JoinState::Zoning
            | JoinState::Grouping
            | JoinState::Enabling,
            CloudSeen::Service(_)
            | CloudSeen::Hypervisor(_)
            | CloudSeen::Provider(_)
            | CloudSeen::Aggregates(_),
        ) => turn.look_again(),
    }
}

/// Decides what follows from a call to the cloud. `problem` says why the cloud did not do as asked; `None` if the cloud accepted the call.
pub fn after_cloud_call(
    node: &Node,
    problem: Option<&Problem>,
    rules: &JoinRules,
    now: Timestamp,
) -> Decision<NodeUpdate> {
    match (problem, node.hypervisor.as_ref()) {
        (Some(problem), Some(host)) => {
            let turn = JoinTurn { node, host, rules, now };
            if host.is_leaving() { leave::ask_again(&turn) } else { turn.after_problem(problem) }
        }
        (None, _) | (Some(_), None) => Decision::rest(Requeue::After(rules.poll_every)),
    }
}

fn is_new(before: EarlierReport, service: &ServiceSeen) -> bool {
    match (before, service.reported_at) {
        (EarlierReport::At(before), Some(now)) => now != before,
        (EarlierReport::At(_), None) => false,
        (EarlierReport::Unknown | EarlierReport::None, _) => true,
    }
}

fn no_service(host: &Hypervisor, service: Option<&ServiceSeen>) -> Failure {
    let name = &host.host;
    let cause = match service {
        None => format!("no compute service of the host {name} came up in the cloud"),
        Some(service) if service.up => {
            format!("the compute service of the host {name} did not report since it was installed")
        }
        Some(_) => format!("the compute service of the host {name} is down"),
    };
    Failure::new(Reason::ServiceMissing, cause)
}

fn no_hypervisor(host: &Hypervisor, found: Option<&HypervisorSeen>) -> Failure {
    let name = &host.host;
    let cause = match found {
        None => {
            format!(
                "the compute service of the host {name} is up, but no hypervisor of it is listed"
            )
        }
        Some(_) => format!("the hypervisor of the host {name} is listed and is down"),
    };
    Failure::new(Reason::HypervisorMissing, cause)
}

fn no_provider(host: &Hypervisor) -> Failure {
    let name = &host.host;
    let cause = format!("the hypervisor of host {name} has no resource provider with an inventory");
    Failure::new(Reason::ProviderMissing, cause)
}

impl Node {
    /// Returns whether the machine is joining a cloud, and the conductor has to drive that.
    pub fn is_joining(&self) -> bool {
        self.provision_state == State::Active
            && self.maintenance.is_none()
            && self.hypervisor.as_ref().is_some_and(Hypervisor::is_joining)
    }

    /// Returns whether the conductor has to look at the cloud, because the machine is joining or leaving.
    pub fn looks_at_cloud(&self) -> bool {
        self.is_joining() || self.is_leaving()
    }

    /// Returns the node with the progress of joining, and the entry for its history.
    pub fn joining(&self, to: Hypervisor, now: Timestamp) -> (Node, Option<HistoryEntry>) {
        let from = self.hypervisor.as_ref().map(|host| host.state);
        let went = from.filter(|from| *from != to.state).map(JoinState::text_when_left);
        let reported = match (went, to.state) {
            (Some(_), JoinState::Joined) => Some(format!("host {} has joined the cloud", to.host)),
            (Some(left), _) => Some(format!("host {}: {left}", to.host)),
            (None, _) => None,
        };
        let mut gone = Node { hypervisor: Some(to), ..self.clone() };
        if reported.is_some() {
            gone.failure = None;
        }
        let entry = reported.map(|reported| HistoryEntry::changed(self, &gone, reported, now));
        (gone, entry)
    }

    /// Returns the node after joining has failed, and the entry for its history.
    pub fn not_joined(&self, failure: Failure, now: Timestamp) -> (Node, HistoryEntry) {
        let mut given_up = self.clone();
        given_up.hypervisor = self.hypervisor.as_ref().map(|host| host.at(JoinState::Failed, now));
        let entry = HistoryEntry::failed(self, &given_up, failure.to_string(), now);
        given_up.failure = Some(failure);
        (given_up, entry)
    }
}

/// Makes a machine join again from the beginning, whatever the result of the last attempt.
pub fn join_again(
    node: &Node,
    now: Timestamp,
) -> Result<(Node, Option<HistoryEntry>), RequestRefused> {
    let Some(host) = node.hypervisor.as_ref().filter(|host| !host.is_leaving()) else {
        let problem = "the node was not installed by a hypervisor profile";
        return Err(RequestRefused::Field {
            field: "hypervisor".to_owned(),
            problem: problem.to_owned(),
        });
    };
    if node.provision_state != State::Active {
        return Err(RequestRefused::State {
            node: node.label(),
            state: node.provision_state,
            verb: "join",
        });
    }
    if node.maintenance.is_some() {
        return Err(RequestRefused::Maintenance { node: node.label(), verb: "join" });
    }
    Ok(node.joining(host.begun(now), now))
}

#[cfg(test)]
mod tests;
