//! Volumes and snapshots: their creation, deletion and actions.

use serde_json::{Value, json};

use super::limits;
use super::types::{SNAPSHOT, VOLUME};
use crate::handlers::Fields;
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::resource::Set;
use crate::world::{Event, World, fine_stamp};

/// Creates a volume for a request.
pub(super) fn create(
    world: &mut World,
    asked: &ApiRequest,
    given: &Fields,
) -> Result<String, ApiError> {
    let size =
        given.get("size").and_then(|size| size.as_i64().or_else(|| size.as_str()?.parse().ok()));
    let snapshot = given
        .get("snapshot_id")
        .and_then(Value::as_str)
        .and_then(|id| world.seen(Kind::Snapshot, id, asked));
    let size =
        size.or_else(|| snapshot.map(|snapshot| snapshot.number("size"))).unwrap_or_default();
    if size <= 0 {
        return Err(ApiError::bad(format!(
            "Invalid input for field/attribute size. Value: {size}. {size} is less than the minimum of 1"
        )));
    }
    make(world, &asked.caller.project, &asked.caller.user, size, given)
}

/// Creates a volume.
pub(super) fn make(
    world: &mut World,
    project: &str,
    user: &str,
    size: i64,
    given: &Fields,
) -> Result<String, ApiError> {
    limits::check(world, project, "volumes", size)?;
    let image = given.get("imageRef").and_then(Value::as_str);
    let image = image.and_then(|id| world.store.get(Kind::Image, id));
    let mut body =
        VOLUME.filled(VOLUME.settable(given, Set::New).filter(|(_, value)| !value.is_null()));
    body["size"] = json!(size);
    body["user_id"] = json!(user);
    body["created_at"] = json!(fine_stamp());
    body["os-vol-tenant-attr:tenant_id"] = json!(project);
    if let Some(image) = image {
        body["bootable"] = json!("true");
        body["volume_image_metadata"] =
            json!({"image_id": image.id, "image_name": image.text("name")});
    }
    let id = world.add(Kind::Volume, project, body);
    let delay = world.settings.times.volume;
    let ready = vec![("status", json!("available"))];
    world.fated(Kind::Volume, &id, delay, ready, vec![("status", json!("error"))]);
    Ok(id)
}

/// Creates a snapshot for a request.
pub(super) fn create_snapshot(
    world: &mut World,
    asked: &ApiRequest,
    given: &Fields,
) -> Result<String, ApiError> {
    let id = given.get("volume_id").and_then(Value::as_str).unwrap_or_default();
    let volume = world.seen(Kind::Volume, id, asked).ok_or_else(|| VOLUME.missing(id))?;
    let force = given
        .get("force")
        .is_some_and(|force| *force == json!(true) || *force == "true" || *force == "True");
    let status = volume.text("status");
    if status != "available" && !(force && status == "in-use") {
        return Err(ApiError::bad(format!(
            "Invalid volume: Volume {id} status must be available, but current status is: {status}."
        )));
    }
    snap(world, &asked.caller.project, id, given)
}

/// Creates a snapshot of a volume.
pub(crate) fn snap(
    world: &mut World,
    project: &str,
    volume: &str,
    given: &Fields,
) -> Result<String, ApiError> {
    let size = world.store.get(Kind::Volume, volume).map(|one| one.number("size"));
    let size = size.unwrap_or_default();
    limits::check(world, project, "snapshots", size)?;
    let mut body =
        SNAPSHOT.filled(SNAPSHOT.settable(given, Set::New).filter(|(_, value)| !value.is_null()));
    body["volume_id"] = json!(volume);
    body["size"] = json!(size);
    body["created_at"] = json!(fine_stamp());
    body["os-extended-snapshot-attributes:project_id"] = json!(project);
    let id = world.add(Kind::Snapshot, project, body);
    let delay = world.settings.times.snapshot;
    let ready = vec![
        ("status", json!("available")),
        ("os-extended-snapshot-attributes:progress", json!("100%")),
    ];
    world.fated(Kind::Snapshot, &id, delay, ready, vec![("status", json!("error"))]);
    Ok(id)
}

/// Begins the deletion of a volume or snapshot.
pub(super) fn delete(
    world: &mut World,
    asked: &ApiRequest,
    kind: Kind,
    id: &str,
) -> Result<(), ApiError> {
    let status =
        world.store.get(kind, id).map(|one| one.text("status").to_owned()).unwrap_or_default();
    if kind == Kind::Volume {
        let snapshots = world.store.ids(Kind::Snapshot, "volume_id", id);
        let cascade = asked.flag("cascade") && asked.query("cascade").is_some();
        let free = ["available", "error", "error_restoring", "error_extending", "error_managing"]
            .contains(&status.as_str());
        if !free || (!snapshots.is_empty() && !cascade) {
            return Err(ApiError::bad(
                "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.",
            ));
        }
        for snapshot in snapshots {
            world.store.remove(Kind::Snapshot, &snapshot);
        }
    } else if !["available", "error"].contains(&status.as_str()) {
        return Err(ApiError::bad("Invalid snapshot: Snapshot status must be available or error."));
    }
    let delay = world.settings.times.volume;
    if let Some(one) = world.store.get_mut(kind, id) {
        one.set("status", "deleting");
    }
    world.later(delay, Event::Gone(kind, id.to_owned()));
    Ok(())
}

/// Answers `POST /volumes/{id}/action`.
pub(super) fn action(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let body = asked.json()?;
    let volume = world.own(Kind::Volume, id, asked, || VOLUME.missing(id))?;
    let action = body.as_object().and_then(|body| body.iter().next());
    let (name, given) = action.ok_or_else(|| ApiError::bad("Malformed request body"))?;
    match name.as_str() {
        "os-extend" => {
            let size = given["new_size"].as_i64().unwrap_or_default();
            if size <= volume.number("size") || volume.text("status") != "available" {
                return Err(ApiError::bad(format!(
                    "Invalid input received: New size for extend must be greater than current size. (current: {}, extended: {size}).",
                    volume.number("size")
                )));
            }
            volume.set("size", size);
        }
        "os-set_bootable" => {
            let bootable = given["bootable"] == true || given["bootable"] == "True";
            volume.set("bootable", bootable.to_string());
            return Ok(Answer::empty(200));
        }
        "os-reset_status" => {
            if !asked.caller.is_admin() {
                return Err(ApiError::forbidden(
                    "Policy doesn't allow volume_extension:volume_admin_actions:reset_status to be performed.",
                ));
            }
            volume.set("status", given["status"].clone());
        }
        _ => return Err(ApiError::bad(format!("There is no such action: {name}"))),
    }
    Ok(Answer::empty(202))
}

/// Answers `/volumes/{id}/metadata`.
pub(super) fn metadata(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let volume = world.own(Kind::Volume, id, asked, || VOLUME.missing(id))?;
    if asked.method != http::Method::GET {
        let given = asked.wrapped("metadata")?;
        let mut metadata = if asked.method == http::Method::PUT {
            json!({})
        } else {
            volume.body.get("metadata").cloned().unwrap_or_default()
        };
        for (key, value) in given {
            metadata[key] = value;
        }
        volume.set("metadata", metadata);
    }
    Ok(Answer::ok(json!({"metadata": volume.body.get("metadata")})))
}
