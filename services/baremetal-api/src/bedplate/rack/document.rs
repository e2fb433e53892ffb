//! The document of a rack, as the store keeps it.

use baremetal_core::Rack;
use openstack_api::ApiError;
use serde_json::Value;

use crate::error::Error;

/// Reads the document of a rack. Fields that an older program did not write get their defaults.
pub(super) fn read(document: Value) -> Rack {
    serde_json::from_value(document).unwrap_or(Rack { description: None, goal: None })
}

pub(super) fn write(rack: &Rack) -> Result<Value, Error> {
    let unwritable = |why| ApiError::broken(format!("cannot serialize the rack: {why}"));
    Ok(serde_json::to_value(rack).map_err(unwritable)?)
}
