//! Projects, users, roles and domains.

use serde_json::{Map, Value, json};

use super::{SYSTEM, grant, missing, no_links, revoke, roles_of, shown};
use crate::page::{self, equals};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Condition, Kind};
use crate::world::{World, short_id};

/// The collections: path, key of one object, kind, and whether every user may read it.
const COLLECTIONS: [(&str, &str, Kind, bool); 4] = [
    ("projects", "project", Kind::Project, false),
    ("users", "user", Kind::User, false),
    ("roles", "role", Kind::Role, true),
    ("domains", "domain", Kind::Domain, true),
];

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let method = asked.method.as_str();
    match (method, path) {
        ("GET", ["role_assignments"]) => assignments(world, asked),
        (
            "GET" | "HEAD" | "PUT" | "DELETE",
            ["projects", project, "users", user, "roles", rest @ ..],
        ) => {
            world.store.get(Kind::Project, project).ok_or_else(|| missing("project", project))?;
            roles(world, asked, project, user, rest)
        }
        (
            "GET" | "HEAD" | "PUT" | "DELETE",
            ["domains", domain, "users", user, "roles", rest @ ..],
        ) => {
            world.store.get(Kind::Domain, domain).ok_or_else(|| missing("domain", domain))?;
            roles(world, asked, domain, user, rest)
        }
        ("GET" | "HEAD" | "PUT" | "DELETE", ["system", "users", user, "roles", rest @ ..]) => {
            roles(world, asked, SYSTEM, user, rest)
        }
        (_, [collection, rest @ ..]) => {
            let found = COLLECTIONS.into_iter().find(|(name, ..)| name == collection);
            let (plural, single, kind, open) = found.ok_or_else(ApiError::unknown_path)?;
            let me = match (kind, rest) {
                (Kind::User, [id]) => *id == asked.caller.user,
                (Kind::Project, [id]) => {
                    *id == asked.caller.project
                        || !roles_of(world, &asked.caller.user, id).is_empty()
                }
                _ => false,
            };
            if !(asked.caller.is_admin() || method == "GET" && (open || me)) {
                return Err(ApiError::forbidden(format!(
                    "You are not authorized to perform the requested action: identity:{}_{single}.",
                    verb(method, rest)
                )));
            }
            collection_answer(world, asked, plural, single, kind, rest)
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn verb(method: &str, rest: &[&str]) -> &'static str {
    match (method, rest) {
        ("GET", []) => "list",
        ("GET", _) => "get",
        ("POST", _) => "create",
        ("DELETE", _) => "delete",
        _ => "update",
    }
}

fn collection_answer(
    world: &mut World,
    asked: &ApiRequest,
    plural: &str,
    single: &str,
    kind: Kind,
    rest: &[&str],
) -> AnswerResult {
    match (asked.method.as_str(), rest) {
        ("GET", []) => {
            let wanted = asked
                .query
                .iter()
                .filter(|(key, _)| ["name", "domain_id", "enabled"].contains(&key.as_str()));
            let wanted: Vec<_> = wanted.collect();
            let said: Vec<Condition<'_>> =
                wanted.iter().filter_map(|(key, value)| page::said(key, &[value])).collect();
            let all = world.store.narrowed(kind, &said).into_iter();
            let all = all
                .filter(|one| wanted.iter().all(|(key, value)| equals(one.body.get(key), value)));
            let all: Vec<Value> = all.map(|one| shown(asked, plural, one)).collect();
            Ok(Answer::ok(json!({plural: all, "links": no_links(asked)})))
        }
        ("POST", []) => create(world, asked, plural, single, kind),
        ("GET", [id]) => {
            let one = world.store.get(kind, id).ok_or_else(|| missing(single, id))?;
            Ok(Answer::ok(json!({single: shown(asked, plural, one)})))
        }
        ("PATCH", [id]) => {
            let given = asked.wrapped(single)?;
            world.secrets.extend(given.get("password").and_then(Value::as_str).map(str::to_owned));
            let one = world.store.get_mut(kind, id).ok_or_else(|| missing(single, id))?;
            for (key, value) in given {
                match key.as_str() {
                    "password" => one.keep("password", value),
                    _ => one.set(&key, value),
                }
            }
            let one = one.clone();
            Ok(Answer::ok(json!({single: shown(asked, plural, &one)})))
        }
        ("DELETE", [id]) => {
            world.store.remove(kind, id).ok_or_else(|| missing(single, id))?;
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn create(
    world: &mut World,
    asked: &ApiRequest,
    plural: &str,
    single: &str,
    kind: Kind,
) -> AnswerResult {
    let mut given = asked.wrapped(single)?;
    let password = given.remove("password");
    let name = given.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if world.store.named(kind, &name).is_some() {
        return Err(ApiError::conflict(format!(
            "Conflict occurred attempting to store {single} - Duplicate entry found with name {name} at domain ID default."
        )));
    }
    let mut body =
        Map::from_iter([("id".to_owned(), json!(short_id())), ("enabled".to_owned(), json!(true))]);
    if matches!(kind, Kind::Project | Kind::User) {
        body.insert("domain_id".into(), json!("default"));
    }
    if kind == Kind::Project {
        body.extend([
            ("is_domain".to_owned(), json!(false)),
            ("parent_id".to_owned(), json!("default")),
            ("description".to_owned(), json!("")),
            ("tags".to_owned(), json!([])),
            ("options".to_owned(), json!({})),
        ]);
    }
    body.extend(given);
    let mut object = world.object("", Value::Object(body));
    if let Some(password) = password {
        world.secrets.extend(password.as_str().map(str::to_owned));
        object.keep("password", password);
    }
    let answer = shown(asked, plural, &object);
    world.store.insert(kind, object);
    Ok(Answer::json(201, json!({single: answer})))
}

/// Answers `GET /v3/auth/projects`: the projects where the caller has a role.
pub(super) fn own_projects(world: &World, asked: &ApiRequest) -> AnswerResult {
    let mine = world
        .store
        .all(Kind::Project)
        .filter(|project| !roles_of(world, &asked.caller.user, &project.id).is_empty());
    let mine: Vec<Value> = mine.map(|project| shown(asked, "projects", project)).collect();
    Ok(Answer::ok(json!({"projects": mine, "links": no_links(asked)})))
}

fn assignments(world: &World, asked: &ApiRequest) -> AnswerResult {
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
                    role = super::role_document(world, role["id"].as_str().unwrap_or_default());
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
) -> AnswerResult {
    asked.admin("identity:create_grant")?;
    world.store.get(Kind::User, user).ok_or_else(|| missing("user", user))?;
    match (asked.method.as_str(), rest) {
        ("GET", []) => {
            let mine = roles_of(world, user, place);
            let mine = mine.iter().filter_map(|id| world.store.get(Kind::Role, id));
            let mine: Vec<Value> = mine.map(|role| shown(asked, "roles", role)).collect();
            Ok(Answer::ok(json!({"roles": mine, "links": no_links(asked)})))
        }
        ("PUT", [role]) => {
            world.store.get(Kind::Role, role).ok_or_else(|| missing("role", role))?;
            grant(world, user, place, role);
            Ok(Answer::empty(204))
        }
        ("DELETE", [role]) => {
            revoke(world, user, place, role);
            Ok(Answer::empty(204))
        }
        (_, [role]) if roles_of(world, user, place).iter().any(|id| id == role) => {
            Ok(Answer::empty(204))
        }
        _ => Err(missing("role assignment", user)),
    }
}
