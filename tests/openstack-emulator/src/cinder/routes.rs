//! Routes Cinder's requests.

use serde_json::{Value, json};

use super::types::{SNAPSHOT, VOLUME};
use super::{limits, volume};
use crate::handlers::{Form, Handlers};
use crate::index::PROJECT;
use crate::list::{self, Lists, Order, PLAIN};
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::resource::{ResourceType, Set};
use crate::world::World;

const HANDLERS: Handlers = Handlers {
    update: "PUT",
    statuses: [202, 200, 202],
    form: Form::Wrapped,
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

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    // Older clients put the id of the project into the path. The token names the project already.
    let path = match path {
        [project, rest @ ..] if *project == asked.caller.project => rest,
        [project, ..]
            if world.store.get(Kind::Project, project).is_some() && !asked.caller.is_admin() =>
        {
            return Err(ApiError::bad("Malformed request url"));
        }
        [project, rest @ ..] if world.store.get(Kind::Project, project).is_some() => rest,
        all => all,
    };
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
            match (method, rest) {
                ("GET", []) => brief(world, asked, of),
                ("GET", ["detail"]) => HANDLERS.list(world, asked, of, None),
                _ => HANDLERS.answer(world, asked, of, rest),
            }
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Whether a list is about all projects.
fn everybody(asked: &ApiRequest) -> bool {
    asked.caller.is_admin() && asked.query("all_tenants").is_some() && asked.flag("all_tenants")
}

/// Lists only names and links.
fn brief(world: &World, asked: &ApiRequest, of: &ResourceType) -> AnswerResult {
    let page = list::page(world, asked, of, &HANDLERS.lists, None)?;
    list::answer(asked, of, HANDLERS.lists.links, page, |one| {
        let all = shown(world, asked, of, one);
        json!({"id": all["id"], "name": all["name"], "links": all["links"]})
    })
}

fn shown(_: &World, asked: &ApiRequest, of: &ResourceType, object: &Object) -> Value {
    let mut body = object.shown();
    let href = format!("{}/v3/{}/{}/{}", asked.root(), object.project, of.path, object.id);
    body["links"] = json!([{"rel": "self", "href": href}]);
    body
}

fn types(world: &World, path: &[&str]) -> AnswerResult {
    match path {
        [] => {
            let all: Vec<Value> = world.store.all(Kind::VolumeType).map(Object::shown).collect();
            Ok(Answer::ok(json!({"volume_types": all})))
        }
        [id] => {
            let found = world.store.find(Kind::VolumeType, |one| {
                one.id == *id || *id == "default" || one.text("name") == *id
            });
            let found = found.ok_or_else(|| {
                ApiError::missing(format!("Volume type {id} could not be found."))
            })?;
            Ok(Answer::ok(json!({"volume_type": found.shown()})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
