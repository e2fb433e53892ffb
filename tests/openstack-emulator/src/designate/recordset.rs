//! The recordsets of a zone.

use serde_json::json;

use super::quota;
use super::state::{change, check_records, check_ttl, invalid, is_name, pend, settle, touch};
use super::types::RECORDSET;
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{ApiError, ApiResult};
use crate::world::{Event, World, fine_stamp};

pub(super) fn create(world: &mut World, zone: &Object, given: &Fields) -> ApiResult<String> {
    let (name, zone_name) = (given.text("name").to_ascii_lowercase(), zone.text("name"));
    let kind = given.text("type");
    if !is_name(&name) {
        return Err(invalid("name", &format!("'{name}' is not a 'hostname'")));
    }
    if let Some((field, value, choice)) = RECORDSET.wrong_choice(given) {
        return Err(invalid(field, &format!("'{value}' is not one of {choice:?}")));
    }
    let misplaced = |why: &str| Err(ApiError::new(400, "invalid_recordset_location", why));
    if name != zone_name && !name.ends_with(&format!(".{zone_name}")) {
        return misplaced("RecordSet is not contained within it's parent zone");
    }
    check_ttl(given)?;
    check_records(world, &zone.project, kind, given.get("records"))?;
    let all = world.store.with_text(Kind::Recordset, "name", &name);
    for other in all.filter(|one| one.text("zone_id") == zone.id) {
        if other.text("type") == kind {
            return Err(ApiError::new(409, "duplicate_recordset", "Duplicate RecordSet"));
        }
        if [kind, other.text("type")].contains(&"CNAME") {
            return misplaced("CNAME recordsets may not share a name with any other records");
        }
    }
    let count = world.store.how_many(Kind::Recordset, "zone_id", &zone.id);
    quota::check(world, &zone.project, "zone_recordsets", count, 1)?;
    let mut body = RECORDSET.new_body(given);
    for (key, value) in [
        ("name", name.as_str()),
        ("zone_id", &zone.id),
        ("zone_name", zone_name),
        ("project_id", &zone.project),
        ("created_at", &fine_stamp()),
    ] {
        body[key] = json!(value);
    }
    let id = world.add(Kind::Recordset, &zone.project, body);
    begin(world, &zone.id, &id);
    Ok(id)
}

/// Begins the time until the name servers know a recordset.
fn begin(world: &mut World, zone: &str, id: &str) {
    touch(world, zone);
    settle(world, Kind::Recordset, id, world.settings.times.recordset);
}

/// The recordset and the id of its zone. Refuses the recordsets that Designate manages itself.
fn changeable(world: &World, id: &str) -> ApiResult<(Object, String)> {
    let one = world.store.get(Kind::Recordset, id).ok_or_else(|| RECORDSET.missing(id))?;
    if one.hidden.contains_key("managed") {
        return Err(ApiError::new(400, "bad_request", "Managed records may not be updated"));
    }
    Ok((one.clone(), one.text("zone_id").to_owned()))
}

pub(super) fn update(world: &mut World, id: &str, given: &Fields) -> ApiResult {
    let (old, zone) = changeable(world, id)?;
    check_ttl(given)?;
    if let Some(records) = given.get("records").filter(|records| !records.is_null()) {
        check_records(world, &old.project, old.text("type"), Some(records))?;
    }
    change(world, &RECORDSET, id, given)?;
    pend(world, Kind::Recordset, id, "UPDATE");
    begin(world, &zone, id);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str) -> ApiResult {
    let (_, zone) = changeable(world, id)?;
    pend(world, Kind::Recordset, id, "DELETE");
    touch(world, &zone);
    let usual = world.settings.times.recordset;
    world.later(usual, Event::Gone(Kind::Recordset, id.to_owned()));
    Ok(())
}
