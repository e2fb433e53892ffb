//! The name, metadata, tags and security groups of a server.

use serde_json::{Value, json};

use super::server::{ports, server};
use super::view;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, stamp};

/// The most tags of a server.
const MOST_TAGS: usize = 50;

/// Answers `PUT /servers/{id}`.
pub(super) fn rename(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let given = asked.wrapped("server")?;
    if let Some(server) = world.store.get_mut(Kind::Server, id) {
        for key in ["name", "description"] {
            if let Some(value) = given.get(key) {
                server.set(key, value.clone());
            }
        }
        server.set("updated", stamp());
    }
    let shown = view::detail(world, asked, server(world, asked, id)?);
    Ok(Answer::ok(json!({"server": shown})))
}

pub(super) fn metadata(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    path: &[&str],
) -> AnswerResult {
    let Some(server) = world.store.get_mut(Kind::Server, id) else {
        return Err(ApiError::unknown_path());
    };
    let mut metadata = server.body.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let missing = || ApiError::missing("Metadata item was not found");
    let answer = match (asked.method.as_str(), path) {
        ("GET", []) => return Ok(Answer::ok(json!({"metadata": metadata}))),
        ("GET", [key]) => {
            let value = metadata.get(*key).ok_or_else(missing)?;
            return Ok(Answer::ok(json!({"meta": {*key: value}})));
        }
        ("PUT", []) => {
            metadata = json!(asked.wrapped("metadata")?);
            Answer::ok(json!({"metadata": metadata}))
        }
        ("POST", []) => {
            for (key, value) in asked.wrapped("metadata")? {
                metadata[key] = value;
            }
            Answer::ok(json!({"metadata": metadata}))
        }
        ("PUT", [key]) => {
            let value = asked.wrapped("meta")?.get(*key).cloned().unwrap_or_default();
            metadata[*key] = value.clone();
            Answer::ok(json!({"meta": {*key: value}}))
        }
        ("DELETE", [key]) => {
            metadata
                .as_object_mut()
                .and_then(|metadata| metadata.remove(*key))
                .ok_or_else(missing)?;
            Answer::empty(204)
        }
        _ => return Err(ApiError::unknown_path()),
    };
    server.set("metadata", metadata);
    Ok(answer)
}

/// Refuses tags that Nova does not accept.
pub(super) fn check_tags(tags: &[Value]) -> Result<(), ApiError> {
    let wrong = tags.iter().find(|tag| {
        !tag.as_str()
            .is_some_and(|tag| !tag.is_empty() && tag.len() <= 60 && !tag.contains([',', '/']))
    });
    if let Some(tag) = wrong {
        return Err(ApiError::bad(format!(
            "Invalid input for field/attribute tags. Value: {tag}."
        )));
    }
    if tags.len() > MOST_TAGS {
        return Err(ApiError::bad(format!(
            "The number of tags exceeded the per-server limit {MOST_TAGS}"
        )));
    }
    Ok(())
}

pub(super) fn tags(world: &mut World, asked: &ApiRequest, id: &str, path: &[&str]) -> AnswerResult {
    let Some(server) = world.store.get_mut(Kind::Server, id) else {
        return Err(ApiError::unknown_path());
    };
    let mut tags = server.list("tags").to_vec();
    let there = |tag: &str| tags.iter().any(|one| one == tag);
    let missing = |tag: &str| ApiError::missing(format!("Server {id} has no tag '{tag}'"));
    let answer = match (asked.method.as_str(), path) {
        ("GET", []) => return Ok(Answer::ok(json!({"tags": tags}))),
        ("GET", [tag]) => {
            return if there(tag) { Ok(Answer::empty(204)) } else { Err(missing(tag)) };
        }
        ("PUT", []) => {
            tags = asked.json()?["tags"].as_array().cloned().unwrap_or_default();
            check_tags(&tags)?;
            Answer::ok(json!({"tags": tags}))
        }
        ("PUT", [tag]) => {
            let status = if there(tag) { 204 } else { 201 };
            if status == 201 {
                tags.push(json!(tag));
                check_tags(&tags)?;
            }
            Answer::empty(status)
        }
        ("DELETE", []) => {
            tags.clear();
            Answer::empty(204)
        }
        ("DELETE", [tag]) => {
            if !there(tag) {
                return Err(missing(tag));
            }
            tags.retain(|one| one != tag);
            Answer::empty(204)
        }
        _ => return Err(ApiError::unknown_path()),
    };
    server.set("tags", tags);
    Ok(answer)
}

/// Answers `GET /servers/{id}/os-security-groups`.
pub(super) fn security_groups(world: &World, id: &str) -> AnswerResult {
    let ports = ports(world, id);
    let ports = ports.iter().filter_map(|port| world.store.get(Kind::Port, port));
    let mut ids: Vec<&str> =
        ports.flat_map(|port| port.list("security_groups")).filter_map(Value::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    let shown = |group: &Object| json!({"id": group.id, "name": group.text("name"), "description": group.text("description"), "tenant_id": group.project, "rules": []});
    let groups: Vec<Value> =
        ids.iter().filter_map(|id| world.store.get(Kind::SecurityGroup, id)).map(shown).collect();
    Ok(Answer::ok(json!({"security_groups": groups})))
}
