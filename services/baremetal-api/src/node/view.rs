//! The values of a node's fields that are computed from its record.

use baremetal_core::{
    AgentCommand, ChildNodes, DeployMethod, Node, State, Step, StepKind, Task, Work,
};
use openstack_api::Microversion;

use crate::microversion;
use crate::secret::Masked;
use crate::shown::Shown;

/// The provision state as the requested version names it.
pub(crate) fn state_word(node: &Node, asked: Microversion) -> Option<&'static str> {
    let state = node.provision_state;
    if state == State::Available {
        asked.since(microversion::AVAILABLE, state.as_str())
    } else if state == State::InspectWait && !asked.has(microversion::INSPECT_WAIT) {
        Some(State::Inspecting.as_str())
    } else {
        Some(state.as_str())
    }
}

/// The failure of the last work, with advice.
pub(crate) fn last_error(node: &Node) -> Option<String> {
    node.failure.as_ref().map(ToString::to_string)
}

/// Whether a conductor works on the node at this moment.
pub(super) fn is_locked(node: &Node) -> bool {
    let state = node.provision_state;
    state.is_busy() && !state.is_waiting() && !state.is_held()
}

pub(super) fn clean_step(node: &Node) -> Shown<'_> {
    current(node, StepKind::Clean)
}

pub(super) fn service_step(node: &Node) -> Shown<'_> {
    current(node, StepKind::Service)
}

/// The step that runs now, if it is of this kind.
fn current(node: &Node, kind: StepKind) -> Shown<'_> {
    match node.work.as_ref().and_then(Work::task) {
        Some(Task::Step(step)) if step.kind == kind => step_of(step),
        Some(Task::StepOnChildren(run)) if run.step.kind == kind => step_of(&run.step),
        Some(_) | None => Shown::EMPTY,
    }
}

fn step_of(step: &Step) -> Shown<'_> {
    let named = match &step.children {
        Some(ChildNodes::Named(named)) => Some(named.as_slice()),
        Some(ChildNodes::All) | None => None,
    };
    Shown::Step {
        interface: Some(step.name.interface.as_str()),
        step: Some(&step.name.step),
        args: Some(Masked(&step.args)),
        priority: Some(step.priority),
        execute_on_child_nodes: step.children.as_ref().map(|_| true),
        limit_child_node_execution: named,
    }
}

pub(super) fn deploy_step(node: &Node) -> Shown<'_> {
    let step = match node.work.as_ref().and_then(Work::task) {
        Some(Task::Step(step)) if step.kind == StepKind::Deploy => return step_of(step),
        Some(Task::Agent(AgentCommand::WriteImage)) => match node.deploy_method() {
            DeployMethod::Bootc => "execute_bootc_install",
            DeployMethod::Direct
            | DeployMethod::CustomAgent
            | DeployMethod::Ramdisk
            | DeployMethod::Fake => "write_image",
        },
        Some(Task::Agent(AgentCommand::ListPartitions | AgentCommand::SetNextBoot)) => {
            "prepare_instance_boot"
        }
        Some(_) | None => return Shown::EMPTY,
    };
    Shown::Step {
        interface: Some("deploy"),
        step: Some(step),
        args: None,
        priority: None,
        execute_on_child_nodes: None,
        limit_child_node_execution: None,
    }
}
