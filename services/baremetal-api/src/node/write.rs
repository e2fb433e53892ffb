//! Applies the values that clients send to a node. Creation and patches share one function for each field.

use baremetal_core::{Driver, Interface, Maintenance, Node, NodeName};
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Microversion, Operation, apply_patch};
use serde_json::{Map, Value};

use super::Field;
use crate::field::{FieldRow, Fields};
use crate::secret;
use crate::value::{boolean, object, text, uuid};

/// The fields to set, with their new values; null selects the default.
type FieldValues = Map<String, Value>;

/// Sets the fields of a new node from `body`.
pub(crate) fn create(
    node: &mut Node,
    body: FieldValues,
    asked: Microversion,
) -> Result<(), ApiError> {
    for name in body.keys() {
        Field::creatable(name, asked)?;
    }
    if !body.contains_key("driver") {
        return Err(ApiError::bad_field("driver", "is required"));
    }
    set_all(node, body)
}

/// Returns the node `before` with `patch` applied.
pub(crate) fn patched(
    before: &Node,
    patch: Vec<Operation>,
    reset_interfaces: bool,
    asked: Microversion,
) -> Result<Node, ApiError> {
    let mut document = FieldValues::new();
    for operation in &patch {
        let row = Field::changeable(operation.field()?, asked)?;
        if !document.contains_key(row.name) {
            document.insert(row.name.to_owned(), present(before, row.field));
        }
    }
    apply_patch(&mut document, patch)?;

    let mut after = before.clone();
    if reset_interfaces {
        if !document.contains_key("driver") {
            let problem = "can only be used together with a change of driver";
            return Err(ApiError::bad_field("reset_interfaces", problem));
        }
        after.interfaces.clear();
    }
    set_all(&mut after, document)?;
    Ok(after)
}

/// The present value of a field, secrets included. Only objects can be patched in part, so the value of every other field is returned as
/// null.
fn present(node: &Node, field: Field) -> Value {
    let objects = [
        (Field::DriverInfo, &node.driver_info),
        (Field::InstanceInfo, &node.instance_info),
        (Field::Properties, &node.properties),
        (Field::Extra, &node.extra),
    ];
    let found = objects.into_iter().find(|(other, _)| *other == field);
    found.map_or(Value::Null, |(_, object)| Value::Object(object.clone()))
}

/// Sets fields in the order of the table, then checks the fields that depend on each other.
fn set_all(node: &mut Node, mut wanted: FieldValues) -> Result<(), ApiError> {
    for row in Field::TABLE {
        if let Some(value) = wanted.remove(row.name) {
            set(node, row, value)?;
        }
    }
    for (interface, chosen) in &node.interfaces {
        let supported = node.driver.supported(*interface);
        if !supported.contains(&chosen.as_str()) {
            let chosen: String = chosen.chars().take(64).collect();
            let problem = format!(
                "driver {} does not support {chosen:?}; it supports {}",
                node.driver,
                supported.join(", ")
            );
            return Err(ApiError::bad_field(&format!("{}_interface", interface.as_str()), problem));
        }
    }
    Ok(())
}

