//! A rack in the form that operators see.

use agent_protocol::Progress;
use baremetal_core::{
    Failure, Node, NodeUuid, Rack, RackGoal, RackProgress, RackTarget, current_task, rack_progress,
};
use hardware::PowerState;
use openstack_api::{JsonShape, Shaped, Time, shaped};
use serde::Serialize;

use crate::bedplate::explain::{Task, failure};
use crate::bedplate::hypervisor;

/// The JSON shape of the state that machines are brought to.
pub(super) fn reach() -> JsonShape {
    JsonShape::enumeration(["inspected", "available", "installed"])
}

pub(super) fn shape() -> JsonShape {
    Summary::shape().and([("machines", JsonShape::list(MachineView::shape()))])
}

/// The progress of a node towards the goal of its rack.
const WAYS: [&str; 5] = ["there", "under_way", "next", "stuck", "left_alone"];

shaped! {
    /// A rack in a list.
    #[derive(Serialize)]
    pub(super) struct Summary {
        name: String,
        description: Option<String>,
        goal: Option<GoalView>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct GoalView {
        reach: RackTarget = reach(),
        image: Option<String>,
        profile: Option<String>,
        limit: u32,
        asked_at: Time,
    }
}

#[derive(Serialize)]
pub(super) struct RackView<'a> {
    name: &'a str,
    description: Option<&'a str>,
    goal: Option<GoalView>,
    machines: Vec<MachineView<'a>>,
}

shaped! {
    #[derive(Serialize)]
    struct MachineView<'a> {
        uuid: NodeUuid,
        name: Option<&'a str>,
        position: Option<u32>,
        group: Option<&'a str>,
        role: Option<&'a str>,
        provision_state: &'static str,
        power_state: Option<PowerState> = JsonShape::text().or_null(),
        since: Time,
        task: Option<Task>,
        failure: Option<&'a Failure> = failure().or_null(),
        hypervisor: Option<hypervisor::View<'a>>,
        /// One of `WAYS`; absent if the rack has no goal.
        way: Option<&'static str> = JsonShape::enumeration(WAYS).or_null(),
    }
}

impl Summary {
    pub(super) fn new(name: String, rack: &Rack) -> Self {
        Summary {
            name,
            description: rack.description.clone(),
            goal: rack.goal.as_ref().map(GoalView::new),
        }
    }
}

impl GoalView {
    fn new(goal: &RackGoal) -> Self {
        let image = goal.instance_info.get("image_source").and_then(|url| url.as_str());
        GoalView {
            reach: goal.reach,
            image: image.map(str::to_owned),
            profile: goal.profile.clone(),
            limit: goal.limit.get(),
            asked_at: Time(goal.asked_at),
        }
    }
}

impl<'a> RackView<'a> {
    pub(super) fn new(
        name: &'a str,
        rack: &'a Rack,
        nodes: &'a [Node],
        progress: impl Fn(&Node) -> Option<Progress>,
    ) -> Self {
        let machine = |node: &'a Node| MachineView {
            uuid: node.id,
            name: node.name.as_ref().map(|name| name.as_str()),
            position: node.place.as_ref().map(|place| place.position),
            group: node.place.as_ref().and_then(|place| place.group.as_deref()),
            role: node.place.as_ref().and_then(|place| place.role.as_deref()),
            provision_state: node.provision_state.as_str(),
            power_state: node.power_state,
            since: Time(node.provision_updated_at.unwrap_or(node.created_at)),
            task: current_task(node).map(|task| Task::new(task, progress(node))),
            failure: node.failure.as_ref(),
            hypervisor: hypervisor::View::of(node),
            way: rack.goal.as_ref().map(|goal| word(rack_progress(goal, node))),
        };
        RackView {
            name,
            description: rack.description.as_deref(),
            goal: rack.goal.as_ref().map(GoalView::new),
            machines: nodes.iter().map(machine).collect(),
        }
    }
}

const fn word(way: RackProgress) -> &'static str {
    match way {
        RackProgress::Done => "there",
        RackProgress::InProgress => "under_way",
        RackProgress::Next(_) => "next",
        RackProgress::NeedsAttention => "stuck",
        RackProgress::Skipped => "left_alone",
    }
}

shaped! {
    /// How many machines a bring-up affects, by what happens to them.
    #[derive(Serialize)]
    pub(super) struct BringUpSummary<'a> {
        rack: &'a str,
        there: usize,
        to_do: usize,
        left_alone: usize,
    }
}

pub(super) fn begun(rack: &str, ways: impl Iterator<Item = RackProgress>) -> BringUpSummary<'_> {
    let mut begun = BringUpSummary { rack, there: 0, to_do: 0, left_alone: 0 };
    for way in ways {
        match way {
            RackProgress::Done => begun.there += 1,
            RackProgress::InProgress | RackProgress::Next(_) | RackProgress::NeedsAttention => {
                begun.to_do += 1
            }
            RackProgress::Skipped => begun.left_alone += 1,
        }
    }
    begun
}
