//! Routes Cinder's requests.

use serde_json::{Value, json};

use super::types::{SNAPSHOT, VOLUME, no_type};
use super::{limits, volume};
use crate::handlers::{Form, Handlers};
use crate::index::PROJECT;
use crate::list::{Lists, Order, PLAIN};
use crate::object::{Kind, Object};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::resource::{ResourceType, Set};
use crate::world::World;

const HANDLERS: Handlers = Handlers {
    update: "PUT",
    statuses: [202, 200, 202],
    form: Form::Wrapped,
    brief: true,
    lists: Lists {
        controls: "limit marker offset sort sort_key sort_dir all_tenants with_count metadata",
        sees: |_, asked, _, one| everybody(asked) || one.project == asked.caller.project,
        scope: |_, asked, _| {
            let project = vec![(PROJECT, asked.caller.project.as_str())];
            (!everybody(asked)).then_some(project)
        },
        order: Order::Newest,
        ..PLAIN
    },
    sees: |_, asked, _, one| asked.sees(&one.project),
    shown,
    create: |world, asked, of, given| match of.path {
        "volumes" => volume::create(world, asked, given),
        _ => volume::create_snapshot(world, asked, given),
    },
    change: |world, _, of, id, given| {
        if let Some(one) = world.store.get_mut(of.kind, id) {
            let given = of.settable(given, Set::Later);
            one.body.extend(given.map(|(key, value)| (key.clone(), value.clone())));
        }
        Ok(())
    },
    delete: |world, asked, of, id| volume::delete(world, asked, of.kind, id),
};

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    // Older clients put the id of the project into the path. The token names the project already.
    let (is_own, is_other) = match path {
        [first, ..] if *first == asked.caller.project => (true, false),
        [first, ..] => (false, world.store.get(Kind::Project, first).is_some()),
        [] => (false, false),
    };
    if is_other && !asked.caller.is_admin() {
        return Err(ApiError::bad("Malformed request url"));
    }
    let path = if is_own || is_other { &path[1..] } else { path };
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
        (_, ["volumes", id, "action"]) => volume::action(world, asked, id),
        (_, ["volumes", id, "metadata"]) => volume::metadata(world, asked, id),
        (_, [collection, rest @ ..]) => {
            let of = [&VOLUME, &SNAPSHOT].into_iter().find(|of| of.path == *collection);
            let of = of.ok_or_else(ApiError::unknown_path)?;
            HANDLERS.answer(world, asked, of, rest)
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Whether a list is about all projects.
fn everybody(asked: &ApiRequest) -> bool {
    asked.caller.is_admin() && asked.flag("all_tenants")
}

fn shown(_: &World, asked: &ApiRequest, of: &ResourceType, object: &Object) -> Value {
    let mut body = object.shown();
    let href = format!("{}/v3/{}/{}/{}", asked.root(), object.project, of.path, object.id);
    body["links"] = json!([{"rel": "self", "href": href}]);
    body
}

fn types(world: &World, path: &[&str]) -> ApiAnswer {
    let mut all = world.store.all(Kind::VolumeType);
    match path {
        [] => {
            let all: Vec<Value> = all.map(Object::shown).collect();
            Ok(Answer::ok(json!({"volume_types": all})))
        }
        [id] => {
            let is = |one: &&Object| one.id == *id || *id == "default" || one.text("name") == *id;
            let found = all.find(is).ok_or_else(|| no_type(id))?;
            Ok(Answer::ok(json!({"volume_type": found.shown()})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
