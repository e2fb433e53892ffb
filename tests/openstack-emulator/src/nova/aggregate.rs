//! Host aggregates, some of which are availability zones.

use serde_json::{Value, json};

use super::compute_host;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, fine_stamp};

/// The zone of hosts that are in no other zone.
const DEFAULT_ZONE: &str = "nova";

/// Adds a host of the settings to the aggregate of its zone.
pub(super) fn plant(world: &mut World, host: &str, zone: &str) {
    if zone == DEFAULT_ZONE {
        return;
    }
    let found = world.store.find(Kind::Aggregate, |one| one.text("name") == zone);
    let id = match found {
        Some(found) => found.id.clone(),
        None => insert(world, zone, Some(zone)),
    };
    add(world, &id, host);
}

/// The availability zone of a host.
pub(super) fn zone<'w>(world: &'w World, host: &str) -> &'w str {
    let of = |one: &Object| !one.note("zone").is_empty() && has(one, host);
    world.store.find(Kind::Aggregate, of).map_or(DEFAULT_ZONE, |one| one.note("zone"))
}

fn has(aggregate: &Object, host: &str) -> bool {
    aggregate.list("hosts").iter().any(|one| one == host)
}

fn insert(world: &mut World, name: &str, zone: Option<&str>) -> String {
    let numbers = world.store.all(Kind::Aggregate).filter_map(|one| one.id.parse::<u64>().ok());
    let number = numbers.max().unwrap_or_default() + 1;
    let body =
        json!({"id": number.to_string(), "name": name, "hosts": [], "created_at": fine_stamp()});
    let mut made = world.object("", body);
    made.keep("zone", zone.unwrap_or_default());
    let id = made.id.clone();
    world.store.insert(Kind::Aggregate, made);
    id
}

fn add(world: &mut World, id: &str, host: &str) {
    if let Some(aggregate) = world.store.get_mut(Kind::Aggregate, id) {
        let mut hosts = aggregate.list("hosts").to_vec();
        hosts.push(json!(host));
        aggregate.set("hosts", hosts);
    }
}

fn shown(one: &Object) -> Value {
    let zone = one.note("zone");
    let metadata = if zone.is_empty() { json!({}) } else { json!({"availability_zone": zone}) };
    json!({
        "id": one.id.parse::<u64>().unwrap_or_default(), "uuid": one.id, "name": one.text("name"), "hosts": one.list("hosts"),
        "availability_zone": if zone.is_empty() { Value::Null } else { json!(zone) }, "metadata": metadata,
        "created_at": one.text("created_at"), "updated_at": null, "deleted_at": null, "deleted": false,
    })
}

/// Answers `/os-aggregates`.
pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    asked.admin("os_compute_api:os-aggregates:index")?;
    let wrapped = |one: &Object| Ok(Answer::ok(json!({"aggregate": shown(one)})));
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let all: Vec<Value> = world.store.all(Kind::Aggregate).map(shown).collect();
            Ok(Answer::ok(json!({"aggregates": all})))
        }
        ("POST", []) => {
            let body = asked.wrapped("aggregate")?;
            let name = body.get("name").and_then(Value::as_str).unwrap_or_default();
            if name.is_empty() || name.len() > 255 {
                return Err(ApiError::bad("Invalid input for field/attribute name."));
            }
            let zone = body.get("availability_zone").and_then(Value::as_str);
            if zone.is_some_and(|zone| zone.contains(':')) {
                return Err(ApiError::bad("Invalid input for field/attribute availability_zone."));
            }
            if world.store.find(Kind::Aggregate, |one| one.text("name") == name).is_some() {
                return Err(ApiError::conflict(format!("Aggregate {name} already exists.")));
            }
            let id = insert(world, name, zone);
            wrapped(find(world, &id)?)
        }
        ("GET", [id]) => wrapped(find(world, id)?),
        ("DELETE", [id]) => {
            if !find(world, id)?.list("hosts").is_empty() {
                return Err(ApiError::bad(format!(
                    "Cannot remove host from aggregate {id}. Reason: Host aggregate is not empty."
                )));
            }
            world.store.remove(Kind::Aggregate, id);
            Ok(Answer::empty(200))
        }
        ("POST", [id, "action"]) => {
            let body = asked.json()?;
            let host = |action: &str| body[action]["host"].as_str();
            match (host("add_host"), host("remove_host")) {
                (Some(host), None) => add_host(world, id, host)?,
                (None, Some(host)) => remove_host(world, id, host)?,
                _ => return Err(ApiError::bad("There is no such action.")),
            }
            wrapped(find(world, id)?)
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn find<'w>(world: &'w World, id: &str) -> Result<&'w Object, ApiError> {
    let missing = || ApiError::missing(format!("Aggregate {id} could not be found."));
    world.store.get(Kind::Aggregate, id).ok_or_else(missing)
}

fn add_host(world: &mut World, id: &str, host: &str) -> Result<(), ApiError> {
    let aggregate = find(world, id)?;
    if compute_host::discovered(world, host).is_none() {
        return Err(ApiError::missing(format!("Compute host {host} could not be found.")));
    }
    if has(aggregate, host) {
        return Err(ApiError::conflict(format!("Aggregate {id} already has host {host}.")));
    }
    let (wanted, now) = (aggregate.note("zone"), zone(world, host));
    if !wanted.is_empty() && now != DEFAULT_ZONE && now != wanted {
        return Err(ApiError::conflict(format!(
            "Cannot add host to aggregate {id}. Reason: One or more hosts already in availability zone(s) ['{now}']."
        )));
    }
    add(world, id, host);
    Ok(())
}

fn remove_host(world: &mut World, id: &str, host: &str) -> Result<(), ApiError> {
    if !has(find(world, id)?, host) {
        return Err(ApiError::missing(format!("Aggregate {id} has no host {host}.")));
    }
    remove(world, id, host);
    Ok(())
}

fn remove(world: &mut World, id: &str, host: &str) {
    if let Some(aggregate) = world.store.get_mut(Kind::Aggregate, id) {
        let hosts = aggregate.list("hosts").iter().filter(|one| *one != host).cloned();
        let hosts: Vec<Value> = hosts.collect();
        aggregate.set("hosts", hosts);
    }
}

/// Removes a host from all aggregates, as Nova does when its compute service is deleted.
pub(super) fn forget(world: &mut World, host: &str) {
    let of = world.store.all(Kind::Aggregate).filter(|one| has(one, host));
    for id in of.map(|one| one.id.clone()).collect::<Vec<_>>() {
        remove(world, &id, host);
    }
}
