//! The zones of Designate.

use jiff::Timestamp;
use serde_json::json;

use super::quota;
use super::state::{change, invalid, is_name, pend, settle, touch};
use super::types::{RECORDSET, ZONE};
use crate::object::{Fields, Kind, ReadFields};
use crate::request::{ApiError, ApiRequest, ApiResult};
use crate::world::{Event, World, fine_stamp};

/// The name server of all zones.
pub(super) const NAME_SERVER: &str = "ns1.emulated.example.";

pub(super) fn create(world: &mut World, asked: &ApiRequest, given: &Fields) -> ApiResult<String> {
    let name = given.text("name").to_ascii_lowercase();
    if !is_name(&name) || name.matches('.').count() < 2 {
        return Err(invalid("name", &format!("'{name}' is not a 'zonename'")));
    }
    let mut body = ZONE.new_body(given);
    let email = given.text("email");
    if body["type"] == "PRIMARY" && !email.contains('@') {
        return Err(invalid("email", &format!("'{email}' is not a 'email'")));
    }
    if body["ttl"].as_i64().is_some_and(|ttl| ttl < 1) {
        return Err(invalid("ttl", "must be at least 1"));
    }
    let sudo = asked.header("x-auth-sudo-project-id").filter(|_| asked.caller.is_admin());
    let project = sudo.unwrap_or(&asked.caller.project);
    for zone in world.store.all(Kind::Zone) {
        let (other, is_foreign) = (zone.text("name"), zone.project != project);
        if other == name {
            return Err(ApiError::new(409, "duplicate_zone", "Duplicate Zone"));
        }
        if is_foreign && name.ends_with(&format!(".{other}")) {
            return Err(ApiError::forbidden("Unable to create subzone in another tenants zone"));
        }
        if is_foreign && other.ends_with(&format!(".{name}")) {
            let message = "Unable to create zone because another tenant owns a subzone of the zone";
            return Err(ApiError::forbidden(message));
        }
    }
    quota::check(world, project, "zones", world.store.count(Kind::Zone, project), 1)?;
    let serial = Timestamp::now().as_second();
    body["name"] = json!(name);
    body["serial"] = json!(serial);
    body["project_id"] = json!(project);
    body["created_at"] = json!(fine_stamp());
    let id = world.add(Kind::Zone, project, body);
    let mail = email.replace('@', ".");
    for (kind, records) in [
        ("SOA", format!("{NAME_SERVER} {mail}. {serial} 3600 600 86400 3600")),
        ("NS", NAME_SERVER.to_owned()),
    ] {
        let mut body = RECORDSET.filled([]);
        body["records"] = json!([records]);
        for (key, value) in [
            ("name", name.as_str()),
            ("type", kind),
            ("status", "ACTIVE"),
            ("action", "NONE"),
            ("zone_id", &id),
            ("zone_name", &name),
            ("project_id", project),
            ("created_at", &fine_stamp()),
        ] {
            body[key] = json!(value);
        }
        // Managed recordsets do not count towards the quota.
        let mut object = world.object(project, body);
        object.keep("managed", true);
        world.store.insert(Kind::Recordset, object);
    }
    settle(world, Kind::Zone, &id, world.settings.times.zone);
    Ok(id)
}

pub(super) fn update(world: &mut World, id: &str, given: &Fields) -> ApiResult {
    change(world, &ZONE, id, given)?;
    touch(world, id);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str) -> ApiResult {
    let zone = world.store.get(Kind::Zone, id).ok_or_else(|| ZONE.missing(id))?;
    let below = world.store.find(Kind::Zone, |other| {
        other.project == zone.project
            && other.text("name").ends_with(&format!(".{}", zone.text("name")))
    });
    if below.is_some() {
        let message = "Please delete any subzones before deleting this zone";
        return Err(ApiError::new(400, "zone_has_sub_zone", message));
    }
    pend(world, Kind::Zone, id, "DELETE");
    world.later(world.settings.times.zone, Event::Gone(Kind::Zone, id.to_owned()));
    Ok(())
}

/// Removes a zone and its recordsets.
pub(crate) fn gone(world: &mut World, id: &str) {
    for recordset in world.store.ids(Kind::Recordset, "zone_id", id) {
        world.store.remove(Kind::Recordset, &recordset);
    }
    world.store.remove(Kind::Zone, id);
}
