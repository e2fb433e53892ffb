//! Joining an OpenStack: the steps by which an installed machine becomes a compute host.

mod leave;
mod seen;
mod step;

use jiff::Timestamp;

use crate::{
    EarlierReport, Failure, HistoryEntry, Hypervisor, JoinState, Node, Reason, RequestRefused,
    State,
};

pub use seen::{AggregateSeen, CloudSeen, HypervisorSeen, ServiceSeen};
pub use step::{JoinAction, JoinStep};

/// Returns the next step for the machine of `host`, given an observation of the part of the cloud that the state is about.
///
/// Pure: the same inputs give the same step. An observation of another part of the cloud leads to `Wait`.
pub fn plan_join(
    host: &Hypervisor,
    seen: &CloudSeen,
    watching_since: Timestamp,
    now: Timestamp,
) -> JoinStep {
    let until = host.deadline(watching_since);
    let wait = |failure: Failure| match now < until {
        true => JoinStep::Wait { until },
        false => JoinStep::GiveUp(failure),
    };
    let go_on = || JoinStep::Record(Box::new(host.at(host.state.next(), now)));
    let step = match (host.state, seen) {
        (JoinState::Leaving, _) => return leave::plan(seen, now),
        (JoinState::Installing | JoinState::Joined | JoinState::Failed, _) => JoinStep::Rest,
        (_, CloudSeen::Failed(problem)) if problem.transient => wait(problem.clone().into()),
        (_, CloudSeen::Failed(problem)) => JoinStep::GiveUp(problem.clone().into()),

        (JoinState::AwaitingService, CloudSeen::Service(service)) => match host.before {
            EarlierReport::Unknown => {
                let said = service.as_ref().and_then(|service| service.reported_at);
                let before = said.map_or(EarlierReport::None, EarlierReport::At);
                JoinStep::Record(Box::new(Hypervisor { before, ..host.clone() }))
            }
            EarlierReport::None | EarlierReport::At(_) => match service {
                Some(service) if service.up && is_new(host.before, service) => go_on(),
                Some(_) | None => wait(no_service(host, service.as_ref())),
            },
        },
        (JoinState::AwaitingHypervisor, CloudSeen::Hypervisor(Some(found))) if found.up => {
            let id = Some(found.id.clone());
            JoinStep::Record(Box::new(Hypervisor { id, ..host.at(host.state.next(), now) }))
        }
        (JoinState::AwaitingHypervisor, CloudSeen::Hypervisor(found)) => {
            wait(no_hypervisor(host, found.as_ref()))
        }
        (JoinState::AwaitingProvider, CloudSeen::Provider(true)) => go_on(),
        (JoinState::AwaitingProvider, CloudSeen::Provider(false)) => wait(no_provider(host)),
        (JoinState::Zoning, CloudSeen::Aggregates(all)) => match &host.availability_zone {
            Some(zone) => step_into_aggregate(zone, Some(zone), all, go_on),
            None => go_on(),
        },
        (JoinState::Grouping, CloudSeen::Aggregates(all)) => match &host.aggregate {
            // The aggregate of the availability zone has the same name and contains the host already.
            Some(name) if host.availability_zone.as_ref() == Some(name) => go_on(),
            Some(name) => step_into_aggregate(name, None, all, go_on),
            None => go_on(),
        },
        (JoinState::Enabling, CloudSeen::Service(Some(service))) if service.enabled => go_on(),
        (JoinState::Enabling, CloudSeen::Service(Some(service))) => {
            JoinStep::Act(JoinAction::Enable { service: service.id.clone() })
        }
        (JoinState::Enabling, CloudSeen::Service(None)) => wait(no_service(host, None)),
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
        ) => JoinStep::Wait { until },
    };
    match step {
        JoinStep::Act(_) if now >= until => JoinStep::GiveUp(not_done(host)),
        step @ (JoinStep::Rest
        | JoinStep::Wait { .. }
        | JoinStep::Record(_)
        | JoinStep::Act(_)
        | JoinStep::GiveUp(_)
        | JoinStep::Gone) => step,
    }
}

fn is_new(before: EarlierReport, service: &ServiceSeen) -> bool {
    match (before, service.reported_at) {
        (EarlierReport::At(before), Some(now)) => now != before,
        (EarlierReport::At(_), None) => false,
        (EarlierReport::Unknown | EarlierReport::None, _) => true,
    }
}

/// Returns the next step until the host is in the aggregate `name`, which defines the availability zone `zone` if that is set.
fn step_into_aggregate(
    name: &str,
    zone: Option<&String>,
    all: &[AggregateSeen],
    done: impl Fn() -> JoinStep,
) -> JoinStep {
    match all.iter().find(|one| one.name == name) {
        None => {
            JoinStep::Act(JoinAction::MakeAggregate { name: name.to_owned(), zone: zone.cloned() })
        }
        Some(found) if zone.is_some() && found.zone.as_ref() != zone => {
            let cause = format!(
                "the host aggregate {name:?} exists but is not the availability zone of that name"
            );
            JoinStep::GiveUp(Failure::new(Reason::CloudRefuses, cause))
        }
        Some(found) if found.has_host => done(),
        Some(found) => JoinStep::Act(JoinAction::AddHost { aggregate: found.id.clone() }),
    }
}

fn not_done(host: &Hypervisor) -> Failure {
    let doing = host.state.describe().unwrap_or("joining");
    let cause = format!("the cloud accepted the request for {doing} but did not carry it out");
    Failure::new(Reason::CloudRefuses, cause)
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
        let told = match (went, to.state) {
            (Some(_), JoinState::Joined) => Some(format!("host {} has joined the cloud", to.host)),
            (Some(left), _) => Some(format!("host {}: {left}", to.host)),
            (None, _) => None,
        };
        let mut gone = Node { hypervisor: Some(to), ..self.clone() };
        if told.is_some() {
            gone.failure = None;
        }
        let entry = told.map(|told| HistoryEntry::changed(self, &gone, told, now));
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
