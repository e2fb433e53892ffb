//! Parses the values of a node's fields that have rules of their own.

use baremetal_core::{
    Driver, Interface, Node, NodeName, RESERVED_NODE_NAMES, UnsupportedInterface,
    parse_conductor_group, ramdisk_network,
};
use openstack_api::ApiError;
use serde_json::{Map, Value};

use crate::value::{boolean, object, text};

/// Chooses the implementation of an interface; null selects the default of the driver.
pub(super) fn interface(
    node: &mut Node,
    interface: Interface,
    name: &str,
    new: Value,
) -> Result<(), ApiError> {
    let Some(wanted) = text(name, new, 255)? else {
        node.interfaces.reset(interface);
        return Ok(());
    };
    if node.interfaces.choose(interface, &wanted) {
        return Ok(());
    }
    let raw = wanted.chars().take(64).collect();
    let refused = UnsupportedInterface { driver: node.driver, interface, raw };
    Err(ApiError::bad_request(refused.to_string()))
}

/// Parses the network that the ramdisk configures.
pub(super) fn network_data(name: &str, new: Value) -> Result<Map<String, Value>, ApiError> {
    let document = object(name, new)?;
    match ramdisk_network(&document) {
        Ok(_) => Ok(document),
        Err(why) => Err(ApiError::bad_field(name, why)),
    }
}

/// Sets a flag that is stored as an optional reason.
pub(super) fn switch(
    reason: &mut Option<String>,
    name: &str,
    wanted: Value,
) -> Result<(), ApiError> {
    match boolean(name, wanted)? {
        Some(true) => {
            reason.get_or_insert_default();
        }
        Some(false) | None => *reason = None,
    }
    Ok(())
}

/// Sets the reason of a flag that is set.
pub(super) fn reason(
    reason: &mut Option<String>,
    name: &str,
    value: Value,
) -> Result<(), ApiError> {
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

pub(super) fn name(value: Value) -> Result<Option<NodeName>, ApiError> {
    if value == "" {
        return Err(ApiError::bad_field("name", "must not be empty"));
    }
    match text("name", value, 255)? {
        Some(name) if RESERVED_NODE_NAMES.contains(&name.as_str()) => {
            Err(ApiError::bad_field("name", format!("{name:?} is reserved")))
        }
        Some(name) => name.parse().map(Some).map_err(|why| ApiError::bad_field("name", why)),
        None => Ok(None),
    }
}

/// The name of an instance, which is not empty.
pub(super) fn instance_name(name: &str, value: Value) -> Result<Option<String>, ApiError> {
    match value == "" {
        true => Err(ApiError::bad_field(name, "must not be empty")),
        false => text(name, value, 255),
    }
}

pub(super) fn driver(value: Value) -> Result<Driver, ApiError> {
    let name = text("driver", value, 255)?;
    let name = name.ok_or_else(|| ApiError::bad_field("driver", "is required"))?;
    name.parse().map_err(|why| ApiError::bad_field("driver", why))
}

pub(super) fn conductor_group(name: &str, value: Value) -> Result<String, ApiError> {
    let group = text(name, value, 255)?.unwrap_or_default();
    parse_conductor_group(&group).map_err(|why| ApiError::bad_field(name, why))
}
