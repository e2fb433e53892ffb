//! Parses the values of a node's fields that have rules of their own.

use baremetal_core::{Driver, Interface, Node, UnsupportedInterface, ramdisk_network};
use openstack_api::ApiError;
use serde_json::{Map, Value};

use crate::value::{object, text};

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
