//! A rack that is to be brought up: which of its machines to begin with what.

use std::fmt;
use std::num::NonZeroU32;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::secret::Shown;
use crate::{InspectInterface, JoinState, Node, NodeUuid, State, Verb, is_secret};

/// A rack: machines that are brought up together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rack {
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What its machines are to become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<RackGoal>,
}

/// What the machines of a rack are to become.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct RackGoal {
    /// How far.
    pub reach: Reach,
    /// What is installed: an `instance_info` without anything that is one machine's own.
    #[serde(default)]
    pub instance_info: Map<String, Value>,
    /// The hypervisor profile by which machines join the cloud once they are installed; they stay by themselves without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How many machines may be under way at once.
    pub limit: NonZeroU32,
    /// When it was asked for. Failures since then are left for an operator; older ones are tried again.
    pub asked_at: Timestamp,
}

impl fmt::Debug for RackGoal {
    /// All of it but the values of secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RackGoal { reach, instance_info, profile, limit, asked_at } = self;
        f.debug_struct("RackGoal")
            .field("reach", reach)
            .field("instance_info", &Shown(instance_info))
            .field("profile", profile)
            .field("limit", limit)
            .field("asked_at", asked_at)
            .finish()
    }
}

/// How far the machines of a rack are to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Inspected.
    Inspected,
    /// Clean, and free to be deployed.
    Available,
    /// Installed.
    Installed,
}

/// What is asked of a machine on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackStep {
    /// A change of its provision state.
    Ask(Verb),
    /// To join the cloud, once more.
    Join,
}

/// Where a machine is on its way to its rack's goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is there.
    There,
    /// Its work is under way.
    UnderWay,
    /// This is to be asked of it.
    Next(RackStep),
    /// It failed since the goal was set: an operator has to look.
    Stuck,
    /// An operator works on it, or it is in use for something else.
    LeftAlone,
}

/// What to ask of which machine now, in the order of their positions; as many as the limit leaves room for.
pub fn plan_rack(goal: &RackGoal, nodes: &[Node]) -> Vec<(NodeUuid, RackStep)> {
    let under_way = nodes.iter().filter(|node| way(goal, node) == Way::UnderWay).count();
    let room = (goal.limit.get() as usize).saturating_sub(under_way);
    let mut waiting: Vec<(bool, u32, NodeUuid, RackStep)> = Vec::new();
    for node in nodes {
        if let Way::Next(step) = way(goal, node) {
            let begun = node.provision_state != State::Enroll;
            let position = node.place.as_ref().map_or(u32::MAX, |place| place.position);
            // A machine that has begun goes on before another begins.
            waiting.push((!begun, position, node.id, step));
        }
    }
    waiting.sort_by_key(|(fresh, position, id, _)| (*fresh, *position, *id));
    waiting.into_iter().take(room).map(|(_, _, id, step)| (id, step)).collect()
}

/// Where `node` is on its way.
pub fn way(goal: &RackGoal, node: &Node) -> Way {
    if node.provision_state.is_busy() {
        return Way::UnderWay;
    }
    if node.maintenance.is_some() || node.retired.is_some() {
        return Way::LeftAlone;
    }
    let failed_since =
        node.failure.is_some() && node.provision_updated_at.is_some_and(|at| at >= goal.asked_at);
    if failed_since {
        return Way::Stuck;
    }
    let inspected =
        node.inspection_finished_at.is_some() || node.inspect_interface() == InspectInterface::None;
    let next = |verb| Way::Next(RackStep::Ask(verb));
    match node.provision_state {
        State::Enroll => next(Verb::Manage),
        State::InspectFailed => next(Verb::Inspect),
        State::Manageable if !inspected => next(Verb::Inspect),
        State::Manageable if goal.reach == Reach::Inspected => Way::There,
        State::Manageable => next(Verb::Provide),
        State::CleanFailed => next(Verb::Manage),
        State::Available if goal.reach == Reach::Installed => next(Verb::Deploy),
        State::Available => Way::There,
        State::DeployFailed if goal.reach == Reach::Installed => next(Verb::Deploy),
        State::Active if goal.reach == Reach::Installed && is_installed(goal, node) => {
            in_the_cloud(goal, node)
        }
        State::Active | State::DeployFailed | State::Error | State::AdoptFailed => Way::LeftAlone,
        State::Verifying
        | State::Inspecting
        | State::InspectWait
        | State::Cleaning
        | State::CleanWait
        | State::Deploying
        | State::DeployWait
        | State::Deleting
        | State::Adopting => Way::UnderWay,
    }
}

/// Where a machine is that was installed with what the goal says: there, unless it is to join the cloud.
fn in_the_cloud(goal: &RackGoal, node: &Node) -> Way {
    let Some(profile) = &goal.profile else { return Way::There };
    match node.hypervisor.as_ref().filter(|host| host.profile == *profile) {
        // It was installed with the same image, and not to be a hypervisor by this profile.
        None => Way::LeftAlone,
        Some(host) => match host.state {
            JoinState::Joined => Way::There,
            JoinState::Leaving => Way::LeftAlone,
            JoinState::Failed if host.since >= goal.asked_at => Way::Stuck,
            JoinState::Failed | JoinState::Installing => Way::Next(RackStep::Join),
            JoinState::AwaitingService
            | JoinState::AwaitingHypervisor
            | JoinState::AwaitingProvider
            | JoinState::Zoning
            | JoinState::Grouping
            | JoinState::Enabling => Way::UnderWay,
        },
    }
}

