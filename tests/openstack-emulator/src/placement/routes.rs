//! Routes Placement's requests.

use serde_json::{Map, Value, json};

use super::inventory;
use super::view::{CLASSES, classes, inventories, shown};
use crate::index::PROJECT;
use crate::nova::provider::{allocations, capacity, used};
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::World;

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    // Only administrators, and services such as nova-compute, may use Placement.
    if !asked.caller.may("service") {
        return Err(ApiError::forbidden("Access was denied to this resource.\n\n admin_required "));
    }
    match (asked.method.as_str(), path) {
        ("POST", ["resource_providers"]) => return inventory::create(world, asked),
        ("PUT", ["resource_providers", id, "inventories"]) => {
            return inventory::stock(world, asked, id);
        }
        _ => {}
    }
    let provider = |id: &str| {
        let found = world.store.get(Kind::Provider, id);
        found.ok_or_else(|| {
            ApiError::missing(format!(
                "The resource could not be found.\n\n No resource provider with uuid {id} found  "
            ))
        })
    };
    match (asked.method.as_str(), path) {
        ("GET", ["resource_providers"]) => {
            let wanted = resources(asked.query("resources").unwrap_or_default())?;
            let all = world.store.all(Kind::Provider).filter(|one| {
                asked.query("name").is_none_or(|name| one.text("name") == name)
                    && asked.query("uuid").is_none_or(|id| one.id == id)
                    && fits(one, &wanted)
            });
            let all: Vec<Value> = all.map(|one| shown(asked, one)).collect();
            Ok(Answer::ok(json!({"resource_providers": all})))
        }
        ("GET", ["resource_providers", id]) => Ok(Answer::ok(shown(asked, provider(id)?))),
        ("GET", ["resource_providers", id, "inventories"]) => {
            let one = provider(id)?;
            Ok(Answer::ok(
                json!({"inventories": inventories(one), "resource_provider_generation": one.number("generation")}),
            ))
        }
        ("GET", ["resource_providers", id, "usages"]) => {
            let one = provider(id)?;
            let usages: Map<String, Value> =
                classes(one).map(|class| (class.to_owned(), json!(used(one, class)))).collect();
            Ok(Answer::ok(
                json!({"usages": usages, "resource_provider_generation": one.number("generation")}),
            ))
        }
        ("GET", ["resource_providers", id, "allocations"]) => {
            let one = provider(id)?;
            let servers = world.store.with_text(Kind::Server, "provider", &one.id);
            let all: Map<String, Value> = servers
                .map(|server| (server.id.clone(), json!({"resources": held(server)})))
                .collect();
            Ok(Answer::ok(
                json!({"allocations": all, "resource_provider_generation": one.number("generation")}),
            ))
        }
        ("GET", ["resource_providers", id, "aggregates" | "traits"]) => {
            let one = provider(id)?;
            Ok(Answer::ok(
                json!({path[2]: [], "resource_provider_generation": one.number("generation")}),
            ))
        }
        ("GET", ["allocation_candidates"]) if asked.since(10) => candidates(world, asked),
        ("GET", ["allocations", server]) => {
            let found = world
                .store
                .get(Kind::Server, server)
                .filter(|server| !allocations(server).is_empty());
            let Some(server) = found else { return Ok(Answer::ok(json!({"allocations": {}}))) };
            let held = json!({"resources": held(server), "generation": 1});
            Ok(Answer::ok(json!({
                "allocations": {server.note("provider"): held}, "project_id": server.project, "user_id": server.text("user_id"), "consumer_generation": 1,
            })))
        }
        ("GET", ["usages"]) => {
            let project = asked.query("project_id").unwrap_or_default();
            let mut usages: Map<String, Value> = Map::new();
            for server in world.store.with_text(Kind::Server, PROJECT, project) {
                for (class, amount) in allocations(server) {
                    let sum =
                        usages.get(&class).and_then(Value::as_i64).unwrap_or_default() + amount;
                    usages.insert(class, json!(sum));
                }
            }
            Ok(Answer::ok(json!({"usages": usages})))
        }
        ("GET", ["resource_classes"]) => {
            let all = CLASSES.map(|class| json!({"name": class, "links": [{"rel": "self", "href": format!("/placement/resource_classes/{class}")}]}));
            Ok(Answer::ok(json!({"resource_classes": all})))
        }
        ("GET", ["traits"]) => {
            Ok(Answer::ok(json!({"traits": ["HW_CPU_X86_AVX", "COMPUTE_NODE"]})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn held(server: &Object) -> Value {
    Value::Object(
        allocations(server).into_iter().map(|(class, amount)| (class, json!(amount))).collect(),
    )
}

/// Parses `VCPU:4,MEMORY_MB:2048`.
fn resources(text: &str) -> Result<Vec<(String, i64)>, ApiError> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (class, amount) = part.split_once(':').unwrap_or((part, ""));
            let amount: i64 = amount.parse().map_err(|_| ApiError::bad(format!("Badly formed resources parameter. Expected resources query string in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: {text}.")))?;
            if !CLASSES.contains(&class) && !class.starts_with("CUSTOM_") {
                return Err(ApiError::bad(format!("Invalid resource class in resources parameter: No such resource class {class}.")));
            }
            Ok((class.to_owned(), amount))
        })
        .collect()
}

fn fits(provider: &Object, wanted: &[(String, i64)]) -> bool {
    wanted.iter().all(|(class, amount)| {
        let total = provider.hidden.get(class.as_str()).and_then(Value::as_i64).unwrap_or_default();
        *amount <= total && used(provider, class) + amount <= capacity(provider, class)
    })
}

/// Answers `GET /allocation_candidates`: the hosts with room for the whole request.
fn candidates(world: &World, asked: &ApiRequest) -> AnswerResult {
    let wanted = resources(asked.query("resources").unwrap_or_default())?;
    if wanted.is_empty() {
        return Err(ApiError::bad(
            "At least one request group (`resources` or `resources{$S}`) is required.",
        ));
    }
    let limit = asked.query("limit").and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let hosts: Vec<&Object> =
        world.store.all(Kind::Provider).filter(|one| fits(one, &wanted)).take(limit).collect();
    let amounts: Map<String, Value> =
        wanted.iter().map(|(class, amount)| (class.clone(), json!(amount))).collect();
    let requests = hosts.iter().map(|host| {
        if asked.since(12) {
            let mut request = json!({"allocations": {host.id.as_str(): {"resources": amounts}}});
            if asked.since(34) {
                request["mappings"] = json!({"": [host.id]});
            }
            return request;
        }
        json!({"allocations": [{"resource_provider": {"uuid": host.id}, "resources": amounts}]})
    });
    let summary = |host: &&Object| {
        let resources: Map<String, Value> = classes(host)
            .map(|class| {
                (
                    class.to_owned(),
                    json!({"capacity": capacity(host, class), "used": used(host, class)}),
                )
            })
            .collect();
        let mut body = json!({"resources": resources});
        if asked.since(17) {
            body["traits"] = json!([]);
        }
        if asked.since(29) {
            body["parent_provider_uuid"] = Value::Null;
            body["root_provider_uuid"] = json!(host.id);
        }
        (host.id.clone(), body)
    };
    let summaries: Map<String, Value> = hosts.iter().map(summary).collect();
    Ok(Answer::ok(
        json!({"allocation_requests": requests.collect::<Vec<_>>(), "provider_summaries": summaries}),
    ))
}
