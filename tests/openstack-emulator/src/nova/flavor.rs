//! The flavors of Nova.

use serde_json::{Value, json};

use crate::object::{Kind, Object};
use crate::page;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{World, new_id};

fn shown(asked: &ApiRequest, flavor: &Object) -> Value {
    let mut body = flavor.shown();
    body["links"] =
        json!([{"rel": "self", "href": format!("{}/v2.1/flavors/{}", asked.root(), flavor.id)}]);
    if !asked.since(55)
        && let Some(body) = body.as_object_mut()
    {
        body.remove("description");
    }
    if asked.since(61) {
        body["extra_specs"] =
            flavor.hidden.get("extra_specs").cloned().unwrap_or_else(|| json!({}));
    }
    body
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let missing = |id: &str| ApiError::missing(format!("Flavor {id} could not be found."));
    match (asked.method.as_str(), path) {
        ("GET", [] | ["detail"]) => {
            let least =
                |key: &str| asked.query(key).and_then(|text| text.parse().ok()).unwrap_or(0_i64);
            let (ram, disk) = (least("minRam"), least("minDisk"));
            let all = world.store.all(Kind::Flavor).filter(|flavor| {
                is_open(asked, flavor)
                    && flavor.number("ram") >= ram
                    && flavor.number("disk") >= disk
            });
            let page = page::cut(asked, all.collect(), world.settings.page_limit)?;
            let brief = path.is_empty();
            let rows = page.objects.iter().map(|flavor| {
                let all = shown(asked, flavor);
                if brief {
                    json!({"id": all["id"], "name": all["name"], "links": all["links"]})
                } else {
                    all
                }
            });
            let mut body = json!({"flavors": rows.collect::<Vec<_>>()});
            if let Some(links) = page::links(page.next.as_deref()) {
                body["flavors_links"] = links;
            }
            Ok(Answer::ok(body))
        }
        ("GET", [id]) => {
            let flavor = world.store.get(Kind::Flavor, id).filter(|it| is_open(asked, it));
            let flavor = flavor.ok_or_else(|| missing(id))?;
            Ok(Answer::ok(json!({"flavor": shown(asked, flavor)})))
        }
        ("POST", []) => create(world, asked),
        ("DELETE", [id]) => {
            asked.admin("os_compute_api:os-flavor-manage:delete")?;
            world.store.remove(Kind::Flavor, id).ok_or_else(|| missing(id))?;
            Ok(Answer::empty(202))
        }
        ("GET", [id, "os-extra_specs"]) => {
            let flavor = world.store.get(Kind::Flavor, id).ok_or_else(|| missing(id))?;
            Ok(Answer::ok(json!({"extra_specs": flavor.hidden.get("extra_specs")})))
        }
        ("POST", [id, "os-extra_specs"]) => {
            asked.admin("os_compute_api:os-flavor-extra-specs:create")?;
            let given = asked.wrapped("extra_specs")?;
            let flavor = world.store.get_mut(Kind::Flavor, id).ok_or_else(|| missing(id))?;
            let mut specs = flavor.hidden.get("extra_specs").cloned().unwrap_or_else(|| json!({}));
            for (key, value) in &given {
                specs[key] = value.clone();
            }
            flavor.keep("extra_specs", specs);
            Ok(Answer::ok(json!({"extra_specs": given})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn create(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    asked.admin("os_compute_api:os-flavor-manage:create")?;
    let given = asked.wrapped("flavor")?;
    let number = |key: &str| {
        given
            .get(key)
            .and_then(|value| value.as_i64().or_else(|| value.as_str()?.parse().ok()))
            .unwrap_or_default()
    };
    let name = given.get("name").and_then(Value::as_str).unwrap_or_default();
    let id = given
        .get("id")
        .and_then(Value::as_str)
        .filter(|id| *id != "auto")
        .map_or_else(new_id, str::to_owned);
    if world
        .store
        .find(Kind::Flavor, |flavor| flavor.id == id || flavor.text("name") == name)
        .is_some()
    {
        return Err(ApiError::conflict(format!("Flavor with name {name} already exists.")));
    }
    let id = add(world, &id, name, number("vcpus"), number("ram"), number("disk"), json!({}));
    let flavor = world.store.get_mut(Kind::Flavor, &id).ok_or_else(ApiError::unknown_path)?;
    if let Some(is_public) = given.get("os-flavor-access:is_public") {
        flavor.set("os-flavor-access:is_public", is_public.clone());
    }
    let flavor = flavor.clone();
    Ok(Answer::ok(json!({"flavor": shown(asked, &flavor)})))
}

/// Whether the caller may see and use a flavor. Flavors that are not public are for administrators only.
pub(super) fn is_open(asked: &ApiRequest, flavor: &Object) -> bool {
    flavor.is("os-flavor-access:is_public") || asked.caller.is_admin()
}

/// Adds a flavor to the cloud.
pub(crate) fn add(
    world: &mut World,
    id: &str,
    name: &str,
    vcpus: i64,
    ram: i64,
    disk: i64,
    extra_specs: Value,
) -> String {
    let mut flavor = world.object("", json!({
        "id": id, "name": name, "vcpus": vcpus, "ram": ram, "disk": disk, "swap": 0, "rxtx_factor": 1.0, "description": null,
        "OS-FLV-EXT-DATA:ephemeral": 0, "OS-FLV-DISABLED:disabled": false, "os-flavor-access:is_public": true,
    }));
    flavor.keep("extra_specs", extra_specs);
    let id = flavor.id.clone();
    world.store.insert(Kind::Flavor, flavor);
    id
}
