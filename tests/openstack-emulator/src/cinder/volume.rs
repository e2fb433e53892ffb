//! Volumes and snapshots: their creation, deletion and actions.

use serde_json::{Value, json};

use super::limits;
use super::types::{self as refuse, SNAPSHOT, VOLUME};
use crate::object::{Fields, Kind, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::resource::ResourceType;
use crate::world::{Event, World, fine_stamp};

pub(super) fn create(world: &mut World, asked: &ApiRequest, given: &Fields) -> ApiResult<String> {
    let snapshot = world.seen(Kind::Snapshot, given.text("snapshot_id"), asked);
    let size = given.number_of("size").or_else(|| Some(snapshot?.number("size")));
    let size = size.unwrap_or_default();
    if size <= 0 {
        return Err(refuse::bad_size(size));
    }
    make(world, (&asked.caller.project, &asked.caller.user), size, given)
}

/// Creates a volume of a project and a user.
pub(super) fn make(
    world: &mut World,
    (project, user): (&str, &str),
    size: i64,
    given: &Fields,
) -> ApiResult<String> {
    limits::check(world, project, "volumes", size)?;
    let mut body = VOLUME.new_body(given);
    body["user_id"] = json!(user);
    body["os-vol-tenant-attr:tenant_id"] = json!(project);
    if let Some(image) = world.store.get(Kind::Image, given.text("imageRef")) {
        body["bootable"] = json!("true");
        body["volume_image_metadata"] =
            json!({"image_id": image.id, "image_name": image.text("name")});
    }
    let ready = vec![("status", json!("available"))];
    Ok(begin(world, &VOLUME, (project, size), body, ready))
}

/// Stores a volume or snapshot, and schedules the end of its creation.
fn begin(
    world: &mut World,
    of: &ResourceType,
    (project, size): (&str, i64),
    mut body: Value,
    ready: Vec<(&'static str, Value)>,
) -> String {
    body["size"] = json!(size);
    body["created_at"] = json!(fine_stamp());
    let id = world.add(of.kind, project, body);
    let times = world.settings.times;
    let usual = if of.kind == Kind::Volume { times.volume } else { times.snapshot };
    world.fated(of.kind, &id, usual, ready, vec![("status", json!("error"))]);
    id
}

pub(super) fn create_snapshot(
    world: &mut World,
    asked: &ApiRequest,
    given: &Fields,
) -> ApiResult<String> {
    let id = given.text("volume_id");
    let volume = world.seen(Kind::Volume, id, asked).ok_or_else(|| VOLUME.missing(id))?;
    let force = given.field("force");
    let is_forced = *force == true || *force == "true" || *force == "True";
    let status = volume.text("status");
    if status != "available" && !(is_forced && status == "in-use") {
        return Err(refuse::not_available(id, status));
    }
    snap(world, &asked.caller.project, id, given)
}

/// Creates a snapshot of a volume.
pub(crate) fn snap(
    world: &mut World,
    project: &str,
    volume: &str,
    given: &Fields,
) -> ApiResult<String> {
    let size = world.store.get(Kind::Volume, volume).map_or(0, |one| one.number("size"));
    limits::check(world, project, "snapshots", size)?;
    let mut body = SNAPSHOT.new_body(given);
    body["volume_id"] = json!(volume);
    body["os-extended-snapshot-attributes:project_id"] = json!(project);
    let progress = ("os-extended-snapshot-attributes:progress", json!("100%"));
    let ready = vec![("status", json!("available")), progress];
    Ok(begin(world, &SNAPSHOT, (project, size), body, ready))
}

/// Begins the deletion of a volume or snapshot.
pub(super) fn delete(world: &mut World, asked: &ApiRequest, kind: Kind, id: &str) -> ApiResult {
    let status = world.store.get(kind, id).map(|one| one.text("status")).unwrap_or_default();
    let is_volume = kind == Kind::Volume;
    let more = ["error_restoring", "error_extending", "error_managing"].contains(&status);
    let is_free = ["available", "error"].contains(&status) || (is_volume && more);
    let snapshots = world.store.ids(Kind::Snapshot, "volume_id", id);
    if !is_free || (is_volume && !snapshots.is_empty() && !asked.flag("cascade")) {
        return Err(if is_volume { refuse::volume_busy() } else { refuse::snapshot_busy() });
    }
    for snapshot in snapshots {
        world.store.remove(Kind::Snapshot, &snapshot);
    }
    world.store.set(kind, id, "status", "deleting");
    world.later(world.settings.times.volume, Event::Gone(kind, id.to_owned()));
    Ok(())
}

/// Answers `POST /volumes/{id}/action`.
pub(super) fn action(world: &mut World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let body = asked.json()?;
    let volume = world.own(Kind::Volume, id, asked, || VOLUME.missing(id))?;
    let action = body.as_object().and_then(|body| body.iter().next());
    let (name, given) = action.ok_or_else(|| ApiError::bad("Malformed request body"))?;
    match name.as_str() {
        "os-extend" => {
            let (size, now) = (given["new_size"].as_i64(), volume.number("size"));
            let size = size.unwrap_or_default();
            if size <= now || volume.text("status") != "available" {
                return Err(refuse::not_larger(now, size));
            }
            volume.set("size", size);
        }
        "os-set_bootable" => {
            let bootable = given["bootable"] == true || given["bootable"] == "True";
            volume.set("bootable", bootable.to_string());
            return Ok(Answer::empty(200));
        }
        "os-reset_status" => {
            asked.admin("volume_extension:volume_admin_actions:reset_status")?;
            volume.set("status", given["status"].clone());
        }
        _ => return Err(refuse::no_action(name)),
    }
    Ok(Answer::empty(202))
}

/// Answers `/volumes/{id}/metadata`.
pub(super) fn metadata(world: &mut World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let volume = world.own(Kind::Volume, id, asked, || VOLUME.missing(id))?;
    if asked.method != http::Method::GET {
        let mut metadata = match asked.method == http::Method::PUT {
            true => Fields::new(),
            false => volume.body.field("metadata").as_object().cloned().unwrap_or_default(),
        };
        metadata.extend(asked.wrapped("metadata")?);
        volume.set("metadata", metadata);
    }
    Ok(Answer::ok(json!({"metadata": volume.body.get("metadata")})))
}
