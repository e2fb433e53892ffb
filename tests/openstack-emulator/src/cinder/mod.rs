//! Cinder v3: volumes and snapshots.

mod limits;

use serde_json::{Map, Value, json};

use crate::index::PROJECT;
use crate::page;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Condition, Kind, Object};
use crate::world::{Event, World, fine_stamp};

/// The collections: path, key of one object, kind, and the word in error messages.
const COLLECTIONS: [(&str, &str, Kind, &str); 2] = [
    ("volumes", "volume", Kind::Volume, "Volume"),
    ("snapshots", "snapshot", Kind::Snapshot, "Snapshot"),
];

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    // Older clients put the id of the project into the path. The token names the project already.
    let path = match path {
        [project, rest @ ..] if *project == asked.caller.project => rest,
        [project, ..]
            if world.store.get(Kind::Project, project).is_some() && !asked.caller.is_admin() =>
        {
            return Err(ApiError::bad("Malformed request url"));
        }
        [project, rest @ ..] if world.store.get(Kind::Project, project).is_some() => rest,
        all => all,
    };
    if asked.method != http::Method::GET {
        asked.writer()?;
    }
    let method = asked.method.as_str();
    match (method, path) {
        (_, ["os-quota-sets", rest @ ..]) => limits::quotas(world, asked, rest),
        ("GET", ["limits"]) => limits::absolute(world, asked),
        ("GET", ["types", rest @ ..]) => types(world, rest),
        ("GET", ["os-availability-zone"]) => Ok(Answer::ok(
            json!({"availabilityZoneInfo": [{"zoneName": "nova", "zoneState": {"available": true}}]}),
        )),
        ("GET", ["extensions"]) => Ok(Answer::ok(json!({"extensions": []}))),
        (_, ["volumes", id, "action"]) => action(world, asked, id),
        (_, ["volumes", id, "metadata"]) => metadata(world, asked, id),
        (_, [collection, rest @ ..]) => {
            let found = COLLECTIONS.iter().find(|(name, ..)| name == collection);
            let (plural, single, kind, word) = *found.ok_or_else(ApiError::unknown_path)?;
            let missing = |id: &str| ApiError::missing(format!("{word} {id} could not be found."));
            match (method, rest) {
                ("GET", [] | ["detail"]) => list(world, asked, plural, kind, rest.is_empty()),
                ("POST", []) if kind == Kind::Volume => create_volume(world, asked),
                ("POST", []) => create_snapshot(world, asked),
                ("GET", [id]) => {
                    let one = world.seen(kind, id, asked).ok_or_else(|| missing(id))?;
                    Ok(Answer::ok(json!({single: shown(asked, plural, one)})))
                }
                ("PUT", [id]) => {
                    let given = asked.wrapped(single)?;
                    let one = world.own(kind, id, asked, || missing(id))?;
                    for key in ["name", "description", "metadata"] {
                        if let Some(value) = given.get(key) {
                            one.set(key, value.clone());
                        }
                    }
                    let one = one.clone();
                    Ok(Answer::ok(json!({single: shown(asked, plural, &one)})))
                }
                ("DELETE", [id]) => {
                    world.seen(kind, id, asked).ok_or_else(|| missing(id))?;
                    delete(world, asked, kind, id)
                }
                _ => Err(ApiError::unknown_path()),
            }
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn types(world: &World, path: &[&str]) -> AnswerResult {
    match path {
        [] => {
            let all: Vec<Value> = world.store.all(Kind::VolumeType).map(Object::shown).collect();
            Ok(Answer::ok(json!({"volume_types": all})))
        }
        [id] => {
            let found = world.store.find(Kind::VolumeType, |one| {
                one.id == *id || *id == "default" || one.text("name") == *id
            });
            let found = found.ok_or_else(|| {
                ApiError::missing(format!("Volume type {id} could not be found."))
            })?;
            Ok(Answer::ok(json!({"volume_type": found.shown()})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn shown(asked: &ApiRequest, plural: &str, object: &Object) -> Value {
    let mut body = object.shown();
    let href = format!("{}/v3/{}/{plural}/{}", asked.root(), object.project, object.id);
    body["links"] = json!([{"rel": "self", "href": href}]);
    body
}

fn list(world: &World, asked: &ApiRequest, plural: &str, kind: Kind, brief: bool) -> AnswerResult {
    let everybody = asked.caller.is_admin()
        && asked.flag("all_tenants")
        && asked.query("all_tenants").is_some();
    let about_pages =
        ["limit", "marker", "offset", "sort", "sort_key", "sort_dir", "all_tenants", "with_count"];
    let filters = asked.query.iter().filter(|(key, _)| !about_pages.contains(&key.as_str()));
    let mut wanted: Vec<Condition<'_>> =
        filters.filter_map(|(key, value)| page::said(key, &[value])).collect();
    if !everybody {
        wanted.push(vec![(PROJECT, &asked.caller.project)]);
    }
    let mut all: Vec<&Object> = world
        .store
        .narrowed(kind, &wanted)
        .into_iter()
        .rev()
        .filter(|one| (everybody || one.project == asked.caller.project) && world.listed(kind, one))
        .filter(|one| {
            asked.query.iter().all(|(key, value)| {
                about_pages.contains(&key.as_str())
                    || key == "metadata"
                    || page::equals(one.body.get(key), value)
            })
        })
        .collect();
    page::sort(&mut all, &page::order(asked));
    let page = page::cut(asked, all, world.settings.page_limit)?;
    let rows = page.objects.iter().map(|one| {
        let all = shown(asked, plural, one);
        if brief {
            json!({"id": all["id"], "name": all["name"], "links": all["links"]})
        } else {
            all
        }
    });
    let mut body = json!({plural: rows.collect::<Vec<_>>()});
    if let Some(links) = page::links(page.next.as_deref()) {
        body[format!("{plural}_links")] = links;
    }
    Ok(Answer::ok(body))
}

fn create_volume(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    let given = asked.wrapped("volume")?;
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
    let id = make(world, &asked.caller.project, &asked.caller.user, size, &given)?;
    let volume = world.store.get(Kind::Volume, &id).ok_or_else(ApiError::unknown_path)?;
    Ok(Answer::json(202, json!({"volume": shown(asked, "volumes", volume)})))
}

/// Creates a volume.
fn make(
    world: &mut World,
    project: &str,
    user: &str,
    size: i64,
    given: &Map<String, Value>,
) -> Result<String, ApiError> {
    limits::check(world, project, 1, 0, size)?;
    let kind = given.get("volume_type").and_then(Value::as_str).unwrap_or("__DEFAULT__");
    let image = given
        .get("imageRef")
        .and_then(Value::as_str)
        .and_then(|id| world.store.get(Kind::Image, id));
    let mut body = json!({
        "name": given.get("name"), "description": given.get("description"), "size": size, "status": "creating", "user_id": user,
        "attachments": [], "availability_zone": given.get("availability_zone").and_then(Value::as_str).unwrap_or("nova"), "bootable": image.is_some().to_string(),
        "created_at": fine_stamp(), "updated_at": null, "encrypted": false, "metadata": given.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "multiattach": false, "snapshot_id": given.get("snapshot_id"), "source_volid": given.get("source_volid"), "volume_type": kind,
        "consistencygroup_id": null, "replication_status": null, "os-vol-tenant-attr:tenant_id": project,
    });
    if let Some(image) = image {
        body["volume_image_metadata"] =
            json!({"image_id": image.id, "image_name": image.text("name")});
    }
    let id = world.add(Kind::Volume, project, body);
    let delay = world.settings.times.volume;
    world.fated(
        Kind::Volume,
        &id,
        delay,
        vec![("status", json!("available"))],
        vec![("status", json!("error"))],
    );
    Ok(id)
}

fn create_snapshot(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    let given = asked.wrapped("snapshot")?;
    let volume_id = given.get("volume_id").and_then(Value::as_str).unwrap_or_default();
    let volume = world
        .seen(Kind::Volume, volume_id, asked)
        .ok_or_else(|| ApiError::missing(format!("Volume {volume_id} could not be found.")))?;
    let force = given
        .get("force")
        .is_some_and(|force| *force == json!(true) || *force == "true" || *force == "True");
    let status = volume.text("status");
    if status != "available" && !(force && status == "in-use") {
        return Err(ApiError::bad(format!(
            "Invalid volume: Volume {volume_id} status must be available, but current status is: {status}."
        )));
    }
    let id = snap(world, &asked.caller.project, volume_id, &given)?;
    let snapshot = world.store.get(Kind::Snapshot, &id).ok_or_else(ApiError::unknown_path)?;
    Ok(Answer::json(202, json!({"snapshot": shown(asked, "snapshots", snapshot)})))
}

/// Creates a snapshot of a volume.
pub(crate) fn snap(
    world: &mut World,
    project: &str,
    volume: &str,
    given: &Map<String, Value>,
) -> Result<String, ApiError> {
    let size = world.store.get(Kind::Volume, volume).map(|one| one.number("size"));
    let size = size.unwrap_or_default();
    limits::check(world, project, 0, 1, size)?;
    let body = json!({
        "name": given.get("name"), "description": given.get("description"), "volume_id": volume, "size": size, "status": "creating",
        "created_at": fine_stamp(), "updated_at": null, "metadata": given.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "os-extended-snapshot-attributes:progress": "0%", "os-extended-snapshot-attributes:project_id": project,
    });
    let id = world.add(Kind::Snapshot, project, body);
    let delay = world.settings.times.snapshot;
    let ready = vec![
        ("status", json!("available")),
        ("os-extended-snapshot-attributes:progress", json!("100%")),
    ];
    world.fated(Kind::Snapshot, &id, delay, ready, vec![("status", json!("error"))]);
    Ok(id)
}

fn delete(world: &mut World, asked: &ApiRequest, kind: Kind, id: &str) -> AnswerResult {
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
    Ok(Answer::empty(202))
}

fn action(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let body = asked.json()?;
    let missing = || ApiError::missing(format!("Volume {id} could not be found."));
    let volume = world.own(Kind::Volume, id, asked, missing)?;
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

fn metadata(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let volume = world.own(Kind::Volume, id, asked, || {
        ApiError::missing(format!("Volume {id} could not be found."))
    })?;
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

/// Creates or attaches the volume that a block device of a new server describes. `None` if the device is not a volume.
pub(crate) fn for_server(
    world: &mut World,
    project: &str,
    server: &str,
    device: &Value,
) -> Result<Option<String>, ApiError> {
    if device["destination_type"] != "volume" && device["source_type"] != "volume" {
        return Ok(None);
    }
    let id = match device["source_type"].as_str() {
        Some("volume") => device["uuid"].as_str().unwrap_or_default().to_owned(),
        source => {
            let size = device["volume_size"]
                .as_i64()
                .or_else(|| device["volume_size"].as_str()?.parse().ok())
                .unwrap_or(1);
            let mut given = Map::new();
            let reference = if source == Some("image") { "imageRef" } else { "snapshot_id" };
            given.insert(reference.to_owned(), device["uuid"].clone());
            given.insert("name".to_owned(), json!(""));
            make(world, project, "", size, &given)
                .map_err(|problem| ApiError::forbidden(problem.message))?
        }
    };
    attach(world, &id, server, "/dev/vda");
    Ok(Some(id))
}

/// Attaches a volume to a server.
pub(crate) fn attach(world: &mut World, id: &str, server: &str, device: &str) {
    let delay = world.settings.times.volume;
    if let Some(volume) = world.store.get_mut(Kind::Volume, id) {
        let attachment = json!({"id": id, "attachment_id": id, "volume_id": id, "server_id": server, "device": device, "host_name": null, "attached_at": fine_stamp()});
        volume.set("attachments", json!([attachment]));
        if volume.text("status") == "available" {
            volume.set("status", "in-use");
            return;
        }
    }
    world.later(delay, Event::set(Kind::Volume, id, vec![("status", json!("in-use"))]));
}

/// Detaches a volume from a server and deletes the volume if `delete` is set. A volume with snapshots stays: Cinder refuses to delete it,
/// and
/// Nova only logs the refusal.
pub(crate) fn release(world: &mut World, id: &str, delete: bool) {
    let kept = world.store.with_text(Kind::Snapshot, "volume_id", id).next().is_some();
    if delete && !kept {
        world.store.remove(Kind::Volume, id);
        return;
    }
    if let Some(volume) = world.store.get_mut(Kind::Volume, id) {
        volume.set("attachments", json!([]));
        volume.set("status", "available");
    }
}
