//! Routes Glance's requests.

use serde_json::json;

use super::access::{missing, sees};
use super::{data, image, member};
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let method = asked.method.as_str();
    if method != "GET" {
        asked.writer()?;
    }
    match (method, path) {
        ("GET", ["images"]) => image::list(world, asked),
        ("POST", ["images"]) => image::create(world, asked),
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
        (_, ["images", id, rest @ ..]) => {
            let seen = world.store.get(Kind::Image, id).filter(|image| sees(asked, image));
            let owner = seen.ok_or_else(|| missing(id))?.project.clone();
            if method != "GET" && !asked.sees(&owner) {
                return Err(ApiError::forbidden("You are not authorized to complete this action."));
            }
            match (method, rest) {
                ("GET", []) => image::show(world, asked, id),
                ("PATCH", []) => image::patch(world, asked, id),
                ("DELETE", []) => image::delete(world, id),
                ("PUT", ["tags", tag]) => image::tag(world, id, tag, true),
                ("DELETE", ["tags", tag]) => image::tag(world, id, tag, false),
                ("PUT", ["file"]) => data::upload(world, asked, id),
                ("GET", ["file"]) => data::download(world, id),
                ("PUT", ["stage"]) => data::stage(world, asked, id),
                ("POST", ["import"]) => data::import(world, asked, id),
                ("POST", ["actions", action @ ("deactivate" | "reactivate")]) => {
                    let status = if *action == "deactivate" { "deactivated" } else { "active" };
                    if let Some(image) = world.store.get_mut(Kind::Image, id) {
                        image.set("status", status);
                    }
                    Ok(Answer::empty(204))
                }
                _ => Err(ApiError::unknown_path()),
            }
        }
        _ => Err(ApiError::unknown_path()),
    }
}
