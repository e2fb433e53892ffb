//! The states of zones and recordsets, and the rules for their fields.

use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::quota;
use crate::object::{Fields, Kind};
use crate::request::{ApiError, ApiResult};
use crate::resource::{ResourceType, Set};
use crate::world::{Event, World, fine_stamp};

pub(super) fn invalid(path: &str, message: &str) -> ApiError {
    let message = format!("Provided object does not match schema: {path}: {message}");
    ApiError::new(400, "invalid_object", message)
}

/// Whether a text is a host name with a final dot.
pub(super) fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || "-_*".contains(c))
    };
    text.len() <= 255 && text.strip_suffix('.').is_some_and(|text| text.split('.').all(label))
}

/// designate, objects/recordset.py: from 0 to 2^31 - 1, or none.
pub(super) fn check_ttl(given: &Fields) -> ApiResult {
    let Some(ttl) = given.get("ttl").filter(|ttl| !ttl.is_null()) else { return Ok(()) };
    let is_right = ttl.as_i64().is_some_and(|ttl| i32::try_from(ttl).is_ok_and(|ttl| ttl >= 0));
    if is_right { Ok(()) } else { Err(invalid("ttl", &format!("'{ttl}' is not a 'ttl'"))) }
}

/// Refuses records that are missing, too many, or wrong for their type.
pub(super) fn check_records(
    world: &World,
    project: &str,
    kind: &str,
    records: Option<&Value>,
) -> ApiResult {
    let records = records.and_then(Value::as_array).filter(|records| !records.is_empty());
    let records = records.ok_or_else(|| invalid("records", "'records' is a required property"))?;
    for record in records {
        let text = record.as_str().unwrap_or_default();
        let right = match kind {
            "A" => text.parse::<Ipv4Addr>().is_ok(),
            "AAAA" => text.parse::<Ipv6Addr>().is_ok(),
            "CNAME" | "NS" | "PTR" => is_name(text),
            _ => !text.is_empty(),
        };
        if !right {
            let message = format!("'{text}' is not a valid record of type {kind}");
            return Err(invalid("records", &message));
        }
    }
    quota::check(world, project, "recordset_records", 0, records.len())
}

/// Changes an object for a request. Refuses fields that the request may not set.
pub(super) fn change(world: &mut World, of: &ResourceType, id: &str, given: &Fields) -> ApiResult {
    if let Some(key) = of.unknown(given, Set::Later).first() {
        return Err(invalid(key, "is read-only"));
    }
    if let Some(one) = world.store.get_mut(of.kind, id) {
        one.body.extend(given.clone());
    }
    Ok(())
}

/// The fields of a zone or recordset after the name servers have taken it.
fn rested(status: &str) -> Vec<(&'static str, Value)> {
    vec![("status", json!(status)), ("action", json!("NONE"))]
}

/// Sets an object to PENDING for this action.
pub(super) fn pend(world: &mut World, kind: Kind, id: &str, action: &str) {
    if let Some(one) = world.store.get_mut(kind, id) {
        one.set("status", "PENDING");
        one.set("action", action);
        if action == "UPDATE" {
            one.set("updated_at", fine_stamp());
        }
    }
}

/// Schedules the end of an object's PENDING status, in `usual` milliseconds unless its fate is another.
pub(super) fn settle(world: &mut World, kind: Kind, id: &str, usual: u32) {
    world.fated(kind, id, usual, rested("ACTIVE"), rested("ERROR"));
}

/// Raises the serial of a zone and sets the zone to PENDING, because one of its recordsets changed.
pub(super) fn touch(world: &mut World, id: &str) {
    let usual = world.settings.times.recordset;
    let Some(zone) = world.store.get_mut(Kind::Zone, id) else { return };
    let serial = zone.number("serial").max(Timestamp::now().as_second() - 1) + 1;
    zone.set("serial", serial);
    zone.set("updated_at", fine_stamp());
    if zone.text("status") == "ACTIVE" {
        pend(world, Kind::Zone, id, "UPDATE");
        world.later(usual, Event::set(Kind::Zone, id, rested("ACTIVE")));
    }
}
