//! The document of a rack, as the store keeps it.

use baremetal_core::Rack;
use openstack_api::ApiError;
use serde_json::Value;

use crate::error::Result;

pub(super) fn write(rack: &Rack) -> Result<Value> {
    let unwritable = |why| ApiError::broken(format!("cannot serialize the rack: {why}"));
    Ok(serde_json::to_value(rack).map_err(unwritable)?)
}
