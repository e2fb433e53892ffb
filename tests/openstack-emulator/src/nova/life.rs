//! The life cycle of a server: build, actions, deletion.

use serde_json::{Value, json};

use super::history::note_action;
use super::server::{ports, server};
use super::{group, hosts, limits};
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{BackgroundTask, Event, World, stamp};
use crate::{cinder, neutron};

/// Ends the build of a server.
pub(crate) fn built(world: &mut World, id: &str) {
    let Some(server) = world.store.get(Kind::Server, id) else { return };
    if server.text("status") != "BUILD" || server.note("task") == "deleting" {
        return;
    }
    let doom = server.note("doom").to_owned();
    if !doom.is_empty() {
        return fail(world, id, &doom);
    }
    let Some((host, zone)) = hosts::place(world, id) else {
        return fail(world, id, "No valid host was found. There are not enough hosts available.");
    };
    let mut boots = true;
    if let Some(server) = world.store.get_mut(Kind::Server, id) {
        server.keep("host", host.clone());
        server.keep("task", "");
        server.keep("launched", stamp());
        server.keep("zone", zone.clone());
        server.set("status", "ACTIVE");
        server.set("updated", stamp());
        boots = !server.hidden.contains_key("never_boots");
    }
    for port in ports(world, id) {
        if let Some(port) = world.store.get_mut(Kind::Port, &port) {
            port.set("status", "ACTIVE");
            port.set("device_owner", format!("compute:{zone}"));
            port.keep("host", host.clone());
        }
        neutron::touch(world, Kind::Port, &port);
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
    if let Some(server) = world.store.get_mut(Kind::Server, id) {
        server.set("status", "ERROR");
        server.set("updated", stamp());
        server.keep("task", "");
        server.keep("fault", fault);
    }
}

/// Deletes the ports that Nova created for a server, and detaches the others.
fn release_ports(world: &mut World, id: &str) {
    let made = world
        .store
        .get(Kind::Server, id)
        .and_then(|server| server.hidden.get("made_ports").cloned())
        .unwrap_or_default();
    for port in ports(world, id) {
        if made.as_array().is_some_and(|made| made.iter().any(|one| one == port.as_str())) {
            neutron::delete_port(world, &port);
            continue;
        }
        release_port(world, &port);
    }
    if let Some(server) = world.store.get_mut(Kind::Server, id) {
        server.keep("ports", json!([]));
        server.keep("made_ports", json!([]));
    }
}

/// Detaches a port that existed before the server.
pub(super) fn release_port(world: &mut World, id: &str) {
    if let Some(port) = world.store.get_mut(Kind::Port, id) {
        port.set("device_id", "");
        port.set("device_owner", "");
        port.set("status", "DOWN");
    }
    neutron::touch(world, Kind::Port, id);
}

/// Answers `DELETE /servers/{id}`.
pub(super) fn delete(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let server = server(world, asked, id)?;
    if server.hidden.contains_key("locked") && !asked.caller.is_admin() {
        return Err(ApiError::conflict(format!("Instance {id} is locked")));
    }
    if server.note("task") != "deleting" {
        let delay = world.settings.times.server_delete;
        if let Some(server) = world.store.get_mut(Kind::Server, id) {
            server.keep("task", "deleting");
        }
        note_action(world, asked, id, "delete");
        world.start(BackgroundTask::Halt(id.to_owned()));
        world.later(delay, Event::Gone(Kind::Server, id.to_owned()));
    }
    Ok(Answer::empty(204))
}

/// Removes a server, with the ports and volumes that belong to it alone.
pub(crate) fn gone(world: &mut World, id: &str) {
    release_ports(world, id);
    let Some(server) = world.store.get(Kind::Server, id).cloned() else { return };
    for volume in server.hidden.get("volumes").and_then(Value::as_array).into_iter().flatten() {
        let delete = volume["delete_on_termination"] == true;
        cinder::release(world, volume["id"].as_str().unwrap_or_default(), delete);
    }
    hosts::leave(world, &server);
    limits::give_back(world, &server);
    group::leave(world, &server);
    world.user_data.remove(id);
    world.configs.remove(id);
    world.actions.remove(id);
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
    server.set("status", status);
    server.set("updated", stamp());
    server.keep("task", "");
    server.keep("power", power);
    let restarted = ["REBOOT", "HARD_REBOOT", "REBUILD"].contains(&was.as_str());
    let boots = status == "ACTIVE"
        && (restarted || was == "SHUTOFF")
        && !server.hidden.contains_key("never_boots");
    if restarted || status == "SHUTOFF" {
        world.start(BackgroundTask::Halt(id.to_owned()));
    }
    if boots {
        world.start(BackgroundTask::Boot(id.to_owned()));
    }
}
