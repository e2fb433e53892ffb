//! A machine that joins a cloud as a compute host: where it is on the way, and what comes next.

mod leave;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    Failure, HistoryEntry, JoinLimits, Node, Placement, Problem, Profile, Reason, Refusal, State,
};

/// What a node knows of the hypervisor that its machine is, or is to become.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hypervisor {
    /// By which profile.
    pub profile: String,
    /// The name of the host in the cloud.
    pub host: String,
    /// The availability zone it is put into; Nova's default one where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// The aggregate it is put into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<String>,
    /// How long each sign of its joining is waited for.
    pub limits: JoinLimits,
    /// Where it is on its way.
    pub state: JoinState,
    /// Since when.
    pub since: Timestamp,
    /// What its compute service had said of itself before it was waited for.
    pub before: Report,
    /// What the cloud knows it by, once it is listed: of its hypervisor and of its resource provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Where a machine is on its way into the cloud, in the order it goes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinState {
    /// It is being installed.
    Installing,
    /// Its compute service is to come up.
    AwaitingService,
    /// Its hypervisor is to be listed.
    AwaitingHypervisor,
    /// Its resource provider is to be there.
    AwaitingProvider,
    /// It is put into its availability zone.
    Zoning,
    /// It is put into its aggregate.
    Grouping,
    /// Its compute service is to take servers.
    Enabling,
    /// It takes servers.
    Joined,
    /// It was given up; the node's failure says why.
    Failed,
    /// It is no hypervisor any more, and the cloud is to forget it.
    Leaving,
}

/// What a compute service said of itself before it was waited for.
///
/// For a minute after a machine was switched off the cloud shows its service as up; only a report that is a newer one shows that it is
/// there. No clocks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// Nobody has looked yet.
    Unknown,
    /// It had said nothing.
    None,
    /// It last reported then, by the cloud's clock.
    At(Timestamp),
}

/// What was seen in the cloud of what a machine's state is about.
#[derive(Clone, Debug, PartialEq)]
pub enum CloudSeen {
    /// The cloud did not tell.
    Trouble(Problem),
    /// The host's compute service.
    Service(Option<ServiceSeen>),
    /// The host's hypervisor.
    Hypervisor(Option<HypervisorSeen>),
    /// Whether the hypervisor has a resource provider with something to give.
    Provider(bool),
    /// The host aggregates.
    Aggregates(Vec<AggregateSeen>),
}

/// A compute service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSeen {
    /// The cloud's id of it.
    pub id: String,
    /// Whether it reports.
    pub up: bool,
    /// Whether it takes servers.
    pub enabled: bool,
    /// When it last reported, by the cloud's clock.
    pub reported_at: Option<Timestamp>,
}

/// A hypervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HypervisorSeen {
    /// The cloud's id of it.
    pub id: String,
    /// Whether its service reports.
    pub up: bool,
}

/// A host aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateSeen {
    /// The cloud's id of it.
    pub id: String,
    /// Its name; no other has it.
    pub name: String,
    /// The availability zone that it is, if it is one.
    pub zone: Option<String>,
    /// Whether the host is in it.
    pub has_host: bool,
}

/// What is asked of the cloud. Each may be asked for twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinAction {
    /// Make a host aggregate, of an availability zone or of none.
    MakeAggregate {
        /// Its name.
        name: String,
        /// The zone that it is.
        zone: Option<String>,
    },
    /// Put the host into an aggregate.
    AddHost {
        /// The cloud's id of the aggregate.
        aggregate: String,
    },
    /// Have the compute service take servers.
    Enable {
        /// The cloud's id of the service.
        service: String,
    },
    /// Forget the compute service, and with it what the host was in and had to give.
    Forget {
        /// The cloud's id of the service.
        service: String,
    },
}

/// What comes next for a machine that joins.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinStep {
    /// Nothing: it is there, or was given up, or is not so far.
    Rest,
    /// To look again, until then at most.
    Wait {
        /// When it is given up.
        until: Timestamp,
    },
    /// To write this down and go on.
    Record(Box<Hypervisor>),
    /// To ask this of the cloud.
    Act(JoinAction),
    /// To give up.
    GiveUp(Failure),
    /// To write down that the cloud knows it no more.
    Gone,
}

