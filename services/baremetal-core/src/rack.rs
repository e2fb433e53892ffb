//! Plans the bring-up of a rack: which machine gets which step next.

use std::convert::Infallible;
use std::fmt;
use std::num::NonZeroU32;

use decision::{Decision, Requeue};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::secret::Masked;
use crate::{InspectInterface, JoinState, Node, NodeUuid, State, Verb, is_secret};

/// A rack: machines that are brought up together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rack {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The state that the machines have to reach; `None` leaves the machines alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<RackGoal>,
}

/// The error for a rack whose record cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the record of rack {name}; delete the rack and enroll it again")]
pub struct UnreadableRack {
    pub name: String,
    source: serde_json::Error,
}

impl Rack {
    /// Reads the record of a rack. Fields that an older program did not write get their defaults.
    pub fn read(name: &str, record: Value) -> Result<Self, UnreadableRack> {
        serde_json::from_value(record)
            .map_err(|source| UnreadableRack { name: name.to_owned(), source })
    }
}

/// The goal of a rack's bring-up.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct RackGoal {
    /// The state that the machines have to reach.
    pub reach: RackTarget,
    /// The image to install: an `instance_info` without values that belong to a single machine.
    #[serde(default)]
    pub instance_info: Map<String, Value>,
    /// The hypervisor profile with which installed machines join the cloud; `None` ends the bring-up after the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How many machines may be in progress at the same time.
    pub limit: NonZeroU32,
    /// When the goal was set. A machine that failed since then waits for an operator; a machine that failed earlier is tried again.
    pub asked_at: Timestamp,
}

impl fmt::Debug for RackGoal {
    /// Prints all fields, with the values of secrets masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RackGoal { reach, instance_info, profile, limit, asked_at } = self;
        f.debug_struct("RackGoal")
            .field("reach", reach)
            .field("instance_info", &Masked(instance_info))
            .field("profile", profile)
            .field("limit", limit)
            .field("asked_at", asked_at)
            .finish()
    }
}

/// The state that the machines of a rack have to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RackTarget {
    Inspected,
    /// Clean and free to be deployed.
    Available,
    Installed,
}

/// A request that the conductor makes for a machine of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RackAction {
    pub node: NodeUuid,
    pub request: RackRequest,
}

/// The next request for a machine on its way to the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackRequest {
    /// A change of provision state.
    Verb(Verb),
    /// Another attempt to join the cloud.
    Join,
}

/// The progress of a machine towards the goal of its rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackProgress {
    /// The machine has reached the goal.
    Done,
    InProgress,
    Next(RackRequest),
    /// The machine failed since the goal was set, so an operator has to look at it.
    NeedsAttention,
    /// The machine is skipped: an operator works on it, or the machine is used for something else.
    Skipped,
}

/// Decides which machines get a request now: in the order of their positions, as many as the limit allows. The rack's own record does not
/// change.
pub fn plan_rack(goal: &RackGoal, nodes: &[Node]) -> Decision<Infallible, RackAction> {
    let under_way =
        nodes.iter().filter(|node| rack_progress(goal, node) == RackProgress::InProgress).count();
    let room = (goal.limit.get() as usize).saturating_sub(under_way);
    let mut waiting: Vec<(bool, u32, RackAction)> = Vec::new();
    for node in nodes {
        if let RackProgress::Next(request) = rack_progress(goal, node) {
            let begun = node.provision_state != State::Enroll;
            let position = node.place.as_ref().map_or(u32::MAX, |place| place.position);
            // Machines that have begun get their next request before new machines begin.
            waiting.push((!begun, position, RackAction { node: node.id, request }));
        }
    }
    waiting.sort_by_key(|(fresh, position, action)| (*fresh, *position, action.node));
    let actions = waiting.into_iter().take(room).map(|(_, _, action)| action).collect();
    Decision { actions, ..Decision::rest(Requeue::OnChange) }
}

/// Returns the progress of `node` towards `goal`.
pub fn rack_progress(goal: &RackGoal, node: &Node) -> RackProgress {
    if node.provision_state.is_busy() {
        return RackProgress::InProgress;
    }
    if node.fault().is_some() {
        return RackProgress::NeedsAttention;
    }
    if node.maintenance.is_some() || node.retired.is_some() {
        return RackProgress::Skipped;
    }
    let failed_since =
        node.failure.is_some() && node.provision_updated_at.is_some_and(|at| at >= goal.asked_at);
    if failed_since {
        return RackProgress::NeedsAttention;
    }
    let inspected = node.inspection_finished_at.is_some() || !node.inspect_interface().looks();
    let next = |verb| RackProgress::Next(RackRequest::Verb(verb));
    match node.provision_state {
        State::Enroll => next(Verb::Manage),
        State::InspectFailed if node.inspect_interface() == InspectInterface::NoInspect => {
            next(Verb::Manage)
        }
        State::InspectFailed => next(Verb::Inspect),
        State::Manageable if !inspected => next(Verb::Inspect),
        State::Manageable if goal.reach == RackTarget::Inspected => RackProgress::Done,
        State::Manageable => next(Verb::Provide),
        State::CleanFailed => next(Verb::Manage),
        State::Available if goal.reach == RackTarget::Installed => next(Verb::Deploy),
        State::Available => RackProgress::Done,
        State::DeployFailed if goal.reach == RackTarget::Installed => next(Verb::Deploy),
        State::Active if goal.reach == RackTarget::Installed && is_installed(goal, node) => {
            in_the_cloud(goal, node)
        }
        State::Active
        | State::DeployFailed
        | State::ServiceFailed
        | State::Rescued
        | State::RescueFailed
        | State::UnrescueFailed
        | State::Error
        | State::AdoptFailed => RackProgress::Skipped,
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
        | State::ServiceHold
        | State::Rescuing
        | State::RescueWait
        | State::Unrescuing
        | State::Deleting
        | State::Adopting => RackProgress::InProgress,
    }
}

