//! Serializes a node for clients, field by field.

use baremetal_core::{AgentCommand, Node, State, Task, Work};
use openstack_api::{Caller, Links, Microversion, Origin, Relation, Time};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::Field;
use crate::app::relation;
use crate::field::{FieldRow, FieldSet};
use crate::microversion;
use crate::rule::shown_to_lessees;
use crate::secret::Masked;

/// How the nodes of one answer are shown.
#[derive(Clone, Copy)]
pub(crate) struct ViewOptions<'a> {
    pub(crate) caller: &'a Caller,
    /// The requested version.
    pub(crate) asked: Microversion,
    pub(crate) shown: FieldSet<Field>,
    /// The origin under which the client reached the API.
    pub(crate) origin: &'a Origin,
    /// The conductor that manages the nodes.
    pub(crate) conductor: &'a str,
}

/// A node in the form that clients see.
pub(crate) struct View<'a> {
    pub(crate) node: &'a Node,
    pub(crate) look: ViewOptions<'a>,
}

/// A clean or deploy step; `{}` if no step is running.
#[derive(Default, Serialize)]
struct Step {
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
}

const NULL: Option<()> = None;

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        let lent = relation(self.look.caller, self.node) == Some(Relation::Lessee);
        for row in self.look.shown.rows().filter(|row| !lent || shown_to_lessees(row.field)) {
            object.serialize_key(row.name)?;
            self.value(&mut object, row)?;
        }
        object.end()
    }
}

impl View<'_> {
    fn value<M: SerializeMap>(
        &self,
        object: &mut M,
        row: &FieldRow<Field>,
    ) -> Result<(), M::Error> {
        let node = self.node;
        let nothing = Step::default();
        match row.field {
            Field::Uuid => object.serialize_value(&node.id),
            Field::Name => object.serialize_value(&node.name),
            Field::CreatedAt => object.serialize_value(&Time(node.created_at)),
            Field::UpdatedAt => object.serialize_value(&Time::some(node.updated_at)),
            Field::Driver => object.serialize_value(node.driver.as_str()),
            Field::DriverInfo => object.serialize_value(&Masked(&node.driver_info)),
            Field::Properties => object.serialize_value(&node.properties),
            Field::Extra => object.serialize_value(&node.extra),
            Field::InstanceInfo => object.serialize_value(&Masked(&node.instance_info)),
            Field::InstanceUuid => object.serialize_value(&node.instance_uuid),
            Field::InstanceName => object.serialize_value(&node.instance_name),
            Field::ChassisUuid => object.serialize_value(&node.chassis),
            Field::PowerState => object.serialize_value(&node.power_state),
            Field::TargetPowerState => object.serialize_value(&node.target_power_state()),
            Field::ProvisionState => object.serialize_value(&state_word(node, self.look.asked)),
            Field::TargetProvisionState => {
                object.serialize_value(&node.leads_to().map(State::as_str))
            }
            Field::ProvisionUpdatedAt => {
                object.serialize_value(&Time::some(node.provision_updated_at))
            }
            Field::LastError => object.serialize_value(&last_error(node)),
            Field::Maintenance => object.serialize_value(&node.maintenance.is_some()),
            Field::MaintenanceReason => {
                let reason = node.maintenance.as_ref().and_then(|why| why.reason.as_ref());
                object.serialize_value(&reason)
            }
            Field::Reservation => {
                let locked = node.provision_state.is_busy() && !node.provision_state.is_waiting();
                object.serialize_value(&locked.then_some(self.look.conductor))
            }
            Field::InspectionStartedAt => {
                object.serialize_value(&Time::some(node.inspection_started_at))
            }
            Field::InspectionFinishedAt => {
                object.serialize_value(&Time::some(node.inspection_finished_at))
            }
            Field::CleanStep => object.serialize_value(&clean_step(node)),
            Field::DeployStep => object.serialize_value(&deploy_step(node)),
            Field::DriverInternalInfo
            | Field::ServiceStep
            | Field::RaidConfig
            | Field::TargetRaidConfig
            | Field::NetworkData => object.serialize_value(&nothing),
            Field::AllocationUuid => object.serialize_value(&node.allocation),
            Field::Fault | Field::Health | Field::SecureBoot => object.serialize_value(&NULL),
            Field::ConsoleEnabled => object.serialize_value(&node.console_enabled),
            Field::ResourceClass => object.serialize_value(&node.resource_class),
            Field::Traits => object.serialize_value(&node.traits),
            Field::ConductorGroup => object.serialize_value(&node.conductor_group),
            Field::Conductor => object.serialize_value(self.look.conductor),
            Field::AutomatedClean => object.serialize_value(&node.automated_clean),
            Field::Protected => object.serialize_value(&node.protected.is_some()),
            Field::ProtectedReason => object.serialize_value(&reason(&node.protected)),
            Field::Owner => object.serialize_value(&node.owner),
            Field::Lessee => object.serialize_value(&node.lessee),
            Field::Description => object.serialize_value(&node.description),
            Field::Retired => object.serialize_value(&node.retired.is_some()),
            Field::RetiredReason => object.serialize_value(&reason(&node.retired)),
            Field::BootMode => object.serialize_value(&node.boot_mode),
            Field::Shard => object.serialize_value(&node.shard),
            Field::ParentNode => object.serialize_value(&node.parent_node),
            Field::DisablePowerOff => object.serialize_value(&node.disable_power_off),
            Field::Interface(interface) => object.serialize_value(node.interface(interface)),
            Field::Links => object.serialize_value(&self.links("")),
            Field::Ports => object.serialize_value(&self.links("/ports")),
            Field::States => object.serialize_value(&self.links("/states")),
            Field::Portgroups => object.serialize_value(&self.links("/portgroups")),
            Field::Volume => object.serialize_value(&self.links("/volume")),
        }
    }

    fn links(&self, part: &'static str) -> Links<'_, baremetal_core::NodeUuid> {
        Links { origin: self.look.origin, collection: "nodes", id: self.node.id, part }
    }
}

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

/// A reason, unless it is empty.
fn reason(given: &Option<String>) -> Option<&str> {
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

fn clean_step(node: &Node) -> Step {
    let step = match agent_command(node) {
        Some(AgentCommand::EraseMetadata) => Some("erase_devices_metadata"),
        Some(AgentCommand::EraseDisks) => Some("erase_devices"),
        Some(AgentCommand::WriteImage | AgentCommand::SetNextBoot | AgentCommand::Sync) | None => {
            None
        }
    };
    Step { interface: step.map(|_| "deploy"), step }
}

fn deploy_step(node: &Node) -> Step {
    let step = match agent_command(node) {
        Some(AgentCommand::WriteImage) => Some("write_image"),
        Some(AgentCommand::SetNextBoot) => Some("prepare_instance_boot"),
        Some(AgentCommand::EraseMetadata | AgentCommand::EraseDisks | AgentCommand::Sync)
        | None => None,
    };
    Step { interface: step.map(|_| "deploy"), step }
}
