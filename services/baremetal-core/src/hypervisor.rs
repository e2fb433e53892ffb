//! Joining an OpenStack: the steps by which an installed machine becomes a compute host.

mod leave;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    Failure, HistoryEntry, JoinLimits, Node, Placement, Problem, Profile, Reason, RequestRefused,
    State,
};

/// The compute host that a node is or becomes, as stored in the node's record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hypervisor {
    /// The name of the hypervisor profile.
    pub profile: String,
    /// The name of the compute host in the cloud.
    pub host: String,
    /// The availability zone for the host; `None` means Nova's default zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// The aggregate for the host, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<String>,
    /// How long the conductor waits for each sign of joining.
    pub limits: JoinLimits,
    pub state: JoinState,
    /// When the host entered `state`.
    pub since: Timestamp,
    /// The last report of the compute service from before the conductor waited for it.
    pub before: EarlierReport,
    /// The id of the host's hypervisor and of its resource provider, which is the same; known once the hypervisor is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The states of joining an OpenStack, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinState {
    /// The machine is being installed.
    Installing,
    /// The compute service has to come up.
    AwaitingService,
    /// The hypervisor has to be listed.
    AwaitingHypervisor,
    /// The resource provider has to appear.
    AwaitingProvider,
    /// The conductor puts the host into its availability zone.
    Zoning,
    /// The conductor puts the host into its aggregate.
    Grouping,
    /// The conductor enables the compute service, so that the scheduler places servers on the host.
    Enabling,
    /// The host takes servers.
    Joined,
    /// Joining failed; the node's failure says why.
    Failed,
    /// The machine is no longer a hypervisor, and the cloud has to remove the host.
    Leaving,
}

/// The last report of a compute service from before the conductor waited for it.
///
/// For a minute after a machine was switched off, the cloud still shows its service as up. Only a report that differs from this one proves
/// that the service runs. Reports are compared with each other, never with a local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierReport {
    /// The conductor has not looked yet.
    Unknown,
    /// The service had never reported.
    None,
    /// The service last reported at this time of the cloud's clock.
    At(Timestamp),
}

/// The part of the cloud that the current state of joining is about.
#[derive(Clone, Debug, PartialEq)]
pub enum CloudSeen {
    /// The cloud did not answer, or refused.
    Failed(Problem),
    /// The compute service of the host, if the cloud knows one.
    Service(Option<ServiceSeen>),
    /// The hypervisor of the host, if it is listed.
    Hypervisor(Option<HypervisorSeen>),
    /// Whether the hypervisor has a resource provider with an inventory.
    Provider(bool),
    /// The host aggregates of the cloud.
    Aggregates(Vec<AggregateSeen>),
}

/// A compute service as the cloud shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSeen {
    pub id: String,
    /// Whether the cloud considers the service alive.
    pub up: bool,
    /// Whether the scheduler places servers on the host.
    pub enabled: bool,
    /// When the service last reported, by the cloud's clock.
    pub reported_at: Option<Timestamp>,
}

/// A hypervisor as the cloud shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HypervisorSeen {
    pub id: String,
    /// Whether its compute service is up.
    pub up: bool,
}

/// A host aggregate as the cloud shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateSeen {
    pub id: String,
    /// The name, which is unique in the cloud.
    pub name: String,
    /// The availability zone that the aggregate defines, if any.
    pub zone: Option<String>,
    /// Whether the host is a member.
    pub has_host: bool,
}

/// A call to the cloud. Every call may be repeated without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinAction {
    /// Create a host aggregate, optionally as an availability zone.
    MakeAggregate {
        name: String,
        /// The availability zone that the aggregate defines.
        zone: Option<String>,
    },
    /// Add the host to an aggregate.
    AddHost {
        /// The aggregate's id in the cloud.
        aggregate: String,
    },
    /// Enable the compute service.
    Enable {
        /// The service's id in the cloud.
        service: String,
    },
    /// Delete the compute service. Nova then also removes the host from its aggregates, and its resource provider.
    Forget {
        /// The service's id in the cloud.
        service: String,
    },
}

/// The next step for a machine that joins or leaves a cloud.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinStep {
    /// Nothing to do: joining has ended, has failed, or has not begun.
    Rest,
    /// Look again later.
    Wait {
        /// When joining fails at the latest.
        until: Timestamp,
    },
    /// Record this progress and continue.
    Record(Box<Hypervisor>),
    /// Make this call to the cloud.
    Act(JoinAction),
    /// Joining fails.
    GiveUp(Failure),
    /// Record that the cloud has removed the host.
    Gone,
}

/// The name and placement of a compute host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlacement {
    pub name: String,
    pub availability_zone: Option<String>,
    pub aggregate: Option<String>,
}

impl HostPlacement {
    /// Returns the host for `node`, placed as `placement` says. The host's name is the node's name if that is a valid host name, and
    /// derives from the node's id otherwise.
    pub fn of(node: &Node, placement: &Placement) -> Result<HostPlacement, RequestRefused> {
        let named = |field: &str, named: &Option<crate::NameSource>| {
            let name = named.as_ref().map(|named| named.of(node.place.as_ref())).transpose();
            name.map_err(|problem| RequestRefused::Field {
                field: format!("placement.{field}"),
                problem: format!("{problem} (node \"{}\")", node.label()),
            })
        };
        Ok(HostPlacement {
            name: host_name(node),
            availability_zone: named("availability_zone", &placement.availability_zone)?,
            aggregate: named("aggregate", &placement.aggregate)?,
        })
    }
}