/// Returns the progress of a machine that has the goal's image: done, unless the machine still has to join the cloud.
fn in_the_cloud(goal: &RackGoal, node: &Node) -> RackProgress {
    let Some(profile) = &goal.profile else { return RackProgress::Done };
    match node.hypervisor.as_ref().filter(|host| host.profile == *profile) {
        // The machine has the same image, but was not installed with this profile.
        None => RackProgress::Skipped,
        Some(host) => match host.state {
            JoinState::Joined => RackProgress::Done,
            JoinState::Leaving => RackProgress::Skipped,
            JoinState::Failed if host.since >= goal.asked_at => RackProgress::NeedsAttention,
            JoinState::Failed | JoinState::Installing => RackProgress::Next(RackRequest::Join),
            JoinState::AwaitingService
            | JoinState::AwaitingHypervisor
            | JoinState::AwaitingProvider
            | JoinState::Zoning
            | JoinState::Grouping
            | JoinState::Enabling => RackProgress::InProgress,
        },
    }
}

/// Returns whether the machine was installed with the goal's `instance_info`. Secrets are sealed and cannot be compared, so their presence
/// is enough.
fn is_installed(goal: &RackGoal, node: &Node) -> bool {
    goal.instance_info.iter().all(|(key, value)| {
        let has = node.instance_info.get(key);
        has == Some(value) || (is_secret(key) && has.is_some())
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::{Driver, Failure, Maintenance, RackLocation, Reason};

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    fn goal(reach: RackTarget, limit: u32) -> RackGoal {
        let instance_info = Map::from_iter([("image_source".to_owned(), "http://x/image".into())]);
        let limit = NonZeroU32::new(limit).unwrap();
        RackGoal { reach, instance_info, profile: None, limit, asked_at: T0 }
    }

    fn node(position: u32, state: State) -> Node {
        let id = NodeUuid::from_bytes([position as u8; 16]);
        let place = Some(RackLocation { rack: "r1".to_owned(), position, group: None, role: None });
        Node { provision_state: state, place, ..Node::new(id, Driver::Redfish, T0) }
    }

    #[track_caller]
    fn check(goal: &RackGoal, nodes: &[Node], want: Expect) {
        let plan = plan_rack(goal, nodes);
        let word = |request| match request {
            RackRequest::Verb(verb) => verb.as_str(),
            RackRequest::Join => "join",
        };
        let plan = plan.actions.into_iter();
        let plan = plan.map(|it| format!("{}:{}", it.node.as_bytes()[0], word(it.request)));
        want.assert_eq(&plan.collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn a_record_that_cannot_be_read_is_named() {
        let empty = Rack { description: None, goal: None };
        assert_eq!(Rack::read("r1", json!({})).unwrap(), empty);
        let refused = Rack::read("r1", json!({"goal": {"reach": "moon"}})).unwrap_err();
        assert!(refused.to_string().starts_with("cannot read the record of rack r1;"));
    }

    #[test]
    fn machines_begin_in_rack_order_up_to_the_limit() {
        let nodes = [node(3, State::Enroll), node(1, State::Enroll), node(2, State::Enroll)];
        check(&goal(RackTarget::Installed, 2), &nodes, expect!["1:manage 2:manage"]);
        let nodes = [node(3, State::Enroll), node(1, State::Verifying), node(2, State::Enroll)];
        check(&goal(RackTarget::Installed, 2), &nodes, expect!["2:manage"]);
    }

    #[test]
    fn machines_in_progress_come_before_new_ones() {
        let nodes = [node(1, State::Enroll), node(2, State::Manageable)];
        check(&goal(RackTarget::Installed, 1), &nodes, expect!["2:inspect"]);
    }

    #[test]
    fn a_failed_inspection_is_repeated_unless_the_node_has_no_inspection_any_more() {
        let mut failed = node(1, State::InspectFailed);
        check(&goal(RackTarget::Available, 9), &[failed.clone()], expect!["1:inspect"]);
        failed.interfaces.inspect = Some(InspectInterface::NoInspect);
        check(&goal(RackTarget::Available, 9), &[failed], expect!["1:manage"]);
    }

    #[test]
    fn a_machine_stops_at_the_goal() {
        let mut inspected = node(1, State::Manageable);
        inspected.inspection_finished_at = Some(T0);
        check(&goal(RackTarget::Inspected, 9), &[inspected.clone()], expect![""]);
        check(&goal(RackTarget::Available, 9), &[inspected], expect!["1:provide"]);
        check(&goal(RackTarget::Available, 9), &[node(1, State::Available)], expect![""]);
        check(&goal(RackTarget::Installed, 9), &[node(1, State::Available)], expect!["1:active"]);
    }

    #[test]
    fn failures_since_the_goal_wait_and_earlier_failures_are_retried() {
        let mut failed = node(1, State::DeployFailed);
        failed.failure = Some(Failure::new(Reason::StepFailed, "no"));
        failed.provision_updated_at = Some(T0);
        assert_eq!(
            rack_progress(&goal(RackTarget::Installed, 9), &failed),
            RackProgress::NeedsAttention
        );
        let later = RackGoal {
            asked_at: Timestamp::from_second(1).unwrap(),
            ..goal(RackTarget::Installed, 9)
        };
        assert_eq!(
            rack_progress(&later, &failed),
            RackProgress::Next(RackRequest::Verb(Verb::Deploy))
        );
    }

    #[test]
    fn a_machine_used_for_something_else_is_skipped() {
        let mut active = node(1, State::Active);
        assert_eq!(rack_progress(&goal(RackTarget::Installed, 9), &active), RackProgress::Skipped);
        active.instance_info.insert("image_source".to_owned(), "http://x/image".into());
        assert_eq!(rack_progress(&goal(RackTarget::Installed, 9), &active), RackProgress::Done);
        // A goal that installs nothing does not repeat a failed installation.
        let failed = node(1, State::DeployFailed);
        assert_eq!(rack_progress(&goal(RackTarget::Available, 9), &failed), RackProgress::Skipped);
    }

    #[test]
    fn a_secret_of_the_image_has_to_be_there_and_is_not_compared() {
        let mut goal = goal(RackTarget::Installed, 9);
        goal.instance_info.insert("configdrive".to_owned(), "plain".into());
        let progress = |info: Value| {
            let mut active = node(1, State::Active);
            active.instance_info = info.as_object().unwrap().clone();
            rack_progress(&goal, &active)
        };
        let image = "http://x/image";
        let installed = json!({"image_source": image, "configdrive": "sealed"});
        assert_eq!(progress(installed), RackProgress::Done);
        for info in [
            json!({"image_source": image}),
            json!({"image_source": "http://x/other", "configdrive": "sealed"}),
        ] {
            assert_eq!(progress(info), RackProgress::Skipped);
        }
    }

    #[test]
    fn a_machine_that_an_operator_works_on_is_skipped() {
        let progress = |change: fn(&mut Node)| {
            let mut node = node(1, State::Enroll);
            change(&mut node);
            rack_progress(&goal(RackTarget::Available, 9), &node)
        };
        let held = progress(|node| node.maintenance = Some(Maintenance::requested(None)));
        assert_eq!(held, RackProgress::Skipped);
        assert_eq!(progress(|node| node.retired = Some("old".to_owned())), RackProgress::Skipped);
        assert_eq!(progress(|_| {}), RackProgress::Next(RackRequest::Verb(Verb::Manage)));
    }

    #[test]
    fn a_joining_hypervisor_counts_as_in_progress_until_it_joined() {
        let goal = RackGoal { profile: Some("kvm".to_owned()), ..goal(RackTarget::Installed, 1) };
        let later = RackGoal { asked_at: Timestamp::from_second(9).unwrap(), ..goal.clone() };
        let mut node = node(1, State::Active);
        node.instance_info.insert("image_source".to_owned(), "http://x/image".into());
        assert_eq!(rack_progress(&goal, &node), RackProgress::Skipped);
        let mut at = |state| {
            let mut host = crate::hypervisor::tests::host(state);
            host.since = Timestamp::from_second(5).unwrap();
            node.hypervisor = Some(host);
            node.clone()
        };
        assert_eq!(
            rack_progress(&goal, &at(JoinState::AwaitingProvider)),
            RackProgress::InProgress
        );
        assert_eq!(rack_progress(&goal, &at(JoinState::Joined)), RackProgress::Done);
        assert_eq!(rack_progress(&goal, &at(JoinState::Failed)), RackProgress::NeedsAttention);
        check(&later, &[at(JoinState::Failed)], expect!["1:join"]);
        // With a limit of one, a joining machine keeps the next one from beginning.
        let fresh = self::node(2, State::Available);
        check(&goal, &[at(JoinState::Enabling), fresh.clone()], expect![""]);
        check(&goal, &[at(JoinState::Joined), fresh], expect!["2:active"]);
    }
}
