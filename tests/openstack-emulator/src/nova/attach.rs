//! Attaches ports and volumes to existing servers.

use serde_json::{Value, json};

use super::life;
use super::server::ports;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;
use crate::{cinder, neutron};

fn interface(port: &Object) -> Value {
    json!({
        "port_id": port.id, "net_id": port.text("network_id"), "mac_addr": port.text("mac_address"), "port_state": port.text("status"),
        "fixed_ips": port.list("fixed_ips"), "tag": port.hidden.get("tag"),
    })
}

pub(super) fn interfaces(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    path: &[&str],
) -> AnswerResult {
    let ports = ports(world, id);
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let all: Vec<Value> = ports
                .iter()
                .filter_map(|port| world.store.get(Kind::Port, port))
                .map(interface)
                .collect();
            Ok(Answer::ok(json!({"interfaceAttachments": all})))
        }
        ("GET", [port]) if ports.iter().any(|one| one == port) => {
            let port = world.store.get(Kind::Port, port).map(interface);
            Ok(Answer::ok(json!({"interfaceAttachment": port})))
        }
        ("POST", []) => {
            let given = asked.wrapped("interfaceAttachment")?;
            let text = |key: &str| given.get(key).and_then(Value::as_str);
            let (port, made) = match (text("port_id"), text("net_id")) {
                (Some(port), _) => {
                    let found = world.seen(Kind::Port, port, asked).ok_or_else(|| {
                        ApiError::missing(format!("Port {port} could not be found."))
                    })?;
                    if !found.text("device_id").is_empty() {
                        return Err(ApiError::bad(format!("Port {port} is still in use.")));
                    }
                    (port.to_owned(), false)
                }
                (None, Some(network)) => (
                    neutron::make_port(
                        world,
                        &asked.caller.project,
                        json!({"network_id": network}),
                    )?,
                    true,
                ),
                (None, None) => return Err(ApiError::bad("Either port_id or net_id is needed.")),
            };
            let active = world
                .store
                .get(Kind::Server, id)
                .is_some_and(|server| server.text("status") == "ACTIVE");
            if let Some(port) = world.store.get_mut(Kind::Port, &port) {
                port.set("device_id", id);
                port.set("device_owner", "compute:nova");
                port.set("status", if active { "ACTIVE" } else { "DOWN" });
            }
            push(world, id, "ports", &port);
            if made {
                push(world, id, "made_ports", &port);
            }
            let shown = world.store.get(Kind::Port, &port).map(interface);
            Ok(Answer::ok(json!({"interfaceAttachment": shown})))
        }
        ("DELETE", [port]) if ports.iter().any(|one| one == port) => {
            let made = world.store.get(Kind::Server, id).is_some_and(|server| {
                server
                    .hidden
                    .get("made_ports")
                    .and_then(Value::as_array)
                    .is_some_and(|made| made.iter().any(|one| one == port))
            });
            if made {
                neutron::delete_port(world, port);
            } else {
                life::release_port(world, port);
            }
            drop_from(world, id, "ports", |one| one == port);
            drop_from(world, id, "made_ports", |one| one == port);
            Ok(Answer::empty(202))
        }
        (_, [port]) => {
            Err(ApiError::missing(format!("Port {port} is not attached to the instance {id}")))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn push(world: &mut World, id: &str, list: &str, value: &str) {
    if let Some(server) = world.store.get_mut(Kind::Server, id) {
        let mut all =
            server.hidden.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
        all.push(json!(value));
        server.keep(list, all);
    }
}

fn drop_from(world: &mut World, id: &str, list: &str, gone: impl Fn(&Value) -> bool) {
    if let Some(server) = world.store.get_mut(Kind::Server, id) {
        let mut all =
            server.hidden.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
        all.retain(|one| !gone(one));
        server.keep(list, all);
    }
}

pub(super) fn volumes(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    path: &[&str],
) -> AnswerResult {
    let attached = world
        .store
        .get(Kind::Server, id)
        .and_then(|server| server.hidden.get("volumes")?.as_array().cloned())
        .unwrap_or_default();
    let shown = |one: &Value| {
        let volume = one["id"].clone();
        let device = one["device"].as_str().unwrap_or("/dev/vda");
        json!({"id": volume, "volumeId": volume, "serverId": id, "device": device, "delete_on_termination": one["delete_on_termination"], "tag": one["tag"], "attachment_id": volume, "bdm_uuid": volume})
    };
    match (asked.method.as_str(), path) {
        ("GET", []) => Ok(Answer::ok(
            json!({"volumeAttachments": attached.iter().map(shown).collect::<Vec<_>>()}),
        )),
        ("GET", [volume]) => {
            let one = attached.iter().find(|one| one["id"] == *volume);
            let one = one.ok_or_else(|| {
                ApiError::missing(format!("Instance {id} is not attached to volume {volume}"))
            })?;
            Ok(Answer::ok(json!({"volumeAttachment": shown(one)})))
        }
        ("POST", []) => {
            let given = asked.wrapped("volumeAttachment")?;
            let volume =
                given.get("volumeId").and_then(Value::as_str).unwrap_or_default().to_owned();
            let status = world
                .seen(Kind::Volume, &volume, asked)
                .map(|volume| volume.text("status").to_owned());
            match status.as_deref() {
                None => {
                    return Err(ApiError::missing(format!("Volume {volume} could not be found.")));
                }
                Some("available") => {}
                Some(other) => {
                    return Err(ApiError::bad(format!(
                        "Invalid input received: Invalid volume: Volume {volume} status must be available or downloading to reserve, but the current status is {other}."
                    )));
                }
            }
            let device = format!(
                "/dev/vd{}",
                char::from(b'b' + u8::try_from(attached.len() % 20).unwrap_or_default())
            );
            cinder::attach(world, &volume, id, &device);
            let one = json!({"id": volume, "device": device, "delete_on_termination": given.get("delete_on_termination").and_then(Value::as_bool).unwrap_or(false)});
            if let Some(server) = world.store.get_mut(Kind::Server, id) {
                let mut all = attached.clone();
                all.push(one.clone());
                server.keep("volumes", all);
            }
            Ok(Answer::ok(json!({"volumeAttachment": shown(&one)})))
        }
        ("DELETE", [volume]) => {
            if !attached.iter().any(|one| one["id"] == *volume) {
                return Err(ApiError::missing(format!(
                    "Instance {id} is not attached to volume {volume}"
                )));
            }
            drop_from(world, id, "volumes", |one| one["id"] == *volume);
            cinder::release(world, volume, false);
            Ok(Answer::empty(202))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