/// A machine's place in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its availability zone.
    pub availability_zone: Option<String>,
    /// Its aggregate.
    pub aggregate: Option<String>,
}

impl Host {
    /// Where a profile puts a node's machine, and under which name: the node's, where a host can be called so, for ever the same.
    pub fn of(node: &Node, placement: &Placement) -> Result<Host, Refusal> {
        let named = |field: &str, named: &Option<crate::Named>| {
            let name = named.as_ref().map(|named| named.of(node.place.as_ref())).transpose();
            name.map_err(|problem| Refusal::Field {
                field: format!("placement.{field}"),
                problem: format!("{problem} (node \"{}\")", node.label()),
            })
        };
        Ok(Host {
            name: host_name(node),
            availability_zone: named("availability_zone", &placement.availability_zone)?,
            aggregate: named("aggregate", &placement.aggregate)?,
        })
    }
}

/// RFC 1123 §2.1, in lower case: what is only written otherwise would be the same host.
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
    /// What a machine is to become that is about to be installed.
    pub fn new(profile: &Profile, host: Host, now: Timestamp) -> Self {
        Hypervisor {
            profile: profile.name.to_string(),
            host: host.name,
            availability_zone: host.availability_zone,
            aggregate: host.aggregate,
            limits: profile.joining,
            state: JoinState::Installing,
            since: now,
            before: Report::Unknown,
            id: None,
        }
    }

    /// Whether the cloud is looked at for it.
    pub fn is_joining(&self) -> bool {
        self.state.describe().is_some()
    }

    /// Since when it takes servers, if it does.
    pub fn joined_at(&self) -> Option<Timestamp> {
        (self.state == JoinState::Joined).then_some(self.since)
    }

    /// The same, from the beginning of its joining; what leaves goes on leaving, whatever is installed now.
    pub(crate) fn begun(&self, now: Timestamp) -> Self {
        if self.is_leaving() {
            return self.clone();
        }
        let before = Report::Unknown;
        Hypervisor { before, ..self.at(JoinState::AwaitingService, now) }
    }

    /// The same, about to be installed; what leaves goes on leaving, whatever is installed now.
    pub(crate) fn installing(&self, now: Timestamp) -> Self {
        if self.is_leaving() {
            return self.clone();
        }
        Hypervisor { id: None, ..self.at(JoinState::Installing, now) }
    }

    fn at(&self, state: JoinState, now: Timestamp) -> Self {
        Hypervisor { state, since: now, ..self.clone() }
    }

    /// When what is waited for is given up; nobody is late who had no chance to be seen.
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

    /// The word of the API.
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

    /// What is being done, while something is: "we are …".
    pub const fn describe(self) -> Option<&'static str> {
        match self {
            JoinState::AwaitingService => Some("waiting for its compute service"),
            JoinState::AwaitingHypervisor => Some("waiting for its hypervisor to be listed"),
            JoinState::AwaitingProvider => Some("waiting for its resource provider"),
            JoinState::Zoning => Some("putting it into its availability zone"),
            JoinState::Grouping => Some("putting it into its aggregate"),
            JoinState::Enabling => Some("enabling its compute service"),
            JoinState::Installing | JoinState::Joined | JoinState::Failed | JoinState::Leaving => {
                None
            }
        }
    }

    /// Which step of joining it is, from 1, and of how many.
    pub(crate) fn number(self) -> Option<(usize, usize)> {
        let at = JoinState::STEPS.iter().position(|step| *step == self)?;
        Some((at + 1, JoinState::STEPS.len()))
    }

    /// What was seen when this state is left.
    const fn left(self) -> &'static str {
        match self {
            JoinState::Installing => "it is installed",
            JoinState::AwaitingService => "its compute service is up",
            JoinState::AwaitingHypervisor => "its hypervisor is listed",
            JoinState::AwaitingProvider => "its resource provider is there",
            JoinState::Zoning => "it is in its availability zone",
            JoinState::Grouping => "it is in its aggregate",
            JoinState::Enabling => "its compute service takes servers",
            JoinState::Joined | JoinState::Failed | JoinState::Leaving => "it joins again",
        }
    }

    /// The state that comes after.
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