fn set(node: &mut Node, row: &FieldRow<Field>, value: Value) -> Result<(), ApiError> {
    let name = row.name;
    match row.field {
        Field::Uuid => {
            node.id =
                uuid(name, value)?.map_or(node.id, baremetal_core::NodeUuid::from_untyped_uuid)
        }
        Field::Name => node.name = node_name(value)?,
        Field::Driver => node.driver = driver(value)?,
        Field::DriverInfo => replace(name, &mut node.driver_info, value)?,
        Field::InstanceInfo => replace(name, &mut node.instance_info, value)?,
        Field::Properties => node.properties = object(name, value)?,
        Field::Extra => node.extra = object(name, value)?,
        Field::InstanceUuid => {
            node.instance_uuid = uuid(name, value)?;
            node.allocation = node.allocation.filter(|_| node.instance_uuid.is_some());
        }
        Field::InstanceName => node.instance_name = text(name, value, 255)?,
        Field::ChassisUuid => {
            if uuid(name, value)?.is_some() {
                return Err(ApiError::bad_field(name, "chassis not found"));
            }
        }
        Field::Maintenance => {
            node.maintenance = match boolean(name, value)? {
                Some(true) => Some(node.maintenance.take().unwrap_or(Maintenance { reason: None })),
                Some(false) | None => None,
            }
        }
        Field::ResourceClass => node.resource_class = text(name, value, 80)?,
        Field::ConductorGroup => {
            let group = text(name, value, 255)?.unwrap_or_default().to_lowercase();
            let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if !group.chars().all(legal) {
                let problem = "may only contain letters, digits, '-', '_' and '.'";
                return Err(ApiError::bad_field(name, problem));
            }
            node.conductor_group = group;
        }
        Field::AutomatedClean => node.automated_clean = boolean(name, value)?,
        Field::Protected => switch(&mut node.protected, boolean(name, value)?),
        Field::ProtectedReason => give_reason(name, &mut node.protected, value)?,
        Field::Retired => switch(&mut node.retired, boolean(name, value)?),
        Field::RetiredReason => give_reason(name, &mut node.retired, value)?,
        Field::Owner => node.owner = text(name, value, 255)?,
        Field::Lessee => node.lessee = text(name, value, 255)?,
        Field::Description => node.description = text(name, value, 4096)?,
        Field::NetworkData => {
            if !object(name, value)?.is_empty() {
                let problem = "static network data is not supported";
                return Err(ApiError::bad_field(name, problem));
            }
        }
        Field::Shard => node.shard = text(name, value, 255)?,
        Field::ParentNode => {
            node.parent_node = uuid(name, value)?.map(baremetal_core::NodeUuid::from_untyped_uuid)
        }
        Field::DisablePowerOff => node.disable_power_off = boolean(name, value)?.unwrap_or(false),
        Field::Interface(interface) => choose(node, interface, text(name, value, 255)?),
        Field::CreatedAt
        | Field::UpdatedAt
        | Field::DriverInternalInfo
        | Field::PowerState
        | Field::TargetPowerState
        | Field::ProvisionState
        | Field::TargetProvisionState
        | Field::ProvisionUpdatedAt
        | Field::LastError
        | Field::MaintenanceReason
        | Field::ConsoleEnabled
        | Field::Reservation
        | Field::InspectionStartedAt
        | Field::InspectionFinishedAt
        | Field::CleanStep
        | Field::DeployStep
        | Field::ServiceStep
        | Field::RaidConfig
        | Field::TargetRaidConfig
        | Field::Traits
        | Field::Fault
        | Field::Health
        | Field::Conductor
        | Field::AllocationUuid
        | Field::BootMode
        | Field::SecureBoot
        | Field::Links
        | Field::Ports
        | Field::States
        | Field::Portgroups
        | Field::Volume => return Err(ApiError::bad_field(name, "cannot be changed")),
    }
    Ok(())
}

fn choose(node: &mut Node, interface: Interface, wanted: Option<String>) {
    match wanted {
        Some(wanted) => node.interfaces.insert(interface, wanted),
        None => node.interfaces.remove(&interface),
    };
}

/// Replaces an object that may contain secrets.
fn replace(name: &str, present: &mut Map<String, Value>, value: Value) -> Result<(), ApiError> {
    let mut wanted = object(name, value)?;
    secret::restore_masked(name, present, &mut wanted)?;
    *present = wanted;
    Ok(())
}

/// Sets a flag that is stored as an optional reason.
fn switch(reason: &mut Option<String>, wanted: Option<bool>) {
    match wanted {
        Some(true) => {
            reason.get_or_insert_default();
        }
        Some(false) | None => *reason = None,
    }
}

fn give_reason(name: &str, reason: &mut Option<String>, value: Value) -> Result<(), ApiError> {
    let wanted = text(name, value, 4096)?.unwrap_or_default();
    match reason {
        Some(given) => *given = wanted,
        None if wanted.is_empty() => {}
        None => {
            let what = name.trim_end_matches("_reason");
            return Err(ApiError::bad_field(name, format!("can only be set while {what} is true")));
        }
    }
    Ok(())
}

fn node_name(value: Value) -> Result<Option<NodeName>, ApiError> {
    match text("name", value, 255)? {
        // A node with this name could not be shown, since `/v1/nodes/detail` is the detailed list.
        Some(name) if name == "detail" => {
            Err(ApiError::bad_field("name", "\"detail\" is reserved"))
        }
        Some(name) => name.parse().map(Some).map_err(|why| ApiError::bad_field("name", why)),
        None => Ok(None),
    }
}

fn driver(value: Value) -> Result<Driver, ApiError> {
    let name = text("driver", value, 255)?;
    let name = name.ok_or_else(|| ApiError::bad_field("driver", "is required"))?;
    name.parse().map_err(|why| ApiError::bad_field("driver", why))
}