/// Returns the name of the host. RFC 1123 §2.1, restricted to lower case: names that differ only in case would be the same host.
fn host_name(node: &Node) -> String {
    let label = |label: &str| {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(legal)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    match &node.name {
        Some(name) if name.as_str().len() <= 253 && name.as_str().split('.').all(label) => {
            name.as_str().to_owned()
        }
        Some(_) | None => format!("node-{}", node.id),
    }
}

impl Hypervisor {
    /// Makes the record of a host that is about to be installed.
    pub fn new(profile: &Profile, host: HostPlacement, now: Timestamp) -> Self {
        Hypervisor {
            profile: profile.name.to_string(),
            host: host.name,
            availability_zone: host.availability_zone,
            aggregate: host.aggregate,
            limits: profile.joining,
            state: JoinState::Installing,
            since: now,
            before: EarlierReport::Unknown,
            id: None,
        }
    }

    /// Returns whether the conductor has to look at the cloud for this host to join.
    pub fn is_joining(&self) -> bool {
        self.state.describe().is_some()
    }

    /// Returns when the host joined the cloud, if it has.
    pub fn joined_at(&self) -> Option<Timestamp> {
        (self.state == JoinState::Joined).then_some(self.since)
    }

    /// Returns the host at the beginning of joining. A leaving host continues to leave, because the cloud still has to remove it.
    pub(crate) fn begun(&self, now: Timestamp) -> Self {
        if self.is_leaving() {
            return self.clone();
        }
        let before = EarlierReport::Unknown;
        Hypervisor { before, ..self.at(JoinState::AwaitingService, now) }
    }

    /// Returns the host while its machine is being installed. A leaving host continues to leave, because the cloud still has to remove it.
    pub(crate) fn installing(&self, now: Timestamp) -> Self {
        if self.is_leaving() {
            return self.clone();
        }
        Hypervisor { id: None, ..self.at(JoinState::Installing, now) }
    }

    fn at(&self, state: JoinState, now: Timestamp) -> Self {
        Hypervisor { state, since: now, ..self.clone() }
    }

    /// Returns when joining fails. If the conductor was down, the time limit counts from `watching_since`.
    fn deadline(&self, watching_since: Timestamp) -> Timestamp {
        let limit = match self.state {
            JoinState::AwaitingService => self.limits.compute_service,
            JoinState::AwaitingHypervisor => self.limits.hypervisor,
            JoinState::AwaitingProvider => self.limits.resource_provider,
            JoinState::Zoning | JoinState::Grouping | JoinState::Enabling => self.limits.placement,
            JoinState::Installing | JoinState::Joined | JoinState::Failed | JoinState::Leaving => {
                SignedDuration::ZERO
            }
        };
        let from = self.since.max(watching_since);
        from.checked_add(limit).unwrap_or(Timestamp::MAX)
    }
}

impl JoinState {
    /// The steps of joining, in their order.
    const STEPS: [JoinState; 6] = [
        JoinState::AwaitingService,
        JoinState::AwaitingHypervisor,
        JoinState::AwaitingProvider,
        JoinState::Zoning,
        JoinState::Grouping,
        JoinState::Enabling,
    ];

    /// Returns the name of the state in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            JoinState::Installing => "installing",
            JoinState::AwaitingService => "awaiting_service",
            JoinState::AwaitingHypervisor => "awaiting_hypervisor",
            JoinState::AwaitingProvider => "awaiting_provider",
            JoinState::Zoning => "zoning",
            JoinState::Grouping => "grouping",
            JoinState::Enabling => "enabling",
            JoinState::Joined => "joined",
            JoinState::Failed => "failed",
            JoinState::Leaving => "leaving",
        }
    }

    /// Returns what is being done in this state, to continue the words "we are …", or `None` if nothing is.
    pub const fn describe(self) -> Option<&'static str> {
        match self {
            JoinState::AwaitingService => Some("waiting for its compute service"),
            JoinState::AwaitingHypervisor => Some("waiting for its hypervisor to be listed"),
            JoinState::AwaitingProvider => Some("waiting for its resource provider"),
            JoinState::Zoning => Some("adding the host to its availability zone"),
            JoinState::Grouping => Some("adding the host to its aggregate"),
            JoinState::Enabling => Some("enabling its compute service"),
            JoinState::Installing | JoinState::Joined | JoinState::Failed | JoinState::Leaving => {
                None
            }
        }
    }

    /// Returns the number of this step of joining, counted from 1, and the number of all steps.
    pub(crate) fn number(self) -> Option<(usize, usize)> {
        let at = JoinState::STEPS.iter().position(|step| *step == self)?;
        Some((at + 1, JoinState::STEPS.len()))
    }

    /// Returns the text for the history when this state is left.
    const fn text_when_left(self) -> &'static str {
        match self {
            JoinState::Installing => "the machine is installed",
            JoinState::AwaitingService => "the compute service is up",
            JoinState::AwaitingHypervisor => "the hypervisor is listed",
            JoinState::AwaitingProvider => "the resource provider exists",
            JoinState::Zoning => "the host is in its availability zone",
            JoinState::Grouping => "the host is in its aggregate",
            JoinState::Enabling => "the compute service is enabled",
            JoinState::Joined | JoinState::Failed | JoinState::Leaving => "joining again",
        }
    }

    /// Returns the state that follows.
    const fn next(self) -> JoinState {
        match self {
            JoinState::Installing | JoinState::Failed => JoinState::AwaitingService,
            JoinState::AwaitingService => JoinState::AwaitingHypervisor,
            JoinState::AwaitingHypervisor => JoinState::AwaitingProvider,
            JoinState::AwaitingProvider => JoinState::Zoning,
            JoinState::Zoning => JoinState::Grouping,
            JoinState::Grouping => JoinState::Enabling,
            JoinState::Enabling | JoinState::Joined => JoinState::Joined,
            JoinState::Leaving => JoinState::Leaving,
        }
    }
}

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
pub(crate) mod tests;
