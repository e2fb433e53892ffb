//! The tags of an object, as Nova and Neutron serve them below the object.

use serde_json::{Value, json};

use crate::object::{ChangeLists, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::resource::ResourceType;
use crate::world::World;

/// The rules of a service for tags.
pub(crate) struct Rules {
    /// The error for a tag that an object does not have.
    pub(crate) missing: fn(&str, &str) -> ApiError,
    /// The tags as they are stored. Refuses wrong tags.
    pub(crate) checked: fn(Vec<Value>) -> ApiResult<Vec<Value>>,
    /// The status of the answer if a tag to add is there already.
    pub(crate) known: u16,
}

/// Answers `METHOD /COLLECTION/{id}/tags/PATH`.
pub(crate) fn answer(
    world: &mut World,
    asked: &ApiRequest,
    (of, id): (&ResourceType, &str),
    path: &[&str],
    rules: &Rules,
) -> ApiAnswer {
    let object = world.store.get_mut(of.kind, id).ok_or_else(|| of.missing(id))?;
    let has = |tag: &str| object.body.lists("tags", tag);
    match (asked.method.as_str(), path) {
        ("GET", []) => Ok(Answer::ok(json!({"tags": object.list("tags")}))),
        ("GET" | "DELETE", [tag]) if !has(tag) => Err((rules.missing)(id, tag)),
        ("GET", [_]) => Ok(Answer::empty(204)),
        ("PUT", []) => {
            let given = asked.json()?.field("tags").as_array().cloned();
            let tags = given.ok_or_else(|| {
                ApiError::bad("Invalid input for tags. Reason: a list is needed.")
            })?;
            object.set("tags", (rules.checked)(tags)?);
            Ok(Answer::ok(json!({"tags": object.list("tags")})))
        }
        ("PUT", [tag]) if has(tag) => Ok(Answer::empty(rules.known)),
        ("PUT", [tag]) => {
            let all = object.list("tags").iter().cloned().chain([json!(tag)]).collect();
            object.set("tags", (rules.checked)(all)?);
            Ok(Answer::empty(201))
        }
        ("DELETE", []) => {
            object.set("tags", json!([]));
            Ok(Answer::empty(204))
        }
        ("DELETE", [tag]) => {
            object.body.drop_from("tags", |mine| mine == tag);
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
