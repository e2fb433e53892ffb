//! The compute host in a node's record, and the states of joining an OpenStack.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::JoinLimits;

/// The compute host that a node is or becomes, as stored in the node's record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hypervisor {
    pub profile: String,
    /// The name of the compute host in the cloud.
    pub host: String,
    /// The availability zone for the host; `None` means Nova's default zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
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

words::words! {
    /// The states of joining an OpenStack, in their order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum JoinState {
        Installing = "installing",
        /// The compute service has to come up.
        AwaitingService = "awaiting_service",
        AwaitingHypervisor = "awaiting_hypervisor",
        AwaitingProvider = "awaiting_provider",
        /// The conductor puts the host into its availability zone.
        Zoning = "zoning",
        /// The conductor puts the host into its aggregate.
        Grouping = "grouping",
        /// The conductor enables the compute service, so that the scheduler places servers on the host.
        Enabling = "enabling",
        /// The host takes servers.
        Joined = "joined",
        /// Joining failed; the node's failure says why.
        Failed = "failed",
        /// The machine is no longer a hypervisor, and the cloud has to remove the host.
        Leaving = "leaving",
    }
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

impl Hypervisor {
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

    /// Returns whether the machine is no longer a hypervisor, and the cloud has to remove the host.
    pub fn is_leaving(&self) -> bool {
        self.state == JoinState::Leaving
    }

    /// Returns the host after its machine was taken out of use.
    pub(crate) fn leaving(&self, now: Timestamp) -> Self {
        self.at(JoinState::Leaving, now)
    }

    pub(crate) fn at(&self, state: JoinState, now: Timestamp) -> Self {
        Hypervisor { state, since: now, ..self.clone() }
    }

    /// Returns when joining fails. If the conductor was down, the time limit counts from `watching_since`.
    pub(crate) fn deadline(&self, watching_since: Timestamp) -> Timestamp {
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
    pub(crate) const fn text_when_left(self) -> &'static str {
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
    pub(crate) const fn next(self) -> JoinState {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn host(state: JoinState) -> Hypervisor {
        let limit = SignedDuration::from_secs(10);
        Hypervisor {
            profile: "kvm".to_owned(),
            host: "h1".to_owned(),
            availability_zone: Some("r1".to_owned()),
            aggregate: Some("gpu".to_owned()),
            limits: JoinLimits {
                compute_service: limit,
                hypervisor: limit,
                resource_provider: limit,
                placement: limit,
            },
            state,
            since: Timestamp::UNIX_EPOCH,
            before: EarlierReport::None,
            id: None,
        }
    }

    #[test]
    fn only_a_joined_host_has_a_time_of_joining() {
        let then = Timestamp::from_second(7).unwrap();
        let now = Timestamp::from_second(9).unwrap();
        let joined = Hypervisor { since: then, ..host(JoinState::Joined) };
        assert_eq!(joined.joined_at(), Some(then));
        assert_eq!(joined.at(JoinState::Joined, now).joined_at(), Some(now));
        for state in [JoinState::Installing, JoinState::Enabling, JoinState::Failed] {
            assert_eq!(joined.at(state, now).joined_at(), None, "{state:?}");
        }
    }

    #[test]
    fn a_new_installation_forgets_the_old_hypervisor_unless_the_host_still_leaves() {
        let now = Timestamp::from_second(9).unwrap();
        let id = || Some("u1".to_owned());
        let joined = Hypervisor { id: id(), ..host(JoinState::Joined) };
        let again = joined.installing(now);
        assert_eq!((again.state, again.since, again.id), (JoinState::Installing, now, None));
        let begun = joined.begun(now);
        assert_eq!((begun.state, begun.since), (JoinState::AwaitingService, now));
        assert_eq!(begun.before, EarlierReport::Unknown);
        let leaving = Hypervisor { id: id(), ..host(JoinState::Leaving) };
        assert_eq!(leaving.installing(now), leaving);
        assert_eq!(leaving.begun(now), leaving);
    }
}
