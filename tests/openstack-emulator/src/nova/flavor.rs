//! The flavors of Nova.

use serde_json::{Value, json};

use super::refuse;
use super::types::FLAVOR;
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::world::{World, new_id};

pub(super) fn shown(asked: &ApiRequest, flavor: &Object) -> Value {
    let mut body = FLAVOR.view(asked, flavor);
    body["links"] =
        json!([{"rel": "self", "href": format!("{}/v2.1/flavors/{}", asked.root(), flavor.id)}]);
    if asked.since(61) {
        body["extra_specs"] = flavor.hidden.field("extra_specs").clone();
    }
    body
}

/// Whether a flavor passes a filter of lists.
pub(super) fn passes(flavor: &Object, key: &str, value: &str) -> bool {
    let least = value.parse().unwrap_or(0);
    flavor.number(if key == "minRam" { "ram" } else { "disk" }) >= least
}

/// Answers `/flavors/{id}/os-extra_specs`.
pub(super) fn extra_specs(world: &mut World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    let flavor = world.store.get_mut(Kind::Flavor, id).ok_or_else(|| FLAVOR.missing(id))?;
    let mut specs = flavor.hidden.field("extra_specs").clone();
    match asked.method.as_str() {
        "GET" => Ok(Answer::ok(json!({"extra_specs": specs}))),
        "POST" => {
            asked.admin("os_compute_api:os-flavor-extra-specs:create")?;
            let given = asked.wrapped("extra_specs")?;
            for (key, value) in &given {
                specs[key] = value.clone();
            }
            flavor.keep("extra_specs", specs);
            Ok(Answer::ok(json!({"extra_specs": given})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

pub(super) fn create(world: &mut World, given: &Fields) -> ApiResult<String> {
    let mut body = FLAVOR.new_body(given);
    for size in ["vcpus", "ram", "disk"] {
        body[size] = json!(given.number_of(size).unwrap_or_default());
    }
    let id = given.text_of("id").filter(|id| *id != "auto").map_or_else(new_id, str::to_owned);
    let name = given.text("name");
    let same = |flavor: &Object| flavor.id == id || flavor.text("name") == name;
    if world.store.find(Kind::Flavor, same).is_some() {
        return Err(refuse::flavor_exists(name));
    }
    body["id"] = json!(id);
    Ok(insert(world, body, json!({})))
}

/// Whether the caller may see and use a flavor. Flavors that are not public are for administrators only.
pub(super) fn is_open(asked: &ApiRequest, flavor: &Object) -> bool {
    flavor.is("os-flavor-access:is_public") || asked.caller.is_admin()
}

fn insert(world: &mut World, body: Value, extra_specs: Value) -> String {
    let id = world.add(Kind::Flavor, "", body);
    world.store.keep(Kind::Flavor, &id, "extra_specs", extra_specs);
    id
}

/// Adds an initial flavor to the cloud: id, name, processors, MiB of memory, GiB of disk.
pub(crate) fn plant(
    world: &mut World,
    (id, name, vcpus, ram, disk): (&str, &str, i64, i64, i64),
    extra_specs: Value,
) {
    let given = json!({"id": id, "name": name, "vcpus": vcpus, "ram": ram, "disk": disk});
    let body = FLAVOR.filled(given.as_object().into_iter().flatten());
    insert(world, body, extra_specs);
}
