//! The recordsets of a zone.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::zone::{self, invalid, is_name};
use super::{list, quota, shown, whole_name};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Kind, Object};
use crate::world::{Event, World, fine_stamp};

const TYPES: [&str; 11] =
    ["A", "AAAA", "CNAME", "MX", "SRV", "TXT", "SPF", "NS", "PTR", "SSHFP", "CAA"];
/// The most records in a recordset.
const MOST_RECORDS: i64 = 20;

pub(super) fn answer(
    world: &mut World,
    asked: &ApiRequest,
    zone_id: &str,
    path: &[&str],
) -> AnswerResult {
    let zone = zone::find(world, asked, zone_id)?.clone();
    let find = |world: &World, id: &str| {
        let found =
            world.store.get(Kind::Recordset, id).filter(|one| one.text("zone_id") == zone_id);
        found
            .cloned()
            .ok_or_else(|| ApiError::new(404, "recordset_not_found", "Could not find RecordSet"))
    };
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let name = whole_name(asked);
            let mut wanted = vec![vec![("zone_id", zone_id)]];
            wanted.extend(name.as_deref().map(|name| vec![("name", name)]));
            let mut all = world.store.narrowed(Kind::Recordset, &wanted);
            all.retain(|one| one.text("zone_id") == zone_id && world.listed(Kind::Recordset, one));
            list(world, asked, "recordsets", all)
        }
        ("POST", []) => create(world, asked, &zone),
        ("GET", [id]) => Ok(Answer::ok(shown(asked, &find(world, id)?))),
        ("PUT", [id]) => {
            let old = find(world, id)?;
            guard(&old)?;
            let given = asked.json()?;
            for key in given.as_object().into_iter().flat_map(|given| given.keys()) {
                if !["records", "ttl", "description"].contains(&key.as_str()) {
                    return Err(invalid(key, "is read-only"));
                }
            }
            check_ttl(&given["ttl"])?;
            if !given["records"].is_null() {
                let records = records(&given)?;
                check_records(world, &old.project, old.text("type"), records)?;
            }
            if let Some(one) = world.store.get_mut(Kind::Recordset, id) {
                for (key, value) in given.as_object().into_iter().flatten() {
                    one.set(key, value.clone());
                }
                one.set("status", "PENDING");
                one.set("action", "UPDATE");
                one.set("updated_at", fine_stamp());
            }
            zone::touch(world, zone_id);
            zone::settle_recordset(world, id);
            Ok(Answer::json(202, shown(asked, &find(world, id)?)))
        }
        ("DELETE", [id]) => {
            guard(&find(world, id)?)?;
            if let Some(one) = world.store.get_mut(Kind::Recordset, id) {
                one.set("status", "PENDING");
                one.set("action", "DELETE");
            }
            zone::touch(world, zone_id);
            let usual = world.settings.times.recordset;
            world.later(usual, Event::Gone(Kind::Recordset, (*id).to_owned()));
            Ok(Answer::json(202, shown(asked, &find(world, id)?)))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Refuses to change the recordsets that Designate manages itself.
fn guard(one: &Object) -> Result<(), ApiError> {
    if one.hidden.contains_key("managed") {
        return Err(ApiError::new(400, "bad_request", "Managed records may not be updated"));
    }
    Ok(())
}

fn create(world: &mut World, asked: &ApiRequest, zone: &Object) -> AnswerResult {
    let given = asked.json()?;
    let text = |key: &str| given[key].as_str().unwrap_or_default();
    let name = text("name").to_ascii_lowercase();
    let zone_name = zone.text("name");
    if !is_name(&name) {
        return Err(invalid("name", &format!("'{name}' is not a 'hostname'")));
    }
    if !TYPES.contains(&text("type")) {
        return Err(invalid("type", &format!("'{}' is not one of {TYPES:?}", text("type"))));
    }
    if name != zone_name && !name.ends_with(&format!(".{zone_name}")) {
        return Err(ApiError::new(
            400,
            "invalid_recordset_location",
            "RecordSet is not contained within it's parent zone",
        ));
    }
    check_ttl(&given["ttl"])?;
    let records = records(&given)?;
    check_records(world, &zone.project, text("type"), records)?;
    let all = world.store.with_text(Kind::Recordset, "name", &name);
    for other in all.filter(|one| one.text("zone_id") == zone.id) {
        if other.text("type") == text("type") {
            return Err(ApiError::new(409, "duplicate_recordset", "Duplicate RecordSet"));
        }
        if text("type") == "CNAME" || other.text("type") == "CNAME" {
            return Err(ApiError::new(
                400,
                "invalid_recordset_location",
                "CNAME recordsets may not share a name with any other records",
            ));
        }
    }
    let count = world.store.how_many(Kind::Recordset, "zone_id", &zone.id);
    quota::check(world, &zone.project, "zone_recordsets", count)?;
    let body = json!({
        "name": name, "type": text("type"), "records": records, "ttl": given["ttl"], "description": given["description"], "status": "PENDING",
        "action": "CREATE", "zone_id": zone.id, "zone_name": zone_name, "project_id": zone.project, "version": 1, "created_at": fine_stamp(), "updated_at": null,
    });
    let id = world.add(Kind::Recordset, &zone.project, body);
    zone::touch(world, &zone.id);
    zone::settle_recordset(world, &id);
    let one = world.store.get(Kind::Recordset, &id).ok_or_else(ApiError::unknown_path)?;
    Ok(Answer::json(202, shown(asked, one)))
}

fn records(given: &Value) -> Result<&[Value], ApiError> {
    let records = given["records"].as_array().filter(|records| !records.is_empty());
    let records = records.ok_or_else(|| invalid("records", "'records' is a required property"))?;
    Ok(records)
}

/// designate, objects/recordset.py: from 0 to 2^31 - 1, or none.
fn check_ttl(ttl: &Value) -> Result<(), ApiError> {
    let is_right = ttl.is_null()
        || ttl.as_i64().is_some_and(|ttl| i32::try_from(ttl).is_ok_and(|ttl| ttl >= 0));
    if is_right { Ok(()) } else { Err(invalid("ttl", &format!("'{ttl}' is not a 'ttl'"))) }
}

fn check_records(
    world: &World,
    project: &str,
    kind: &str,
    records: &[Value],
) -> Result<(), ApiError> {
    for record in records {
        let text = record.as_str().unwrap_or_default();
        let right = match kind {
            "A" => text.parse::<Ipv4Addr>().is_ok(),
            "AAAA" => text.parse::<Ipv6Addr>().is_ok(),
            "CNAME" | "NS" | "PTR" => is_name(text),
            _ => !text.is_empty(),
        };
        if !right {
            return Err(invalid(
                "records",
                &format!("'{text}' is not a valid record of type {kind}"),
            ));
        }
    }
    let limit = world.quota(project, "recordset_records", MOST_RECORDS);
    if usize::try_from(limit).is_ok_and(|limit| records.len() > limit) {
        return Err(ApiError::new(413, "over_quota", "Quota exceeded for recordset_records."));
    }
    Ok(())
}
