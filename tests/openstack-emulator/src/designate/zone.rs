//! The zones of Designate.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{own, quota, shown};
use crate::misbehave::End;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Kind, Object};
use crate::world::{Event, World, fine_stamp};

/// The name server of all zones.
pub(super) const NAME_SERVER: &str = "ns1.emulated.example.";

pub(super) fn find<'w>(
    world: &'w World,
    asked: &ApiRequest,
    id: &str,
) -> Result<&'w Object, ApiError> {
    let zone =
        world.store.get(Kind::Zone, id).filter(|zone| own(asked, zone) || asked.caller.is_admin());
    zone.ok_or_else(|| ApiError::new(404, "zone_not_found", "Could not find Zone"))
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

pub(super) fn invalid(path: &str, message: &str) -> ApiError {
    ApiError::new(
        400,
        "invalid_object",
        format!("Provided object does not match schema: {path}: {message}"),
    )
}

pub(super) fn create(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    let given = asked.json()?;
    let text = |key: &str| given[key].as_str().unwrap_or_default().to_owned();
    let name = text("name").to_ascii_lowercase();
    if !is_name(&name) || name.matches('.').count() < 2 {
        return Err(invalid("name", &format!("'{name}' is not a 'zonename'")));
    }
    let kind = if given["type"].is_null() { "PRIMARY".to_owned() } else { text("type") };
    if kind == "PRIMARY" && !text("email").contains('@') {
        return Err(invalid("email", &format!("'{}' is not a 'email'", text("email"))));
    }
    if given["ttl"].as_i64().is_some_and(|ttl| ttl < 1) {
        return Err(invalid("ttl", "must be at least 1"));
    }
    let sudo = asked.header("x-auth-sudo-project-id").filter(|_| asked.caller.is_admin());
    let project = sudo.unwrap_or(&asked.caller.project).to_owned();
    for zone in world.store.all(Kind::Zone) {
        let other = zone.text("name");
        if other == name {
            return Err(ApiError::new(409, "duplicate_zone", "Duplicate Zone"));
        }
        if zone.project != project && name.ends_with(&format!(".{other}")) {
            return Err(ApiError::new(
                403,
                "forbidden",
                "Unable to create subzone in another tenants zone",
            ));
        }
        if zone.project != project && other.ends_with(&format!(".{name}")) {
            return Err(ApiError::new(
                403,
                "forbidden",
                "Unable to create zone because another tenant owns a subzone of the zone",
            ));
        }
    }
    quota::check(world, &project, "zones", world.store.count(Kind::Zone, &project))?;
    let serial = Timestamp::now().as_second();
    let ttl = given["ttl"].as_i64().unwrap_or(3600);
    let email = text("email");
    let body = json!({
        "name": name, "email": email, "ttl": ttl, "description": given["description"], "type": kind, "status": "PENDING", "action": "CREATE",
        "serial": serial, "version": 1, "pool_id": "794ccc2c-d751-44fe-b57f-8894c9f5c842", "project_id": project, "attributes": given["attributes"].as_object().cloned().unwrap_or_default(),
        "masters": given["masters"].as_array().cloned().unwrap_or_default(), "transferred_at": null, "created_at": fine_stamp(), "updated_at": null, "shared": false,
    });
    let id = world.add(Kind::Zone, &project, body);
    let mail = email.replace('@', ".");
    for (kind, records) in [
        ("SOA", format!("{NAME_SERVER} {mail}. {serial} 3600 600 86400 3600")),
        ("NS", NAME_SERVER.to_owned()),
    ] {
        let body = json!({
            "name": name, "type": kind, "records": [records], "ttl": null, "description": null, "status": "ACTIVE", "action": "NONE", "zone_id": id,
            "zone_name": name, "project_id": project, "version": 1, "created_at": fine_stamp(), "updated_at": null,
        });
        // Managed recordsets do not count towards the quota.
        let mut object = world.object(&project, body);
        object.keep("managed", true);
        world.store.insert(Kind::Recordset, object);
    }
    let usual = world.settings.times.zone;
    world.fated(Kind::Zone, &id, usual, rested("ACTIVE"), rested("ERROR"));
    let zone = world.store.get(Kind::Zone, &id).ok_or_else(ApiError::unknown_path)?;
    Ok(Answer::json(202, shown(asked, zone)))
}

/// The fields of a zone or recordset after the name servers have taken it.
pub(super) fn rested(status: &str) -> Vec<(&'static str, Value)> {
    vec![("status", json!(status)), ("action", json!("NONE"))]
}

/// Raises the serial of a zone and sets the zone to PENDING, because one of its recordsets changed.
pub(super) fn touch(world: &mut World, id: &str) {
    let usual = world.settings.times.recordset;
    if let Some(zone) = world.store.get_mut(Kind::Zone, id) {
        let serial = zone.number("serial").max(Timestamp::now().as_second() - 1) + 1;
        zone.set("serial", serial);
        zone.set("updated_at", fine_stamp());
        if zone.text("status") == "ACTIVE" {
            zone.set("status", "PENDING");
            zone.set("action", "UPDATE");
            world.later(usual, Event::set(Kind::Zone, id, rested("ACTIVE")));
        }
    }
}

pub(super) fn update(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    find(world, asked, id)?;
    let given = asked.json()?;
    if let Some(zone) = world.store.get_mut(Kind::Zone, id) {
        for (key, value) in given.as_object().into_iter().flatten() {
            if !["email", "ttl", "description", "masters"].contains(&key.as_str()) {
                return Err(invalid(key, "is read-only"));
            }
            zone.set(key, value.clone());
        }
    }
    touch(world, id);
    Ok(Answer::json(202, shown(asked, find(world, asked, id)?)))
}

pub(super) fn delete(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let zone = find(world, asked, id)?;
    let (name, project) = (zone.text("name").to_owned(), zone.project.clone());
    let below = world.store.find(Kind::Zone, |other| {
        other.project == project && other.text("name").ends_with(&format!(".{name}"))
    });
    if below.is_some() {
        return Err(ApiError::new(
            400,
            "zone_has_sub_zone",
            "Please delete any subzones before deleting this zone",
        ));
    }
    if let Some(zone) = world.store.get_mut(Kind::Zone, id) {
        zone.set("status", "PENDING");
        zone.set("action", "DELETE");
    }
    let usual = world.settings.times.zone;
    world.later(usual, Event::Gone(Kind::Zone, id.to_owned()));
    Ok(Answer::json(202, shown(asked, find(world, asked, id)?)))
}

/// Removes a zone and its recordsets.
pub(crate) fn gone(world: &mut World, id: &str) {
    for recordset in world.store.ids(Kind::Recordset, "zone_id", id) {
        world.store.remove(Kind::Recordset, &recordset);
    }
    world.store.remove(Kind::Zone, id);
}

/// Schedules the end of a new recordset's PENDING status.
pub(super) fn settle_recordset(world: &mut World, id: &str) {
    let usual = world.settings.times.recordset;
    let name = world
        .store
        .get(Kind::Recordset, id)
        .map(|one| one.text("name").to_owned())
        .unwrap_or_default();
    let (time, status) = match world.misbehaviour.on_create(Kind::Recordset, &name) {
        Some(End::Stuck) => return,
        Some(End::Error(_)) => (usual, "ERROR"),
        Some(End::Takes(time)) => (time, "ACTIVE"),
        Some(End::NeverBoots) | None => (usual, "ACTIVE"),
    };
    world.later(time, Event::set(Kind::Recordset, id, rested(status)));
}
