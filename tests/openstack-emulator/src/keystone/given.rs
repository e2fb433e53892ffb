//! Validates the fields of services and endpoints.

use serde_json::{Value, json};

use super::catalogue::INTERFACES;
use super::refuse;
use crate::object::{Fields, Kind, ReadFields};
use crate::request::ApiResult;
use crate::world::World;

/// The variables that a URL may contain (`keystone.common.utils.check_endpoint_url`).
const VARIABLES: [&str; 3] = ["project_id", "tenant_id", "user_id"];

pub(super) fn valid_service(given: &Fields) -> ApiResult {
    for key in ["type", "name"] {
        let is_good = |value: &Value| {
            value.as_str().is_some_and(|text| (1..=255).contains(&text.chars().count()))
        };
        valid(given, key, is_good, "is not a text of 1 to 255 characters")?;
    }
    valid(given, "enabled", Value::is_boolean, "is not of type 'boolean'")
}

pub(super) fn valid_endpoint(world: &mut World, given: &mut Fields) -> ApiResult {
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
    if let Some(id) = given.get("service_id") {
        let id = id.as_str().unwrap_or_default();
        world
            .store
            .get(Kind::Service, id)
            .ok_or_else(|| refuse::no_reference("service_id", "service"))?;
    }
    // `region` is the name from API v2. Keystone creates the region if it does not exist.
    let older = given.remove("region").filter(|region| !region.is_null());
    if let Some(id) = given.text_of("region_id") {
        world
            .store
            .get(Kind::Region, id)
            .ok_or_else(|| refuse::no_reference("region_id", "region"))?;
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

fn valid(given: &Fields, key: &str, is_good: impl Fn(&Value) -> bool, why: &str) -> ApiResult {
    match given.get(key) {
        Some(value) if !is_good(value) => Err(refuse::invalid(key, value, why)),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn has_known_variables(url: &str) -> bool {
    let url = url.replace("$(", "%(");
    url.split("%(").skip(1).all(|rest| {
        let name = rest.split_once(")s").map(|(name, _)| name);
        name.is_some_and(|name| VARIABLES.contains(&name))
    })
}
