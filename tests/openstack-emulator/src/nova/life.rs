//! The life cycle of a server: build, actions, deletion.

use serde_json::json;

use super::server::{enter, note_action};
use super::server::{port_ids, server};
use super::{group, hosts, limits, refuse};
use crate::object::{Kind, ReadFields};
use crate::request::{ApiRequest, ApiResult};
use crate::world::{BackgroundTask, Event, World, stamp};
use crate::{cinder, neutron};

/// Ends the build of a server.
pub(crate) fn built(world: &mut World, id: &str) {
    let Some(server) = world.store.get(Kind::Server, id) else { return };
    if server.text("status") != "BUILD" || server.note("task") == "deleting" {
        return;
    }
    let (doom, boots) =
        (server.note("doom").to_owned(), !server.hidden.contains_key("never_boots"));
    if !doom.is_empty() {
        return fail(world, id, &doom);
    }
    let Some((host, zone)) = hosts::place(world, id) else {
        return fail(world, id, "No valid host was found. There are not enough hosts available.");
    };
    enter(world, id, "ACTIVE", "");
    world.store.change(Kind::Server, id, |server| {
        server.keep("host", host.as_str());
        server.keep("launched", stamp());
        server.keep("zone", zone.as_str());
        server.set("updated", stamp());
    });
    for port in port_ids(world, id) {
        neutron::update(world, Kind::Port, &port, |port| {
            port.set("status", "ACTIVE");
            port.set("device_owner", format!("compute:{zone}"));
            port.keep("host", host.as_str());
        });
    }
    // A floating IP may have been associated with a port before the server existed.
    world.start(BackgroundTask::Reopen);
    if boots {
        world.start(BackgroundTask::Boot(id.to_owned()));
    }
}

fn fail(world: &mut World, id: &str, message: &str) {
    let fault = json!({"code": 500, "created": stamp(), "message": message, "details": ""});
    // A server whose build failed has no ports.
    release_ports(world, id);
    enter(world, id, "ERROR", "");
    world.store.set(Kind::Server, id, "updated", stamp());
    world.store.keep(Kind::Server, id, "fault", fault);
}

/// Deletes the ports that Nova created for a server, and detaches the others.
fn release_ports(world: &mut World, id: &str) {
    let Some(server) = world.store.get(Kind::Server, id).cloned() else { return };
    for port in server.hidden.texts("ports") {
        match server.hidden.lists("made_ports", port) {
            true => neutron::delete_port(world, port),
            false => release_port(world, port),
        }
    }
    world.store.keep(Kind::Server, id, "ports", json!([]));
    world.store.keep(Kind::Server, id, "made_ports", json!([]));
}

/// Detaches a port that existed before the server.
pub(super) fn release_port(world: &mut World, id: &str) {
    neutron::update(world, Kind::Port, id, |port| {
        port.set("device_id", "");
        port.set("device_owner", "");
        port.set("status", "DOWN");
    });
}

/// Begins the deletion of a server.
pub(super) fn delete(world: &mut World, asked: &ApiRequest, id: &str) -> ApiResult {
    let server = server(world, asked, id)?;
    if server.hidden.contains_key("locked") && !asked.caller.is_admin() {
        return Err(refuse::locked(id));
    }
    if server.note("task") != "deleting" {
        world.store.keep(Kind::Server, id, "task", "deleting");
        note_action(world, asked, id, "delete");
        world.start(BackgroundTask::Halt(id.to_owned()));
        let delay = world.settings.times.server_delete;
        world.later(delay, Event::Gone(Kind::Server, id.to_owned()));
    }
    Ok(())
}

/// Removes a server, with the ports and volumes that belong to it alone.
pub(crate) fn gone(world: &mut World, id: &str) {
    release_ports(world, id);
    let Some(server) = world.store.get(Kind::Server, id).cloned() else { return };
    for volume in server.hidden.list("volumes") {
        cinder::release(world, volume.text("id"), volume.is("delete_on_termination"));
    }
    hosts::leave(world, &server);
    limits::give_back(world, &server);
    group::leave(world, &server);
    world.records.user_data.remove(id);
    world.records.configs.remove(id);
    world.records.actions.remove(id);
    world.store.remove(Kind::Server, id);
    world.start(BackgroundTask::Halt(id.to_owned()));
}

/// Ends an action of a server.
pub(crate) fn acted(world: &mut World, id: &str, status: &str, power: i64) {
    let Some(server) = world.store.get_mut(Kind::Server, id) else { return };
    if server.note("task") == "deleting" {
        return;
    }
    let was = server.text("status").to_owned();
    let never_boots = server.hidden.contains_key("never_boots");
    server.set("updated", stamp());
    server.keep("power", power);
    enter(world, id, status, "");
    let restarted = ["REBOOT", "HARD_REBOOT", "REBUILD"].contains(&was.as_str());
    if restarted || status == "SHUTOFF" {
        world.start(BackgroundTask::Halt(id.to_owned()));
    }
    if status == "ACTIVE" && (restarted || was == "SHUTOFF") && !never_boots {
        world.start(BackgroundTask::Boot(id.to_owned()));
    }
}
