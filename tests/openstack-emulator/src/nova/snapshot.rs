//! Images of servers: `createImage`.
//!
//! For a server with a disk of its flavor, Glance gets the data: the image is `queued`, then `saving`, then `active`. For a server that
//! boots
//! from a volume, the image has no data, and its properties name the snapshots of the volumes (nova's `API.snapshot_volume_backed`).

use serde_json::{Map, Value, json};

use super::history::note_action;
use super::server::server;
use super::step::ready;
use crate::misbehave::End;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{Event, World, stamp};
use crate::{cinder, glance};

pub(super) fn create(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    given: &Value,
) -> AnswerResult {
    let name = given["name"].as_str().filter(|name| !name.is_empty() && name.len() <= 255);
    let name = name
        .ok_or_else(|| {
            ApiError::bad("Invalid input for field/attribute name. Value: . '' is too short")
        })?
        .to_owned();
    let one = server(world, asked, id)?.clone();
    ready(&one, "createImage", &["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"])?;
    let mut properties = given["metadata"].clone();
    if !properties.is_object() {
        properties = json!({});
    }
    describe(world, &one, &mut properties);
    let image = if one.text("image").is_empty() {
        of_volumes(world, &one, &name, properties)?
    } else {
        let image = glance::snapshot(world, &one.project, &name, properties);
        begin(world, &one.id, &image, &name);
        image
    };
    note_action(world, asked, id, "createImage");
    if asked.since(45) {
        return Ok(Answer::json(202, json!({"image_id": image})));
    }
    Ok(Answer::empty(202).with("location", format!("{}/image/v2/images/{image}", asked.base)))
}

/// Sets the properties that Nova gives to every image of a server.
fn describe(world: &World, server: &Object, properties: &mut Value) {
    properties["instance_uuid"] = json!(server.id);
    properties["user_id"] = json!(server.text("user_id"));
    properties["image_type"] = json!("snapshot");
    if let Some(base) = world.store.get(Kind::Image, server.text("image")) {
        properties["base_image_ref"] = json!(base.id);
        properties["min_ram"] = json!(base.number("min_ram"));
        for key in ["os_distro", "os_version", "os_type", "architecture"] {
            if let Some(value) = base.body.get(key) {
                properties[key] = value.clone();
            }
        }
        let disk = world.store.get(Kind::Flavor, server.note("flavor"));
        let disk = disk.map(|flavor| flavor.number("disk")).unwrap_or_default();
        properties["min_disk"] = json!(disk.max(base.number("min_disk")));
    }
}

/// Starts writing the data of a server's disk.
fn begin(world: &mut World, server: &str, image: &str, name: &str) {
    if let Some(one) = world.store.get_mut(Kind::Server, server) {
        one.keep("task", "image_snapshot");
    }
    let usual = world.settings.times.image_import;
    let (time, end) = match world.misbehaviour.on_create(Kind::Image, name) {
        Some(End::Stuck) => return,
        Some(End::Error(_)) => (usual, None),
        Some(End::Takes(time)) => (time, Some("active")),
        Some(End::NeverBoots) | None => (usual, Some("active")),
    };
    let step = |status: Option<&'static str>| {
        Event::Imaged(server.to_owned(), image.to_owned(), status.map(Into::into))
    };
    world.later(time / 2, step(Some("saving")));
    world.later(time, step(end));
}

/// Moves an image of a server to the next status. Nova deletes an image that failed (`delete_image_on_error`).
pub(crate) fn went_on(world: &mut World, server: &str, image: &str, status: Option<&str>) {
    let size = world.store.get(Kind::Image, image).map(|_| 1 << 20);
    let is_over = status != Some("saving") || size.is_none();
    // Deleting the server meanwhile ends the snapshot too.
    let there =
        world.store.get_mut(Kind::Server, server).filter(|one| one.note("task") != "deleting");
    let status = if there.is_some() { status } else { None };
    if let Some(one) = there {
        one.keep("task", if is_over { "" } else { "image_uploading" });
    }
    let Some(status) = status else {
        world.store.remove(Kind::Image, image);
        return;
    };
    if let Some(one) = world.store.get_mut(Kind::Image, image) {
        one.set("status", status);
        one.set("updated_at", stamp());
        if status == "active" {
            one.set("size", size);
        }
    }
}

fn of_volumes(
    world: &mut World,
    server: &Object,
    name: &str,
    mut properties: Value,
) -> Result<String, ApiError> {
    let mut mapping = Vec::new();
    for volume in server.hidden.get("volumes").and_then(Value::as_array).into_iter().flatten() {
        let id = volume["id"].as_str().unwrap_or_default();
        let mut given = Map::new();
        given.insert("name".to_owned(), json!(format!("snapshot for {name}")));
        let snapshot = cinder::snap(world, &server.project, id, &given)?;
        let size = world.store.get(Kind::Volume, id).map(|one| one.number("size"));
        mapping.push(json!({
            "source_type": "snapshot", "destination_type": "volume", "snapshot_id": snapshot, "volume_size": size, "image_id": null, "volume_id": null,
            "boot_index": volume["boot_index"], "device_name": "/dev/vda", "device_type": "disk", "disk_bus": null, "guest_format": null, "no_device": null,
            "delete_on_termination": volume["delete_on_termination"], "tag": volume["tag"], "volume_type": null,
        }));
    }
    // Glance stores properties as text.
    properties["block_device_mapping"] = json!(json!(mapping).to_string());
    properties["bdm_v2"] = json!("True");
    properties["root_device_name"] = json!("/dev/vda");
    let image = glance::snapshot(world, &server.project, name, properties);
    if let Some(one) = world.store.get_mut(Kind::Image, &image) {
        one.set("status", "active");
        one.set("size", 0);
    }
    Ok(image)
}
