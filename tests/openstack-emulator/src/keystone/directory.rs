//! Projects, users, roles, domains and the catalog: who may read and change them, and the roles of users.

use serde_json::{Value, json};

use super::assignment::{SYSTEM, grant, no_links, revoke, role_document, roles_of, shown};
use super::records::HANDLERS;
use super::refuse;
use super::types::TYPES;
use crate::object::{Kind, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::resource::ResourceType;
use crate::world::World;

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let method = asked.method.as_str();
    match (method, path) {
        ("GET", ["role_assignments"]) => assignments(world, asked),
        (_, ["projects", project, "users", user, "roles", rest @ ..]) => {
            let found = world.store.get(Kind::Project, project);
            found.ok_or_else(|| refuse::missing("project", project))?;
            roles(world, asked, project, user, rest)
        }
        (_, ["domains", domain, "users", user, "roles", rest @ ..]) => {
            let found = world.store.get(Kind::Domain, domain);
            found.ok_or_else(|| refuse::missing("domain", domain))?;
            roles(world, asked, domain, user, rest)
        }
        (_, ["system", "users", user, "roles", rest @ ..]) => {
            roles(world, asked, SYSTEM, user, rest)
        }
        (_, [collection, rest @ ..]) => {
            let of = TYPES.iter().find(|of| of.path == *collection);
            let of = of.ok_or_else(ApiError::unknown_path)?;
            let reads = method == "GET" && may_read(world, asked, of, rest);
            if !(reads || asked.caller.is_admin()) {
                return Err(match (method, rest) {
                    ("GET", []) => refuse::not_allowed(format!("list_{}", of.plural)),
                    ("GET", _) => refuse::not_allowed(format!("get_{}", of.single)),
                    ("POST", _) => refuse::not_allowed(format!("create_{}", of.single)),
                    ("DELETE", _) => refuse::not_allowed(format!("delete_{}", of.single)),
                    _ => refuse::not_allowed(format!("update_{}", of.single)),
                });
            }
            HANDLERS.answer(world, asked, of, rest)
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Whether a caller who is no administrator may read (`keystone.common.policies`): everybody roles, domains and regions, a reader of the
/// whole cloud services and endpoints, and everybody the own user and the projects in which the caller has a role.
fn may_read(world: &World, asked: &ApiRequest, of: &ResourceType, rest: &[&str]) -> bool {
    let caller = &asked.caller;
    match (of.path, rest) {
        ("roles" | "domains" | "regions", _) => true,
        ("services" | "endpoints", _) => caller.project.is_empty() && caller.may("reader"),
        ("users", [id]) => *id == caller.user,
        ("projects", [id]) => {
            *id == caller.project || !roles_of(world, &caller.user, id).is_empty()
        }
        _ => false,
    }
}

/// Answers `GET /v3/auth/projects`: the projects where the caller has a role.
pub(super) fn own_projects(world: &World, asked: &ApiRequest) -> ApiAnswer {
    let mine = world
        .store
        .all(Kind::Project)
        .filter(|project| !roles_of(world, &asked.caller.user, &project.id).is_empty());
    let mine: Vec<Value> = mine.map(|project| shown(asked, "projects", project)).collect();
    Ok(Answer::ok(json!({"projects": mine, "links": no_links(asked)})))
}

fn assignments(world: &World, asked: &ApiRequest) -> ApiAnswer {
    let (user, project) = (asked.query("user.id"), asked.query("scope.project.id"));
    if user != Some(asked.caller.user.as_str()) {
        asked.admin("identity:list_role_assignments")?;
    }
    let mut all = Vec::new();
    for one in world.store.all(Kind::User).filter(|one| user.is_none_or(|id| id == one.id)) {
        for place in
            world.store.all(Kind::Project).filter(|place| project.is_none_or(|id| id == place.id))
        {
            for role in roles_of(world, &one.id, &place.id) {
                let (mut user, mut scope) = (json!({"id": one.id}), json!({"id": place.id}));
                let mut role = json!({"id": role});
                if asked.flag("include_names") {
                    let domain = json!({"id": "default", "name": "Default"});
                    user["name"] = json!(one.text("name"));
                    user["domain"] = domain.clone();
                    scope["name"] = json!(place.text("name"));
                    scope["domain"] = domain;
                    role = role_document(world, role.text("id"));
                }
                all.push(
                    json!({"user": user, "role": role, "scope": {"project": scope}, "links": {}}),
                );
            }
        }
    }
    Ok(Answer::ok(json!({"role_assignments": all, "links": no_links(asked)})))
}

/// Lists, grants or revokes roles of a user. `place` is a project, the domain, or the whole cloud.
fn roles(
    world: &mut World,
    asked: &ApiRequest,
    place: &str,
    user: &str,
    rest: &[&str],
) -> ApiAnswer {
    asked.admin("identity:create_grant")?;
    world.store.get(Kind::User, user).ok_or_else(|| refuse::missing("user", user))?;
    match (asked.method.as_str(), rest) {
        ("GET", []) => {
            let mine = roles_of(world, user, place);
            let mine = mine.iter().filter_map(|id| world.store.get(Kind::Role, id));
            let mine: Vec<Value> = mine.map(|role| shown(asked, "roles", role)).collect();
            Ok(Answer::ok(json!({"roles": mine, "links": no_links(asked)})))
        }
        ("PUT", [role]) => {
            world.store.get(Kind::Role, role).ok_or_else(|| refuse::missing("role", role))?;
            grant(world, user, place, role);
            Ok(Answer::empty(204))
        }
        ("DELETE", [role]) => {
            revoke(world, user, place, role);
            Ok(Answer::empty(204))
        }
        ("GET" | "HEAD", [role]) if roles_of(world, user, place).iter().any(|id| id == role) => {
            Ok(Answer::empty(204))
        }
        _ => Err(refuse::missing("role assignment", user)),
    }
}
