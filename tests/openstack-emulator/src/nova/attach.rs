//! Attaches ports and volumes to existing servers.

use serde_json::{Value, json};

use super::server::{port_ids, ports, server};
use super::{life, refuse};
use crate::object::{ChangeLists, Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::World;
use crate::{cinder, neutron};

fn interface(port: &Object) -> Value {
    json!({
        "port_id": port.id, "net_id": port.text("network_id"), "mac_addr": port.text("mac_address"), "port_state": port.text("status"),
        "fixed_ips": port.list("fixed_ips"), "tag": port.hidden.get("tag"),
    })
}

fn shown(world: &World, port: &str) -> ApiAnswer {
    let port = world.store.get(Kind::Port, port).map(interface);
    Ok(Answer::ok(json!({"interfaceAttachment": port})))
}

/// Answers `/servers/{id}/os-interface`.
pub(super) fn interfaces(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    path: &[&str],
) -> ApiAnswer {
    let is_own = |port: &str| port_ids(world, id).iter().any(|one| one == port);
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let all: Vec<Value> = ports(world, server(world, asked, id)?).map(interface).collect();
            Ok(Answer::ok(json!({"interfaceAttachments": all})))
        }
        ("GET", [port]) if is_own(port) => shown(world, port),
        ("POST", []) => attach_port(world, asked, id),
        ("DELETE", [port]) if is_own(port) => {
            let server = world.store.get(Kind::Server, id);
            if server.is_some_and(|server| server.hidden.lists("made_ports", port)) {
                neutron::delete_port(world, port);
            } else {
                life::release_port(world, port);
            }
            world.store.change(Kind::Server, id, |server| {
                server.hidden.drop_from("ports", |one| one == port);
                server.hidden.drop_from("made_ports", |one| one == port);
            });
            Ok(Answer::empty(202))
        }
        (_, [port]) => Err(refuse::port_not_attached(port, id)),
        _ => Err(ApiError::unknown_path()),
    }
}

fn attach_port(world: &mut World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let given = asked.wrapped("interfaceAttachment")?;
    let (port, made) = match (given.text_of("port_id"), given.text_of("net_id")) {
        (Some(port), _) => {
            let found = world.seen(Kind::Port, port, asked);
            let found = found.ok_or_else(|| refuse::no_port(port))?;
            if !found.text("device_id").is_empty() {
                return Err(refuse::port_in_use(port));
            }
            (port.to_owned(), false)
        }
        (None, Some(network)) => {
            let body = json!({"network_id": network});
            (neutron::make_port(world, &asked.caller.project, body)?, true)
        }
        (None, None) => return Err(ApiError::bad("Either port_id or net_id is needed.")),
    };
    let active = server(world, asked, id)?.text("status") == "ACTIVE";
    world.store.change(Kind::Port, &port, |port| {
        port.set("device_id", id);
        port.set("device_owner", "compute:nova");
        port.set("status", if active { "ACTIVE" } else { "DOWN" });
    });
    world.store.change(Kind::Server, id, |server| {
        server.hidden.push_to("ports", port.as_str());
        if made {
            server.hidden.push_to("made_ports", port.as_str());
        }
    });
    shown(world, &port)
}

/// Answers `/servers/{id}/os-volume_attachments`.
pub(super) fn volumes(world: &mut World, asked: &ApiRequest, id: &str, path: &[&str]) -> ApiAnswer {
    let attached = server(world, asked, id)?.hidden.list("volumes").to_vec();
    let shown = |one: &Value| {
        let (volume, device) = (&one["id"], one.text_of("device").unwrap_or("/dev/vda"));
        json!({"id": volume, "volumeId": volume, "serverId": id, "device": device, "delete_on_termination": one["delete_on_termination"], "tag": one["tag"], "attachment_id": volume, "bdm_uuid": volume})
    };
    let find = |volume: &str| -> ApiResult<&Value> {
        let found = attached.iter().find(|one| one["id"] == volume);
        found.ok_or_else(|| refuse::volume_not_attached(id, volume))
    };
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let all: Vec<Value> = attached.iter().map(shown).collect();
            Ok(Answer::ok(json!({"volumeAttachments": all})))
        }
        ("GET", [volume]) => Ok(Answer::ok(json!({"volumeAttachment": shown(find(volume)?)}))),
        ("POST", []) => {
            let given = asked.wrapped("volumeAttachment")?;
            let volume = given.text("volumeId");
            let found = world.seen(Kind::Volume, volume, asked);
            let status = found.ok_or_else(|| refuse::no_volume(volume))?.text("status");
            if status != "available" {
                return Err(refuse::volume_busy(volume, status));
            }
            let letter = char::from(b'b' + u8::try_from(attached.len() % 20).unwrap_or_default());
            let device = format!("/dev/vd{letter}");
            cinder::attach(world, volume, id, &device);
            let one = json!({"id": volume, "device": device, "delete_on_termination": given.is("delete_on_termination")});
            let answer = json!({"volumeAttachment": shown(&one)});
            world.store.change(Kind::Server, id, |server| server.hidden.push_to("volumes", one));
            Ok(Answer::ok(answer))
        }
        ("DELETE", [volume]) => {
            find(volume)?;
            world.store.change(Kind::Server, id, |server| {
                server.hidden.drop_from("volumes", |one| one["id"] == *volume);
            });
            cinder::release(world, volume, false);
            Ok(Answer::empty(202))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
