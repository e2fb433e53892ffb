//! Validates requests that create or change regions, services and endpoints.

use serde_json::{Map, Value, json};

use super::{INTERFACES, Part};
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::store::{Kind, Object};
use crate::world::{World, short_id};

/// The variables that a URL may contain (`keystone.common.utils.check_endpoint_url`).
const VARIABLES: [&str; 3] = ["project_id", "tenant_id", "user_id"];

pub(super) fn new_region(world: &World, asked: &ApiRequest) -> Result<Object, ApiError> {
    let given = asked.wrapped("region")?;
    if let Some(id) = given.get("id").and_then(Value::as_str)
        && world.store.get(Kind::Region, id).is_some()
    {
        return Err(ApiError::conflict(format!(
            "Conflict occurred attempting to store region - Duplicate ID, {id}.."
        )));
    }
    let mut body = Map::from_iter([
        ("id".to_owned(), json!(short_id())),
        ("description".to_owned(), json!("")),
        ("parent_region_id".to_owned(), Value::Null),
    ]);
    body.extend(given);
    Ok(world.object("", Value::Object(body)))
}

pub(super) fn new_service(world: &World, asked: &ApiRequest) -> Result<Object, ApiError> {
    let mut given = asked.wrapped("service")?;
    if !given.contains_key("type") {
        return Err(ApiError::bad("'type' is a required property"));
    }
    valid_service(&given)?;
    given.insert("id".to_owned(), json!(short_id()));
    given.entry("enabled").or_insert(json!(true));
    Ok(world.object("", Value::Object(given)))
}

pub(super) fn new_endpoint(world: &mut World, asked: &ApiRequest) -> Result<Object, ApiError> {
    let mut given = asked.wrapped("endpoint")?;
    if let Some(lacks) =
        ["interface", "service_id", "url"].into_iter().find(|key| !given.contains_key(*key))
    {
        return Err(ApiError::bad(format!("'{lacks}' is a required property")));
    }
    valid_endpoint(world, &mut given)?;
    let url = given["url"].as_str().unwrap_or_default();
    if !has_known_variables(url) {
        return Err(ApiError::bad(format!(
            "Cannot create an endpoint with an invalid URL: {url}."
        )));
    }
    given.insert("id".to_owned(), json!(short_id()));
    given.entry("enabled").or_insert(json!(true));
    Ok(world.object("", Value::Object(given)))
}

/// The validated changes of a `PATCH`.
pub(super) fn changes(
    world: &mut World,
    asked: &ApiRequest,
    part: Part,
    id: &str,
) -> Result<Map<String, Value>, ApiError> {
    let mut given = asked.wrapped(part.single())?;
    if given.get("id").is_some_and(|given| given != id) {
        return Err(ApiError::bad(format!("Cannot change {} ID", part.single())));
    }
    match part {
        Part::Regions => {}
        Part::Services => valid_service(&given)?,
        Part::Endpoints => valid_endpoint(world, &mut given)?,
    }
    Ok(given)
}

fn valid_service(given: &Map<String, Value>) -> Result<(), ApiError> {
    for key in ["type", "name"] {
        let is_good = |value: &Value| {
            value.as_str().is_some_and(|text| (1..=255).contains(&text.chars().count()))
        };
        valid(given, key, is_good, "is not a text of 1 to 255 characters")?;
    }
    valid(given, "enabled", Value::is_boolean, "is not of type 'boolean'")
}

fn valid_endpoint(world: &mut World, given: &mut Map<String, Value>) -> Result<(), ApiError> {
    let is_interface = |value: &Value| INTERFACES.iter().any(|known| value == known);
    valid(given, "interface", is_interface, "is not one of ['admin', 'internal', 'public']")?;
    let is_url = |value: &Value| {
        let scheme = value.as_str().filter(|url| url.chars().count() <= 225);
        scheme.and_then(|url| url.split_once(':')).is_some_and(|(scheme, rest)| {
            let fits = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
            !scheme.is_empty() && scheme.chars().all(fits) && !rest.is_empty()
        })
    };
    valid(given, "url", is_url, "does not match '^[a-zA-Z0-9+.-]+:.+'")?;
    valid(given, "enabled", Value::is_boolean, "is not of type 'boolean'")?;
    let expected = |what: &str, kind: &str| {
        ApiError::bad(format!(
            "Expecting to find endpoint {what} in {kind} table. The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error."
        ))
    };
    if let Some(id) = given.get("service_id") {
        let id = id.as_str().unwrap_or_default();
        world.store.get(Kind::Service, id).ok_or_else(|| expected("service_id", "service"))?;
    }
    // `region` is the name from API v2. Keystone creates the region if it does not exist.
    let older = given.remove("region").filter(|region| !region.is_null());
    if let Some(id) = given.get("region_id").and_then(Value::as_str) {
        world.store.get(Kind::Region, id).ok_or_else(|| expected("region_id", "region"))?;
    } else if let Some(id) = older {
        if world.store.get(Kind::Region, id.as_str().unwrap_or_default()).is_none() {
            world.add(
                Kind::Region,
                "",
                json!({"id": id, "description": "", "parent_region_id": null}),
            );
        }
        given.insert("region_id".to_owned(), id);
    }
    if let Some(id) = given.get("region_id").cloned() {
        given.insert("region".to_owned(), id);
    }
    Ok(())
}

fn valid(
    given: &Map<String, Value>,
    key: &str,
    is_good: impl Fn(&Value) -> bool,
    why: &str,
) -> Result<(), ApiError> {
    match given.get(key) {
        Some(value) if !is_good(value) => Err(ApiError::bad(format!(
            "Invalid input for field/attribute {key}. Value: {value}. {value} {why}"
        ))),
        Some(_) | None => Ok(()),
    }
}

fn has_known_variables(url: &str) -> bool {
    let url = url.replace("$(", "%(");
    url.split("%(").skip(1).all(|rest| {
        let name = rest.split_once(")s").map(|(name, _)| name);
        name.is_some_and(|name| VARIABLES.contains(&name))
    })
}
