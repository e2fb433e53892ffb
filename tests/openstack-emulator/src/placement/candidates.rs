//! Answers `GET /allocation_candidates`: the hosts with room for the whole request.

use serde_json::{Map, Value, json};

use super::provider::{classes, fits, resources};
use crate::nova::provider::{capacity, used};
use crate::object::{Kind, Object};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::world::World;

pub(super) fn answer(world: &World, asked: &ApiRequest) -> ApiAnswer {
    let wanted = resources(asked.query("resources").unwrap_or_default())?;
    if wanted.is_empty() {
        let message = "At least one request group (`resources` or `resources{$S}`) is required.";
        return Err(ApiError::bad(message));
    }
    let limit = asked.query("limit").and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let hosts = world.store.all(Kind::Provider).filter(|one| fits(one, &wanted)).take(limit);
    let hosts: Vec<&Object> = hosts.collect();
    let amounts: Map<String, Value> =
        wanted.iter().map(|(class, amount)| (class.clone(), json!(amount))).collect();
    let requests = hosts.iter().map(|host| {
        if !asked.since(12) {
            return json!({"allocations": [{"resource_provider": {"uuid": host.id}, "resources": amounts}]});
        }
        let mut request = json!({"allocations": {host.id.as_str(): {"resources": amounts}}});
        if asked.since(34) {
            request["mappings"] = json!({"": [host.id]});
        }
        request
    });
    let summaries: Map<String, Value> = hosts.iter().map(|host| summary(asked, host)).collect();
    Ok(Answer::ok(
        json!({"allocation_requests": requests.collect::<Vec<_>>(), "provider_summaries": summaries}),
    ))
}

fn summary(asked: &ApiRequest, host: &Object) -> (String, Value) {
    let row = |class: &'static str| {
        let row = json!({"capacity": capacity(host, class), "used": used(host, class)});
        (class.to_owned(), row)
    };
    let mut body = json!({"resources": classes(host).map(row).collect::<Map<_, _>>()});
    if asked.since(17) {
        body["traits"] = json!([]);
    }
    if asked.since(29) {
        body["parent_provider_uuid"] = Value::Null;
        body["root_provider_uuid"] = json!(host.id);
    }
    (host.id.clone(), body)
}
