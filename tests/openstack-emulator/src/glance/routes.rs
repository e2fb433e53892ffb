//! Routes Glance's requests.

use serde_json::json;

use super::types::{self as refuse, IMAGE};
use super::{data, image, member};
use crate::handlers::{Form, Handlers};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::world::World;

const HANDLERS: Handlers = Handlers {
    update: "PATCH",
    statuses: [201, 200, 204],
    form: Form::Bare,
    brief: false,
    lists: image::LISTS,
    sees: |_, asked, _, one| image::sees(asked, one),
    shown: |_, _, _, one| image::shown(one),
    create: |world, asked, _, given| image::create(world, asked, given),
    change: |world, asked, _, id, _| image::patch(world, asked, id),
    delete: |world, _, _, id| image::delete(world, id),
};

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let method = asked.method.as_str();
    if method != "GET" {
        asked.writer()?;
    }
    match (method, path) {
        ("POST", ["images"]) => {
            let given = asked.json()?;
            let given = given.as_object();
            let given = given.ok_or_else(|| ApiError::bad("Malformed JSON in request body."))?;
            let id = image::create(world, asked, given)?;
            let answer = HANDLERS.one(world, asked, &IMAGE, &id, 201)?;
            let answer = answer.with("location", format!("{}/v2/images/{id}", asked.root()));
            Ok(answer.with("openstack-image-import-methods", "glance-direct,web-download"))
        }
        ("GET", ["info", "import"]) => {
            let methods = json!({"description": "Import methods available.", "type": "array", "value": ["glance-direct", "web-download"]});
            Ok(Answer::ok(json!({"import-methods": methods})))
        }
        ("GET", ["info", "stores"]) => {
            Ok(Answer::ok(json!({"stores": [{"id": "file", "default": "true"}]})))
        }
        ("GET", ["schemas", ..]) => Ok(Answer::ok(
            json!({"name": path.last(), "properties": {}, "additionalProperties": {"type": "string"}}),
        )),
        (_, ["images", id, "members", rest @ ..]) => member::answer(world, asked, id, rest),
        (_, ["images", rest @ ..]) => one(world, asked, rest),
        _ => Err(ApiError::unknown_path()),
    }
}

/// Answers requests for the list of images, or for one image. Only the owner changes an image.
fn one(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let method = asked.method.as_str();
    let [id, rest @ ..] = path else { return HANDLERS.answer(world, asked, &IMAGE, path) };
    let image = HANDLERS.find(world, asked, &IMAGE, id)?;
    if method != "GET" && !asked.sees(&image.project) {
        return Err(refuse::unauthorized());
    }
    match (method, rest) {
        ("GET", ["file"]) => return data::download(world, image),
        ("POST", ["import"]) => {
            data::import(world, asked, id)?;
            return Ok(Answer::empty(202));
        }
        ("PUT" | "DELETE", ["tags", tag]) => image::tag(world, asked, id, tag)?,
        ("PUT", ["file"]) => data::upload(world, asked, id)?,
        ("PUT", ["stage"]) => data::stage(world, asked, id)?,
        ("POST", ["actions", "deactivate"]) => {
            world.store.set(IMAGE.kind, id, "status", "deactivated");
        }
        ("POST", ["actions", "reactivate"]) => world.store.set(IMAGE.kind, id, "status", "active"),
        _ => return HANDLERS.answer(world, asked, &IMAGE, path),
    }
    Ok(Answer::empty(204))
}
