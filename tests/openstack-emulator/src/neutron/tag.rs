//! The tags of Neutron's objects.

use serde_json::{Value, json};

use super::object::touch;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::resource::ResourceType;
use crate::world::World;

/// The most characters of a tag.
const LONGEST: usize = 255;

pub(super) fn answer(
    world: &mut World,
    asked: &ApiRequest,
    of: &ResourceType,
    id: &str,
    path: &[&str],
) -> AnswerResult {
    let object = world.store.get_mut(of.kind, id).ok_or_else(|| of.missing(id))?;
    if asked.method != http::Method::GET && !asked.sees(&object.project) {
        return Err(ApiError::forbidden("rule:update_tags is disallowed by policy"));
    }
    let mut tags = object.list("tags").to_vec();
    let has = |tag: &str| tags.iter().any(|mine| mine == tag);
    let missing =
        |tag: &str| ApiError::new(404, "TagNotFound", format!("Tag {tag} could not be found."));
    let answer = match (asked.method.as_str(), path) {
        ("GET", []) => return Ok(Answer::ok(json!({"tags": tags}))),
        ("GET", [tag]) => return if has(tag) { Ok(Answer::empty(204)) } else { Err(missing(tag)) },
        ("PUT", []) => {
            tags = checked(asked.json()?["tags"].as_array())?;
            Answer::ok(json!({"tags": tags}))
        }
        ("PUT", [tag]) => {
            if !has(tag) {
                tags.push(json!(tag));
            }
            Answer::empty(201)
        }
        ("DELETE", []) => {
            tags.clear();
            Answer::empty(204)
        }
        ("DELETE", [tag]) => {
            if !has(tag) {
                return Err(missing(tag));
            }
            tags.retain(|mine| mine != tag);
            Answer::empty(204)
        }
        _ => return Err(ApiError::unknown_path()),
    };
    object.set("tags", tags);
    touch(world, of.kind, id);
    Ok(answer)
}

/// The tags of a request without duplicates. Refuses tags that are too long.
pub(super) fn checked(tags: Option<&Vec<Value>>) -> Result<Vec<Value>, ApiError> {
    let invalid = |what: &str| {
        ApiError::new(400, "HTTPBadRequest", format!("Invalid input for tags. Reason: {what}."))
    };
    let mut checked: Vec<Value> = Vec::new();
    for tag in tags.ok_or_else(|| invalid("a list is needed"))? {
        let text = tag.as_str().ok_or_else(|| invalid("a tag is a string"))?;
        if text.len() > LONGEST {
            return Err(invalid("'tag' exceeds maximum length of 255"));
        }
        if !checked.contains(tag) {
            checked.push(tag.clone());
        }
    }
    Ok(checked)
}
