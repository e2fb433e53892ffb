//! Resource providers and their inventories as the API shows them.

use serde_json::{Value, json};

use crate::nova::provider::capacity;
use crate::object::Object;
use crate::request::ApiRequest;

pub(super) const CLASSES: [&str; 4] = ["VCPU", "MEMORY_MB", "DISK_GB", "PGPU"];

pub(super) fn classes(provider: &Object) -> impl Iterator<Item = &'static str> {
    CLASSES.into_iter().filter(|class| capacity(provider, class) > 0)
}

pub(super) fn shown(asked: &ApiRequest, provider: &Object) -> Value {
    let path = format!("/placement/resource_providers/{}", provider.id);
    let link = |rel: &str| json!({"rel": rel, "href": format!("{path}/{rel}")});
    let mut links = vec![
        json!({"rel": "self", "href": path}),
        link("inventories"),
        link("usages"),
        link("aggregates"),
        link("traits"),
    ];
    if asked.since(11) {
        links.push(link("allocations"));
    }
    let mut body = json!({"uuid": provider.id, "name": provider.text("name"), "generation": provider.number("generation"), "links": links});
    if asked.since(14) {
        body["parent_provider_uuid"] = Value::Null;
        body["root_provider_uuid"] = json!(provider.id);
    }
    body
}

pub(super) fn inventories(provider: &Object) -> Value {
    let row = |class: &'static str| {
        let total = provider.hidden.get(class).and_then(Value::as_i64).unwrap_or_default();
        let ratio = if class == "VCPU" { 4.0 } else { 1.0 };
        (
            class.to_owned(),
            json!({"total": total, "allocation_ratio": ratio, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1}),
        )
    };
    Value::Object(classes(provider).map(row).collect())
}
