//! The volumes of servers: created, attached and released for Nova.

use serde_json::{Value, json};

use super::volume::make;
use crate::object::{Fields, Kind, ReadFields};
use crate::request::{ApiError, ApiResult};
use crate::world::{Event, World, fine_stamp};

/// Creates or attaches the volume that a block device of a new server describes. `None` if the device is not a volume.
pub(crate) fn for_server(
    world: &mut World,
    project: &str,
    server: &str,
    device: &Value,
) -> ApiResult<Option<String>> {
    if device["destination_type"] != "volume" && device["source_type"] != "volume" {
        return Ok(None);
    }
    let id = match device["source_type"].as_str() {
        Some("volume") => device.text("uuid").to_owned(),
        source => {
            let size = device.number_of("volume_size").unwrap_or(1);
            let mut given = Fields::new();
            let reference = if source == Some("image") { "imageRef" } else { "snapshot_id" };
            given.insert(reference.to_owned(), device["uuid"].clone());
            given.insert("name".to_owned(), json!(""));
            make(world, (project, ""), size, &given)
                .map_err(|problem| ApiError::forbidden(problem.message))?
        }
    };
    attach(world, &id, server, "/dev/vda");
    Ok(Some(id))
}

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

/// Detaches a volume from a server and deletes the volume if `delete` is set. A volume with snapshots stays: Cinder refuses to delete
/// the volume, and Nova only logs the refusal.
pub(crate) fn release(world: &mut World, id: &str, delete: bool) {
    let kept = world.store.with_text(Kind::Snapshot, "volume_id", id).next().is_some();
    if delete && !kept {
        world.store.remove(Kind::Volume, id);
        return;
    }
    world.store.set(Kind::Volume, id, "attachments", json!([]));
    world.store.set(Kind::Volume, id, "status", "available");
}
