//! The values of a node's fields that are computed from its record.

use baremetal_core::{AgentCommand, Node, State, Task, Work};
use openstack_api::Microversion;

use crate::microversion;
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
    node.provision_state.is_busy() && !node.provision_state.is_waiting()
}

/// A reason, unless it is empty.
pub(super) fn reason(given: &Option<String>) -> Option<&str> {
    given.as_deref().filter(|reason| !reason.is_empty())
}

fn agent_command(node: &Node) -> Option<AgentCommand> {
    match node.work.as_ref().and_then(Work::task)? {
        Task::Agent(command) => Some(*command),
        Task::TryBmc
        | Task::AskBmcForInventory
        | Task::Power(_)
        | Task::BootRamdisk
        | Task::BootDisk
        | Task::AwaitInventory
        | Task::AwaitAgent => None,
    }
}

/// The clean step that runs now.
pub(super) fn clean_step(node: &Node) -> Shown<'static> {
    let step = match agent_command(node) {
        Some(AgentCommand::EraseMetadata) => Some("erase_devices_metadata"),
        Some(AgentCommand::EraseDisks) => Some("erase_devices"),
        Some(AgentCommand::WriteImage | AgentCommand::SetNextBoot | AgentCommand::Sync) | None => {
            None
        }
    };
    Shown::Step { interface: step.map(|_| "deploy"), step }
}

/// The deploy step that runs now.
pub(super) fn deploy_step(node: &Node) -> Shown<'static> {
    let step = match agent_command(node) {
        Some(AgentCommand::WriteImage) => Some("write_image"),
        Some(AgentCommand::SetNextBoot) => Some("prepare_instance_boot"),
        Some(AgentCommand::EraseMetadata | AgentCommand::EraseDisks | AgentCommand::Sync)
        | None => None,
    };
    Shown::Step { interface: step.map(|_| "deploy"), step }
}