/// Whether the machine was installed with what the goal says. Of what is secret, for it is sealed, whether it has any.
fn is_installed(goal: &RackGoal, node: &Node) -> bool {
    goal.instance_info.iter().all(|(key, value)| {
        let has = node.instance_info.get(key);
        has == Some(value) || (is_secret(key) && has.is_some())
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{Driver, Failure, Place, Reason};

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    fn goal(reach: Reach, limit: u32) -> RackGoal {
        let instance_info = Map::from_iter([("image_source".to_owned(), "http://x/image".into())]);
        let limit = NonZeroU32::new(limit).unwrap();
        RackGoal { reach, instance_info, profile: None, limit, asked_at: T0 }
    }

    fn node(position: u32, state: State) -> Node {
        let id = NodeUuid::from_bytes([position as u8; 16]);
        let place = Some(Place { rack: "r1".to_owned(), position, group: None, role: None });
        Node { provision_state: state, place, ..Node::new(id, Driver::Redfish, T0) }
    }

    #[track_caller]
    fn check(goal: &RackGoal, nodes: &[Node], want: Expect) {
        let plan = plan_rack(goal, nodes);
        let word = |step: &RackStep| match step {
            RackStep::Ask(verb) => verb.as_str(),
            RackStep::Join => "join",
        };
        let plan = plan.iter().map(|(id, step)| format!("{}:{}", id.as_bytes()[0], word(step)));
        want.assert_eq(&plan.collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn machines_begin_in_the_order_of_the_rack_under_the_limit() {
        let nodes = [node(3, State::Enroll), node(1, State::Enroll), node(2, State::Enroll)];
        check(&goal(Reach::Installed, 2), &nodes, expect!["1:manage 2:manage"]);
        let nodes = [node(3, State::Enroll), node(1, State::Verifying), node(2, State::Enroll)];
        check(&goal(Reach::Installed, 2), &nodes, expect!["2:manage"]);
    }

    #[test]
    fn a_machine_that_has_begun_goes_on_before_another_begins() {
        let nodes = [node(1, State::Enroll), node(2, State::Manageable)];
        check(&goal(Reach::Installed, 1), &nodes, expect!["2:inspect"]);
    }

    #[test]
    fn a_machine_goes_all_the_way_and_no_further() {
        let mut inspected = node(1, State::Manageable);
        inspected.inspection_finished_at = Some(T0);
        check(&goal(Reach::Inspected, 9), &[inspected.clone()], expect![""]);
        check(&goal(Reach::Available, 9), &[inspected], expect!["1:provide"]);
        check(&goal(Reach::Available, 9), &[node(1, State::Available)], expect![""]);
        check(&goal(Reach::Installed, 9), &[node(1, State::Available)], expect!["1:active"]);
    }

    #[test]
    fn what_failed_since_is_left_for_an_operator_and_what_failed_before_is_tried_again() {
        let mut failed = node(1, State::DeployFailed);
        failed.failure = Some(Failure::new(Reason::StepFailed, "no"));
        failed.provision_updated_at = Some(T0);
        assert_eq!(way(&goal(Reach::Installed, 9), &failed), Way::Stuck);
        let later =
            RackGoal { asked_at: Timestamp::from_second(1).unwrap(), ..goal(Reach::Installed, 9) };
        assert_eq!(way(&later, &failed), Way::Next(RackStep::Ask(Verb::Deploy)));
    }

    #[test]
    fn a_machine_in_use_for_something_else_is_left_alone() {
        let mut active = node(1, State::Active);
        assert_eq!(way(&goal(Reach::Installed, 9), &active), Way::LeftAlone);
        active.instance_info.insert("image_source".to_owned(), "http://x/image".into());
        assert_eq!(way(&goal(Reach::Installed, 9), &active), Way::There);
    }

    #[test]
    fn a_hypervisor_is_there_once_it_joined_and_counts_until_then() {
        let goal = RackGoal { profile: Some("kvm".to_owned()), ..goal(Reach::Installed, 1) };
        let later = RackGoal { asked_at: Timestamp::from_second(9).unwrap(), ..goal.clone() };
        let mut node = node(1, State::Active);
        node.instance_info.insert("image_source".to_owned(), "http://x/image".into());
        assert_eq!(way(&goal, &node), Way::LeftAlone);
        let mut at = |state| {
            let mut host = crate::hypervisor::tests::host(state);
            host.since = Timestamp::from_second(5).unwrap();
            node.hypervisor = Some(host);
            node.clone()
        };
        assert_eq!(way(&goal, &at(JoinState::AwaitingProvider)), Way::UnderWay);
        assert_eq!(way(&goal, &at(JoinState::Joined)), Way::There);
        assert_eq!(way(&goal, &at(JoinState::Failed)), Way::Stuck);
        check(&later, &[at(JoinState::Failed)], expect!["1:join"]);
        // While one joins, the next does not begin.
        let fresh = self::node(2, State::Available);
        check(&goal, &[at(JoinState::Enabling), fresh.clone()], expect![""]);
        check(&goal, &[at(JoinState::Joined), fresh], expect!["2:active"]);
    }
}
