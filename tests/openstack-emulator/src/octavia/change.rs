//! Changes of load balancers: one at a time, and unknown fields are refused.

use serde_json::Value;

use super::types::TYPES;
use crate::handlers::Fields;
use crate::object::Kind;
use crate::problem::ApiError;
use crate::resource::{ResourceType, Set};
use crate::world::{Event, World, bare_stamp};

/// Refuses a change while another one is in progress. Otherwise sets the load balancer to PENDING_UPDATE for this time.
pub(super) fn begin(world: &mut World, balancer: &str, time: u32) -> Result<(), ApiError> {
    let object = world.store.get_mut(Kind::LoadBalancer, balancer);
    let object = object.ok_or_else(|| TYPES[0].missing(balancer))?;
    if object.text("provisioning_status") != "ACTIVE" {
        return Err(immutable(balancer));
    }
    object.set("provisioning_status", "PENDING_UPDATE");
    object.set("updated_at", bare_stamp());
    world.later(time, Event::Settled(balancer.to_owned()));
    Ok(())
}

pub(super) fn immutable(balancer: &str) -> ApiError {
    ApiError::conflict(format!("Load Balancer {balancer} is immutable and cannot be updated."))
}

/// Refuses fields that the request may not set.
pub(super) fn refuse_unknown(
    of: &ResourceType,
    given: &Fields,
    request: Set,
) -> Result<(), ApiError> {
    let Some(key) = of.unknown(given, request).first().copied() else { return Ok(()) };
    Err(ApiError::bad(format!(
        "Invalid input for field/attribute {}. Value: '{{{key:?}: ...}}'. Unknown attribute: {key}",
        of.single
    )))
}

/// Refuses a create that lacks a mandatory field or makes a wrong choice.
pub(super) fn refuse_incomplete(of: &ResourceType, given: &Fields) -> Result<(), ApiError> {
    let invalid = |field: &str, why: String| {
        Err(ApiError::bad(format!("Invalid input for field/attribute {field}. {why}")))
    };
    if let Some((field, value, choice)) = of.wrong_choice(given) {
        let choice = choice.join(", ");
        return invalid(field, format!("Value: '{value}'. Value should be one of: {choice}"));
    }
    match of.lacking(given) {
        Some(field) => invalid(field, "Mandatory field missing.".to_owned()),
        None => Ok(()),
    }
}

/// The text of a given field. Empty if the field is missing.
pub(super) fn text<'g>(given: &'g Fields, field: &str) -> &'g str {
    given.get(field).and_then(Value::as_str).unwrap_or_default()
}
