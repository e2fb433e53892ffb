//! Resource providers and their inventories.

use serde_json::{Value, json};

use crate::nova::provider::{allocations, capacity, total, used};
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{ApiRequest, ApiResult, refusals};
use crate::resource::{ResourceType, test_tables};
use crate::world::World;

const CLASSES: [&str; 4] = ["VCPU", "MEMORY_MB", "DISK_GB", "PGPU"];

/// A resource provider (placement, handlers/resource_provider.py), which is shown with the key `uuid` in place of `id`.
#[rustfmt::skip]
pub(super) static PROVIDER: ResourceType = ResourceType { kind: Kind::Provider, path: "resource_providers", plural: "resource_providers", single: "resource_provider", not_found: ("", "The resource could not be found.\n\n No resource provider with uuid {} found  "), fields: r#"
        new name=""
        never generation=0
    "# };

refusals! {
    400 name_needed(): "JSON does not validate: 'name' is a required property";
    409 provider_exists(name): "Conflicting resource provider name: {name} already exists.";
    409 "placement.concurrent_update" outdated(): "resource provider generation conflict";
    400 bad_resources(text): "Badly formed resources parameter. Expected resources query string in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: {text}.";
    400 no_class(class): "Invalid resource class in resources parameter: No such resource class {class}.";
}

pub(super) fn classes(provider: &Object) -> impl Iterator<Item = &'static str> {
    CLASSES.into_iter().filter(|class| capacity(provider, class) > 0)
}

/// All resource classes of the cloud.
pub(super) fn all_classes() -> Value {
    let class = |name| json!({"name": name, "links": [{"rel": "self", "href": format!("/placement/resource_classes/{name}")}]});
    json!(CLASSES.map(class))
}

pub(super) fn shown(asked: &ApiRequest, provider: &Object) -> Value {
    let path = format!("/placement/resource_providers/{}", provider.id);
    let mut links = vec![json!({"rel": "self", "href": path})];
    let parts = ["inventories", "usages", "aggregates", "traits", "allocations"];
    for rel in &parts[..if asked.since(11) { 5 } else { 4 }] {
        links.push(json!({"rel": rel, "href": format!("{path}/{rel}")}));
    }
    let mut body = json!({"uuid": provider.id, "name": provider.text("name"), "generation": provider.number("generation"), "links": links});
    if asked.since(14) {
        body["parent_provider_uuid"] = Value::Null;
        body["root_provider_uuid"] = json!(provider.id);
    }
    body
}

pub(super) fn create(world: &mut World, given: &Fields) -> ApiResult<String> {
    let (name, id) = (given.text("name"), given.text_of("uuid"));
    if name.is_empty() {
        return Err(name_needed());
    }
    let same = |one: &Object| one.text("name") == name || id == Some(one.id.as_str());
    if world.store.find(Kind::Provider, same).is_some() {
        return Err(provider_exists(name));
    }
    let mut body = PROVIDER.new_body(given);
    if let Some(id) = id {
        body["id"] = json!(id);
    }
    Ok(world.add(Kind::Provider, "", body))
}

/// Sets the inventory, as `PUT /resource_providers/{id}/inventories` asks. Refuses an outdated generation.
pub(super) fn stock(world: &mut World, asked: &ApiRequest, id: &str) -> ApiResult {
    let body = asked.json()?;
    let found = world.store.get_mut(Kind::Provider, id);
    let provider = found.ok_or_else(|| PROVIDER.missing(id))?;
    let generation = provider.number("generation");
    if body["resource_provider_generation"] != generation {
        return Err(outdated());
    }
    for class in CLASSES {
        let total = body["inventories"][class]["total"].as_i64();
        provider.keep(class, total.unwrap_or_default());
    }
    provider.set("generation", generation + 1);
    Ok(())
}

/// The part of a provider below this path segment. `None` if there is no such part.
pub(super) fn part(world: &World, provider: &Object, name: &str) -> Option<Value> {
    let part = match name {
        "inventories" => {
            Value::Object(classes(provider).map(|it| inventory(provider, it)).collect())
        }
        "usages" => {
            let usage = |class: &str| (class.to_owned(), json!(used(provider, class)));
            Value::Object(classes(provider).map(usage).collect())
        }
        "allocations" => {
            let servers = world.store.with_text(Kind::Server, "provider", &provider.id);
            let held = |server: &Object| (server.id.clone(), json!({"resources": held(server)}));
            Value::Object(servers.map(held).collect())
        }
        "aggregates" | "traits" => json!([]),
        _ => return None,
    };
    Some(json!({name: part, "resource_provider_generation": provider.number("generation")}))
}

fn inventory(provider: &Object, class: &str) -> (String, Value) {
    let total = total(provider, class);
    let ratio = if class == "VCPU" { 4.0 } else { 1.0 };
    let row = json!({"total": total, "allocation_ratio": ratio, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1});
    (class.to_owned(), row)
}

/// The resources of a server, by class.
pub(super) fn held(server: &Object) -> Fields {
    allocations(server).into_iter().map(|(class, amount)| (class, json!(amount))).collect()
}

/// Parses `VCPU:4,MEMORY_MB:2048`.
pub(super) fn resources(text: &str) -> ApiResult<Vec<(String, i64)>> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    let read = |part: &str| {
        let (class, amount) = part.split_once(':').unwrap_or((part, ""));
        let amount: i64 = amount.parse().map_err(|_| bad_resources(text))?;
        if !CLASSES.contains(&class) && !class.starts_with("CUSTOM_") {
            return Err(no_class(class));
        }
        Ok((class.to_owned(), amount))
    };
    parts.map(read).collect()
}

/// Whether a provider has room for these resources.
pub(super) fn fits(provider: &Object, wanted: &[(String, i64)]) -> bool {
    wanted.iter().all(|(class, amount)| {
        *amount <= total(provider, class)
            && used(provider, class) + amount <= capacity(provider, class)
    })
}

test_tables!([&PROVIDER].into_iter());
