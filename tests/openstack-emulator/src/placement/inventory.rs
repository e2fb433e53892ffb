//! Resource providers that a client creates, as nova-compute does for its host.

use serde_json::{Value, json};

use super::view::{CLASSES, inventories, shown};
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

/// Answers `POST /resource_providers`.
pub(super) fn create(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    let body = asked.json()?;
    let name = body["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(ApiError::bad("JSON does not validate: 'name' is a required property"));
    }
    let given = body["uuid"].as_str().map(str::to_owned);
    let taken = world.store.find(Kind::Provider, |one| {
        one.text("name") == name || given.as_deref().is_some_and(|id| one.id == id)
    });
    if taken.is_some() {
        return Err(ApiError::conflict(format!(
            "Conflicting resource provider name: {name} already exists."
        )));
    }
    let mut wanted = json!({"name": name, "generation": 0});
    if let Some(id) = given {
        wanted["id"] = json!(id);
    }
    let made = world.object("", wanted);
    let answer = shown(asked, &made);
    world.store.insert(Kind::Provider, made);
    Ok(Answer::ok(answer))
}

/// Answers `PUT /resource_providers/{id}/inventories`. Refuses an outdated generation.
pub(super) fn stock(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let body = asked.json()?;
    let missing = || {
        ApiError::missing(format!(
            "The resource could not be found.\n\n No resource provider with uuid {id} found  "
        ))
    };
    let provider = world.store.get_mut(Kind::Provider, id).ok_or_else(missing)?;
    if body["resource_provider_generation"].as_i64() != Some(provider.number("generation")) {
        return Err(ApiError::new(
            409,
            "placement.concurrent_update",
            "resource provider generation conflict",
        ));
    }
    for class in CLASSES {
        let total = body["inventories"][class]["total"].as_i64();
        provider.keep(class, total.unwrap_or_default());
    }
    let generation = provider.number("generation") + 1;
    provider.set("generation", generation);
    let reported: Value = inventories(provider);
    Ok(Answer::ok(json!({"inventories": reported, "resource_provider_generation": generation})))
}
