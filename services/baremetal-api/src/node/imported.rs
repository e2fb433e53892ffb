//! Parses the values of a node's fields that only an import writes, in the words of Ironic.

use baremetal_core::{Failure, Node, Reason, State};
use hardware::{BootMode, PowerState};
use openstack_api::ApiError;
use serde_json::Value;

use crate::value::text;

/// The longest error of another service in bytes.
const LONGEST_ERROR: usize = 1 << 16;

/// The last power state that the other service saw. Ironic shows `error` when the BMC does not answer: the state is unknown.
pub(super) fn power_state(name: &str, value: Value) -> Result<Option<PowerState>, ApiError> {
    let Some(word) = text(name, value, 64)? else { return Ok(None) };
    match (word.as_str(), PowerState::find(&word)) {
        ("error", _) => Ok(None),
        (_, Some(known)) => Ok(Some(known)),
        (_, None) => Err(ApiError::bad_field(name, "must be \"power on\", \"power off\" or null")),
    }
}

pub(super) fn provision_state(name: &str, value: Value) -> Result<State, ApiError> {
    let word = text(name, value, 255)?.ok_or_else(|| ApiError::bad_field(name, "is required"))?;
    word.parse().map_err(|why| ApiError::bad_field(name, why))
}

/// The last error of the other service.
pub(super) fn failure(name: &str, value: Value) -> Result<Option<Failure>, ApiError> {
    let cause = text(name, value, LONGEST_ERROR)?;
    Ok(cause.map(|cause| Failure::new(Reason::BeforeImport, cause.trim_end_matches('.'))))
}

/// The reason of maintenance. The field `maintenance` comes before in the table.
pub(super) fn maintenance_reason(
    node: &mut Node,
    name: &'static str,
    value: Value,
) -> Result<(), ApiError> {
    let reason = text(name, value, 4096)?;
    if let Some(maintenance) = &mut node.maintenance {
        maintenance.reason = reason;
    }
    Ok(())
}

/// The fault. The field `maintenance` comes before in the table.
pub(super) fn fault(node: &mut Node, name: &'static str, value: Value) -> Result<(), ApiError> {
    let fault = text(name, value, 64)?.map(|word| word.parse()).transpose();
    let fault = fault.map_err(|why: String| ApiError::bad_field(name, why))?;
    if let Some(maintenance) = &mut node.maintenance {
        maintenance.fault = fault;
    }
    Ok(())
}

pub(super) fn boot_mode(name: &str, value: Value) -> Result<Option<BootMode>, ApiError> {
    let Some(word) = text(name, value, 64)? else { return Ok(None) };
    BootMode::find(&word)
        .map(Some)
        .ok_or_else(|| ApiError::bad_field(name, "must be bios, uefi or null"))
}
