//! Routes Placement's requests.

use serde_json::json;

use super::candidates;
use super::provider::{self, PROVIDER, fits, held, resources};
use crate::handlers::{Form, Handlers};
use crate::index::PROJECT;
use crate::list::{Links, Lists, PLAIN};
use crate::nova::provider::allocations;
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::world::World;

const HANDLERS: Handlers = Handlers {
    update: "",
    statuses: [200, 200, 204],
    form: Form::Bare,
    brief: false,
    lists: Lists {
        is_filter: |_, _, key| Ok(["name", "uuid", "resources"].contains(&key)),
        passes: |one, key, values| values.iter().all(|value| passes(one, key, value)),
        index: |_, _| Vec::new(),
        links: Links::Never,
        ..PLAIN
    },
    sees: |_, _, _, _| true,
    shown: |_, asked, _, one| provider::shown(asked, one),
    create: |world, _, _, given| provider::create(world, given),
    change: |_, _, _, _, _| Err(ApiError::unknown_path()),
    delete: |_, _, _, _| Err(ApiError::unknown_path()),
};

fn passes(provider: &Object, key: &str, value: &str) -> bool {
    match key {
        "name" => provider.text("name") == value,
        "uuid" => provider.id == value,
        _ => resources(value).is_ok_and(|wanted| fits(provider, &wanted)),
    }
}

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    // Only administrators, and services such as nova-compute, may use Placement.
    if !asked.caller.may("service") {
        return Err(ApiError::forbidden("Access was denied to this resource.\n\n admin_required "));
    }
    match (asked.method.as_str(), path) {
        (method, ["resource_providers", id, name]) if ["GET", "PUT"].contains(&method) => {
            if method == "PUT" {
                if *name != "inventories" {
                    return Err(ApiError::unknown_path());
                }
                provider::stock(world, asked, id)?;
            }
            let one = HANDLERS.find(world, asked, &PROVIDER, id)?;
            let part = provider::part(world, one, name);
            Ok(Answer::ok(part.ok_or_else(ApiError::unknown_path)?))
        }
        (_, ["resource_providers", rest @ ..]) => {
            resources(asked.query("resources").unwrap_or_default())?;
            HANDLERS.answer(world, asked, &PROVIDER, rest)
        }
        ("GET", ["allocation_candidates"]) if asked.since(10) => candidates::answer(world, asked),
        ("GET", ["allocations", server]) => {
            let server = world.store.get(Kind::Server, server);
            let server = server.filter(|server| !allocations(server).is_empty());
            let Some(server) = server else { return Ok(Answer::ok(json!({"allocations": {}}))) };
            let held = json!({"resources": held(server), "generation": 1});
            Ok(Answer::ok(json!({
                "allocations": {server.note("provider"): held}, "project_id": server.project, "user_id": server.text("user_id"), "consumer_generation": 1,
            })))
        }
        ("GET", ["usages"]) => {
            let project = asked.query("project_id").unwrap_or_default();
            let mut usages = Fields::new();
            let servers = world.store.with_text(Kind::Server, PROJECT, project);
            for (class, amount) in servers.flat_map(allocations) {
                let sum = usages.number_of(&class).unwrap_or_default() + amount;
                usages.insert(class, json!(sum));
            }
            Ok(Answer::ok(json!({"usages": usages})))
        }
        ("GET", ["resource_classes"]) => {
            Ok(Answer::ok(json!({"resource_classes": provider::all_classes()})))
        }
        ("GET", ["traits"]) => {
            Ok(Answer::ok(json!({"traits": ["HW_CPU_X86_AVX", "COMPUTE_NODE"]})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
