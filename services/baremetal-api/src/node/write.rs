//! Parses the values of a node's fields that have rules of their own.

use baremetal_core::{Driver, Interface, Node, NodeName, UnsupportedInterface};
use openstack_api::ApiError;
use serde_json::Value;

use crate::value::{boolean, text};

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
    match text("name", value, 255)? {
        // A node with this name could not be shown, since `/v1/nodes/detail` is the detailed list.
        Some(name) if name == "detail" => {
            Err(ApiError::bad_field("name", "\"detail\" is reserved"))
        }
        Some(name) => name.parse().map(Some).map_err(|why| ApiError::bad_field("name", why)),
        None => Ok(None),
    }
}

pub(super) fn driver(value: Value) -> Result<Driver, ApiError> {
    let name = text("driver", value, 255)?;
    let name = name.ok_or_else(|| ApiError::bad_field("driver", "is required"))?;
    name.parse().map_err(|why| ApiError::bad_field("driver", why))
}

pub(super) fn conductor_group(name: &str, value: Value) -> Result<String, ApiError> {
    let group = text(name, value, 255)?.unwrap_or_default().to_lowercase();
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if group.chars().all(legal) {
        return Ok(group);
    }
    Err(ApiError::bad_field(name, "may only contain letters, digits, '-', '_' and '.'"))
}
