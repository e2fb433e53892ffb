//! The name, metadata, tags and security groups of a server.

use serde_json::{Value, json};

use super::refuse;
use super::server::{ports, server};
use super::types::SERVER;
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::resource::Set;
use crate::tags;
use crate::world::{World, stamp};

const MOST_TAGS: usize = 50;

pub(super) fn update(world: &mut World, id: &str, given: &Fields) {
    world.store.change(Kind::Server, id, |server| {
        let given = SERVER.settable(given, Set::Later);
        server.body.extend(given.map(|(key, value)| (key.clone(), value.clone())));
        server.set("updated", stamp());
    });
}

/// Answers `/servers/{id}/metadata`.
pub(super) fn metadata(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    path: &[&str],
) -> ApiAnswer {
    let mut metadata = server(world, asked, id)?.body.field("metadata").clone();
    let answer = match (asked.method.as_str(), path) {
        ("GET", []) => return Ok(Answer::ok(json!({"metadata": metadata}))),
        ("GET", [key]) => {
            let value = metadata.get(*key).ok_or_else(refuse::no_metadata)?;
            return Ok(Answer::ok(json!({"meta": {*key: value}})));
        }
        ("PUT" | "POST", []) => {
            if asked.method == http::Method::PUT {
                metadata = json!({});
            }
            for (key, value) in asked.wrapped("metadata")? {
                metadata[key] = value;
            }
            Answer::ok(json!({"metadata": metadata}))
        }
        ("PUT", [key]) => {
            metadata[*key] = asked.wrapped("meta")?.field(key).clone();
            Answer::ok(json!({"meta": {*key: metadata[*key]}}))
        }
        ("DELETE", [key]) => {
            let gone = metadata.as_object_mut().and_then(|metadata| metadata.remove(*key));
            gone.ok_or_else(refuse::no_metadata)?;
            Answer::empty(204)
        }
        _ => return Err(ApiError::unknown_path()),
    };
    world.store.set(Kind::Server, id, "metadata", metadata);
    Ok(answer)
}

/// Refuses tags that Nova does not accept.
pub(super) fn check_tags(tags: &[Value]) -> ApiResult {
    let is_right = |tag: &str| !tag.is_empty() && tag.len() <= 60 && !tag.contains([',', '/']);
    if let Some(tag) = tags.iter().find(|tag| !tag.as_str().is_some_and(is_right)) {
        return Err(refuse::bad_tag(tag));
    }
    if tags.len() > MOST_TAGS {
        return Err(refuse::too_many_tags(MOST_TAGS));
    }
    Ok(())
}

/// Answers `/servers/{id}/tags`.
pub(super) fn tags(world: &mut World, asked: &ApiRequest, id: &str, path: &[&str]) -> ApiAnswer {
    let rules = tags::Rules {
        missing: |id, tag| refuse::no_tag(id, tag),
        checked: |tags| check_tags(&tags).map(|()| tags),
        known: 204,
    };
    server(world, asked, id)?;
    tags::answer(world, asked, (&SERVER, id), path, &rules)
}

/// Answers `GET /servers/{id}/os-security-groups`.
pub(super) fn security_groups(world: &World, server: &Object) -> ApiAnswer {
    let ports = ports(world, server);
    let mut ids: Vec<&str> = ports.flat_map(|port| port.body.texts("security_groups")).collect();
    ids.sort_unstable();
    ids.dedup();
    let shown = |group: &Object| json!({"id": group.id, "name": group.text("name"), "description": group.text("description"), "tenant_id": group.project, "rules": []});
    let groups = ids.iter().filter_map(|id| world.store.get(Kind::SecurityGroup, id)).map(shown);
    Ok(Answer::ok(json!({"security_groups": groups.collect::<Vec<_>>()})))
}