/// What comes next for the machine of `host`, by what was `seen` of what its state is about.
///
/// Pure: the same inputs give the same step. What was not looked at is waited for.
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
        (_, CloudSeen::Trouble(problem)) if problem.transient => wait(problem.clone().into()),
        (_, CloudSeen::Trouble(problem)) => JoinStep::GiveUp(problem.clone().into()),

        (JoinState::AwaitingService, CloudSeen::Service(service)) => match host.before {
            Report::Unknown => {
                let said = service.as_ref().and_then(|service| service.reported_at);
                let before = said.map_or(Report::None, Report::At);
                JoinStep::Record(Box::new(Hypervisor { before, ..host.clone() }))
            }
            Report::None | Report::At(_) => match service {
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
            Some(zone) => put(zone, Some(zone), all, go_on),
            None => go_on(),
        },
        (JoinState::Grouping, CloudSeen::Aggregates(all)) => match &host.aggregate {
            // That of the zone has it already.
            Some(name) if host.availability_zone.as_ref() == Some(name) => go_on(),
            Some(name) => put(name, None, all, go_on),
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

fn is_new(before: Report, service: &ServiceSeen) -> bool {
    match (before, service.reported_at) {
        (Report::At(before), Some(now)) => now != before,
        (Report::At(_), None) => false,
        (Report::Unknown | Report::None, _) => true,
    }
}

/// The next step until the host is in the aggregate of this name, which is this zone or none.
fn put(
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
                "the host aggregate {name:?} is there and is not the availability zone of that name"
            );
            JoinStep::GiveUp(Failure::new(Reason::CloudRefuses, cause))
        }
        Some(found) if found.has_host => done(),
        Some(found) => JoinStep::Act(JoinAction::AddHost { aggregate: found.id.clone() }),
    }
}

fn not_done(host: &Hypervisor) -> Failure {
    let doing = host.state.describe().unwrap_or("joining");
    let cause = format!("the cloud took what was asked for {doing}, and did not do it");
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
    let cause =
        format!("the hypervisor of the host {name} has no resource provider with anything to give");
    Failure::new(Reason::ProviderMissing, cause)
}

impl Node {
    /// Whether its machine is on its way into the cloud, and we are to look after that.
    pub fn is_joining(&self) -> bool {
        self.provision_state == State::Active
            && self.maintenance.is_none()
            && self.hypervisor.as_ref().is_some_and(Hypervisor::is_joining)
    }

    /// Whether the cloud is to be looked at for its machine: it joins, or leaves.
    pub fn looks_at_cloud(&self) -> bool {
        self.is_joining() || self.is_leaving()
    }

    /// The node once its machine went a step further, and what its history says of that.
    pub fn joining(&self, to: Hypervisor, now: Timestamp) -> (Node, Option<HistoryEntry>) {
        let from = self.hypervisor.as_ref().map(|host| host.state);
        let went = from.filter(|from| *from != to.state).map(JoinState::left);
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

    /// The node once its machine's joining was given up.
    pub fn not_joined(&self, failure: Failure, now: Timestamp) -> (Node, HistoryEntry) {
        let mut given_up = self.clone();
        given_up.hypervisor = self.hypervisor.as_ref().map(|host| host.at(JoinState::Failed, now));
        let entry = HistoryEntry::failed(self, &given_up, failure.to_string(), now);
        given_up.failure = Some(failure);
        (given_up, entry)
    }
}

/// Has a machine join again from the beginning, whatever came of it before.
pub fn join_again(node: &Node, now: Timestamp) -> Result<(Node, Option<HistoryEntry>), Refusal> {
    let Some(host) = node.hypervisor.as_ref().filter(|host| !host.is_leaving()) else {
        let problem = "the node was not installed by a hypervisor profile";
        return Err(Refusal::Field { field: "hypervisor".to_owned(), problem: problem.to_owned() });
    };
    if node.provision_state != State::Active {
        return Err(Refusal::State {
            node: node.label(),
            state: node.provision_state,
            verb: "join",
        });
    }
    if node.maintenance.is_some() {
        return Err(Refusal::Maintenance { node: node.label(), verb: "join" });
    }
    Ok(node.joining(host.begun(now), now))
}

#[cfg(test)]
pub(crate) mod tests;
