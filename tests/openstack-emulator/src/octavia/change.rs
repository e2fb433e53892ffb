//! Changes of load balancers: one at a time, and unknown fields are refused.

use super::refuse;
use super::types::TYPES;
use crate::object::{Fields, Kind};
use crate::request::ApiResult;
use crate::resource::{ResourceType, Set};
use crate::world::{Event, World, bare_stamp};

/// Refuses a change while another one is in progress. Otherwise sets the load balancer to PENDING_UPDATE for this time.
pub(super) fn begin(world: &mut World, balancer: &str, time: u32) -> ApiResult {
    let object = world.store.get_mut(Kind::LoadBalancer, balancer);
    let object = object.ok_or_else(|| TYPES[0].missing(balancer))?;
    if object.text("provisioning_status") != "ACTIVE" {
        return Err(refuse::immutable(balancer));
    }
    object.set("provisioning_status", "PENDING_UPDATE");
    object.set("updated_at", bare_stamp());
    world.later(time, Event::Settled(balancer.to_owned()));
    Ok(())
}

/// Refuses fields that the request may not set.
pub(super) fn refuse_unknown(of: &ResourceType, given: &Fields, request: Set) -> ApiResult {
    match of.unknown(given, request).first() {
        Some(key) => Err(refuse::unknown(of.single, key)),
        None => Ok(()),
    }
}

/// Refuses a create that lacks a mandatory field or makes a wrong choice.
pub(super) fn refuse_incomplete(of: &ResourceType, given: &Fields) -> ApiResult {
    if let Some((field, value, choice)) = of.wrong_choice(given) {
        return Err(refuse::wrong_choice(field, value, choice.join(", ")));
    }
    match of.lacking(given) {
        Some(field) => Err(refuse::lacking(field)),
        None => Ok(()),
    }
}
