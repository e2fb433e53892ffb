//! The records of projects, users, roles, domains, regions, services and endpoints.

use serde_json::{Value, json};

use super::assignment::shown;
use super::catalogue::BASE;
use super::given::{has_known_variables, valid_endpoint, valid_service};
use super::refuse;
use super::types::filters;
use crate::handlers::{Form, Handlers};
use crate::list::{Links, Lists, PLAIN};
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{ApiRequest, ApiResult};
use crate::resource::ResourceType;
use crate::world::{World, short_id};

pub(super) const HANDLERS: Handlers = Handlers {
    update: "PATCH",
    statuses: [201, 200, 204],
    form: Form::Wrapped,
    brief: false,
    lists: Lists {
        controls: "",
        is_filter: |_, of, key| Ok(filters(of).contains(&key)),
        most: |_, _| usize::MAX,
        links: Links::Keystone,
        ..PLAIN
    },
    sees: |_, _, _, _| true,
    shown: reported,
    create,
    change,
    delete,
};

/// An object as administrators see it.
fn reported(_: &World, asked: &ApiRequest, of: &ResourceType, one: &Object) -> Value {
    let mut body = shown(asked, of.path, one);
    if of.kind == Kind::Endpoint {
        body["url"] = json!(one.text("url").replace(BASE, &asked.base));
    }
    body
}

fn create(
    world: &mut World,
    _: &ApiRequest,
    of: &ResourceType,
    given: &Fields,
) -> ApiResult<String> {
    let mut given = given.clone();
    match of.path {
        "regions" => {
            if let Some(id) = given.text_of("id")
                && world.store.get(Kind::Region, id).is_some()
            {
                return Err(refuse::duplicate_id(of.single, id));
            }
            given.entry("id").or_insert_with(|| json!(short_id()));
        }
        "services" | "endpoints" => {
            let needed: &[&str] = match of.path {
                "services" => &["type"],
                _ => &["interface", "service_id", "url"],
            };
            if let Some(lacks) = needed.iter().find(|key| !given.contains_key(**key)) {
                return Err(refuse::needed(lacks));
            }
            check(world, of, &mut given)?;
            let url = given.text("url");
            if !has_known_variables(url) {
                return Err(refuse::bad_url(url));
            }
            given.insert("id".to_owned(), json!(short_id()));
        }
        _ => {
            let name = given.text("name");
            if world.store.named(of.kind, name).is_some() {
                return Err(refuse::duplicate(of.single, name));
            }
            given.entry("id").or_insert_with(|| json!(short_id()));
        }
    }
    let id = world.add(of.kind, "", of.filled(&given));
    keep_password(world, of, &id, &given);
    Ok(id)
}

/// Stores the password in a request, which the API never shows.
fn keep_password(world: &mut World, of: &ResourceType, id: &str, given: &Fields) {
    let Some(password) = given.get("password") else { return };
    world.secrets.extend(password.as_str().map(str::to_owned));
    if let Some(one) = world.store.get_mut(of.kind, id) {
        one.keep("password", password.clone());
        one.body.remove("password");
    }
}

fn check(world: &mut World, of: &ResourceType, given: &mut Fields) -> ApiResult {
    match of.path {
        "services" => valid_service(given),
        "endpoints" => valid_endpoint(world, given),
        _ => Ok(()),
    }
}

fn change(
    world: &mut World,
    _: &ApiRequest,
    of: &ResourceType,
    id: &str,
    given: &Fields,
) -> ApiResult {
    let mut given = given.clone();
    let is_part = ["regions", "services", "endpoints"].contains(&of.path);
    if is_part && given.get("id").is_some_and(|given| given != id) {
        return Err(refuse::other_id(of.single));
    }
    check(world, of, &mut given)?;
    world.store.change(of.kind, id, |one| one.body.extend(given.clone()));
    keep_password(world, of, id, &given);
    Ok(())
}

fn delete(world: &mut World, _: &ApiRequest, of: &ResourceType, id: &str) -> ApiResult {
    let endpoints = match of.path {
        "regions" => world.store.ids(Kind::Endpoint, "region_id", id),
        "services" => world.store.ids(Kind::Endpoint, "service_id", id),
        _ => Vec::new(),
    };
    if of.kind == Kind::Region && !endpoints.is_empty() {
        return Err(refuse::region_in_use(id));
    }
    for endpoint in endpoints {
        world.store.remove(Kind::Endpoint, &endpoint);
    }
    world.store.remove(of.kind, id);
    Ok(())
}
