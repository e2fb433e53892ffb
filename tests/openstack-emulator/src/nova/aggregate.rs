//! Host aggregates, some of which are availability zones.

use serde_json::{Value, json};

use super::types::AGGREGATE;
use super::{compute_host, refuse};
use crate::object::{ChangeLists, Fields, Kind, Object, ReadFields};
use crate::request::{ApiError, ApiRequest, ApiResult};
use crate::world::{World, fine_stamp};

/// The zone of hosts that are in no other zone.
const DEFAULT_ZONE: &str = "nova";

/// Adds a host of the settings to the aggregate of its zone.
pub(super) fn plant(world: &mut World, host: &str, zone: &str) {
    if zone == DEFAULT_ZONE {
        return;
    }
    let found = world.store.named(Kind::Aggregate, zone).map(|found| found.id.clone());
    let id = found.unwrap_or_else(|| insert(world, zone, &json!(zone)));
    world.store.change(Kind::Aggregate, &id, |one| one.body.push_to("hosts", host));
}

pub(super) fn zone<'w>(world: &'w World, host: &str) -> &'w str {
    let of = |one: &Object| !one.text("availability_zone").is_empty() && has(one, host);
    let found = world.store.find(Kind::Aggregate, of);
    found.map_or(DEFAULT_ZONE, |one| one.text("availability_zone"))
}

fn has(aggregate: &Object, host: &str) -> bool {
    aggregate.body.lists("hosts", host)
}

fn insert(world: &mut World, name: &str, zone: &Value) -> String {
    let numbers = world.store.all(Kind::Aggregate).filter_map(|one| one.id.parse::<u64>().ok());
    let number = numbers.max().unwrap_or_default() + 1;
    let mut body = AGGREGATE.filled([]);
    body["id"] = json!(number.to_string());
    body["name"] = json!(name);
    body["created_at"] = json!(fine_stamp());
    if zone.is_string() {
        body["availability_zone"] = zone.clone();
        body["metadata"] = json!({"availability_zone": zone});
    }
    world.add(Kind::Aggregate, "", body)
}

pub(super) fn shown(one: &Object) -> Value {
    let mut body = one.shown();
    body["id"] = json!(one.id.parse::<u64>().unwrap_or_default());
    body["uuid"] = json!(one.id);
    body
}

pub(super) fn create(world: &mut World, _: &ApiRequest, given: &Fields) -> ApiResult<String> {
    let name = given.text("name");
    if name.is_empty() || name.len() > 255 {
        return Err(refuse::bad_aggregate("name"));
    }
    if given.text("availability_zone").contains(':') {
        return Err(refuse::bad_aggregate("availability_zone"));
    }
    if world.store.named(Kind::Aggregate, name).is_some() {
        return Err(refuse::aggregate_exists(name));
    }
    Ok(insert(world, name, given.field("availability_zone")))
}

pub(super) fn delete(world: &mut World, id: &str) -> ApiResult {
    if !find(world, id)?.list("hosts").is_empty() {
        return Err(refuse::aggregate_not_empty(id));
    }
    world.store.remove(Kind::Aggregate, id);
    Ok(())
}

/// Adds or removes a host, as `POST /os-aggregates/{id}/action` asks.
pub(super) fn act(world: &mut World, asked: &ApiRequest, id: &str) -> ApiResult {
    let body = asked.json()?;
    match (body["add_host"].text_of("host"), body["remove_host"].text_of("host")) {
        (Some(host), None) => add_host(world, id, host),
        (None, Some(host)) => remove_host(world, id, host),
        _ => Err(ApiError::bad("There is no such action.")),
    }
}

fn find<'w>(world: &'w World, id: &str) -> ApiResult<&'w Object> {
    world.store.get(Kind::Aggregate, id).ok_or_else(|| AGGREGATE.missing(id))
}

fn add_host(world: &mut World, id: &str, host: &str) -> ApiResult {
    let aggregate = find(world, id)?;
    if compute_host::discovered(world, host).is_none() {
        return Err(refuse::no_compute_host(host));
    }
    if has(aggregate, host) {
        return Err(refuse::aggregate_has_host(id, host));
    }
    let (wanted, now) = (aggregate.text("availability_zone"), zone(world, host));
    if !wanted.is_empty() && now != DEFAULT_ZONE && now != wanted {
        return Err(refuse::host_in_other_zone(id, now));
    }
    world.store.change(Kind::Aggregate, id, |one| one.body.push_to("hosts", host));
    Ok(())
}

fn remove_host(world: &mut World, id: &str, host: &str) -> ApiResult {
    if !has(find(world, id)?, host) {
        return Err(refuse::aggregate_lacks_host(id, host));
    }
    remove(world, id, host);
    Ok(())
}

fn remove(world: &mut World, id: &str, host: &str) {
    world.store.change(Kind::Aggregate, id, |one| one.body.drop_from("hosts", |it| it == host));
}

/// Removes a host from all aggregates, as Nova does when its compute service is deleted.
pub(super) fn forget(world: &mut World, host: &str) {
    for id in world.store.ids(Kind::Aggregate, "hosts", host) {
        remove(world, &id, host);
    }
}
