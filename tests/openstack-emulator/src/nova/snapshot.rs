//! Images of servers: `createImage`.
//!
//! For a server with a disk of its flavor, Glance gets the data: the image is `queued`, then `saving`, then `active`. For a server that
//! boots from a volume, the image has no data, and its properties name the snapshots of the volumes (nova's `API.snapshot_volume_backed`).

use serde_json::{Value, json};

use super::refuse;
use super::server::{note_action, ready, server};
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiRequest, ApiResult};
use crate::world::{Event, World, stamp};
use crate::{cinder, glance};

pub(super) fn create(world: &mut World, asked: &ApiRequest, id: &str, given: &Value) -> ApiAnswer {
    let name = given.text_of("name").filter(|name| !name.is_empty() && name.len() <= 255);
    let name = name.ok_or_else(refuse::bad_name)?;
    let one = server(world, asked, id)?.clone();
    ready(&one, "createImage", &["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"])?;
    let mut properties = given["metadata"].as_object().cloned().unwrap_or_default();
    describe(world, &one, &mut properties);
    let image = if one.text("image").is_empty() {
        of_volumes(world, &one, name, properties)?
    } else {
        let image = glance::snapshot(world, &one.project, name, &properties);
        begin(world, &one.id, &image, name);
        image
    };
    note_action(world, asked, id, "createImage");
    if asked.since(45) {
        return Ok(Answer::json(202, json!({"image_id": image})));
    }
    Ok(Answer::empty(202).with("location", format!("{}/image/v2/images/{image}", asked.base)))
}

/// Sets the properties that Nova gives to every image of a server.
fn describe(world: &World, server: &Object, properties: &mut Fields) {
    let mut set = |key: &str, value: Value| drop(properties.insert(key.to_owned(), value));
    set("instance_uuid", json!(server.id));
    set("user_id", json!(server.text("user_id")));
    set("image_type", json!("snapshot"));
    if let Some(base) = world.store.get(Kind::Image, server.text("image")) {
        set("base_image_ref", json!(base.id));
        set("min_ram", json!(base.number("min_ram")));
        for key in ["os_distro", "os_version", "os_type", "architecture"] {
            if let Some(value) = base.body.get(key) {
                set(key, value.clone());
            }
        }
        let flavor = world.store.get(Kind::Flavor, server.note("flavor"));
        let disk = flavor.map_or(0, |flavor| flavor.number("disk"));
        set("min_disk", json!(disk.max(base.number("min_disk"))));
    }
}

/// Starts writing the data of a server's disk.
fn begin(world: &mut World, server: &str, image: &str, name: &str) {
    world.store.keep(Kind::Server, server, "task", "image_snapshot");
    let usual = world.settings.times.image_import;
    let Some((time, error)) = world.first_end(Kind::Image, name, usual) else { return };
    let end = if error.is_some() { None } else { Some("active") };
    let step = |status: Option<&'static str>| {
        Event::Imaged(server.to_owned(), image.to_owned(), status.map(Into::into))
    };
    world.later(time / 2, step(Some("saving")));
    world.later(time, step(end));
}

/// Moves an image of a server to the next status. Nova deletes an image that failed (`delete_image_on_error`).
pub(crate) fn went_on(world: &mut World, server: &str, image: &str, status: Option<&str>) {
    let exists = world.store.get(Kind::Image, image).is_some();
    // Deleting the server meanwhile ends the snapshot too.
    let there = world.store.get(Kind::Server, server);
    let is_there = there.is_some_and(|one| one.note("task") != "deleting");
    if is_there {
        let task = if status == Some("saving") && exists { "image_uploading" } else { "" };
        world.store.keep(Kind::Server, server, "task", task);
    }
    let Some(status) = status.filter(|_| is_there) else {
        world.store.remove(Kind::Image, image);
        return;
    };
    world.store.change(Kind::Image, image, |image| {
        image.set("status", status);
        image.set("updated_at", stamp());
        if status == "active" {
            image.set("size", 1 << 20);
        }
    });
}

fn of_volumes(
    world: &mut World,
    server: &Object,
    name: &str,
    mut properties: Fields,
) -> ApiResult<String> {
    let mut mapping = Vec::new();
    for volume in server.hidden.list("volumes") {
        let id = volume.text("id");
        let given = Fields::from_iter([("name".to_owned(), json!(format!("snapshot for {name}")))]);
        let snapshot = cinder::snap(world, &server.project, id, &given)?;
        let size = world.store.get(Kind::Volume, id).map(|one| one.number("size"));
        mapping.push(json!({
            "source_type": "snapshot", "destination_type": "volume", "snapshot_id": snapshot, "volume_size": size, "image_id": null, "volume_id": null,
            "boot_index": volume["boot_index"], "device_name": "/dev/vda", "device_type": "disk", "disk_bus": null, "guest_format": null, "no_device": null,
            "delete_on_termination": volume["delete_on_termination"], "tag": volume["tag"], "volume_type": null,
        }));
    }
    // Glance stores properties as text.
    let texts = [
        ("block_device_mapping", json!(mapping).to_string()),
        ("bdm_v2", "True".to_owned()),
        ("root_device_name", "/dev/vda".to_owned()),
    ];
    properties.extend(texts.map(|(key, text)| (key.to_owned(), json!(text))));
    let image = glance::snapshot(world, &server.project, name, &properties);
    world.store.set(Kind::Image, &image, "status", "active");
    world.store.set(Kind::Image, &image, "size", 0);
    Ok(image)
}
