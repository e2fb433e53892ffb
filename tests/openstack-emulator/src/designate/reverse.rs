//! PTR records of floating IPs.

use serde_json::{Value, json};

use super::state::{invalid, is_name};
use crate::index::PROJECT;
use crate::object::{Kind, Object};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::world::World;

fn shown(world: &World, asked: &ApiRequest, floating: &Object) -> Value {
    let id = format!("{}:{}", world.settings.region, floating.id);
    let record = floating.hidden.get("ptr").filter(|ptr| !ptr.is_null());
    let of = |key: &str| record.and_then(|record| record.get(key)).cloned().unwrap_or_default();
    json!({
        "id": id, "address": floating.text("floating_ip_address"), "ptrdname": of("ptrdname"), "ttl": of("ttl"), "description": of("description"),
        "status": record.map_or(json!("INACTIVE"), |_| json!("ACTIVE")), "action": "NONE",
        "links": {"self": format!("{}/v2/reverse/floatingips/{id}", asked.root())},
    })
}

pub(super) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let missing = || ApiError::new(404, "floatingip_not_found", "Could not find FloatingIP");
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let mine = world.store.with_text(Kind::FloatingIp, PROJECT, &asked.caller.project);
            let rows: Vec<Value> = mine.map(|floating| shown(world, asked, floating)).collect();
            let total = rows.len();
            Ok(Answer::ok(
                json!({"floatingips": rows, "links": {"self": format!("{}{}", asked.base, asked.path)}, "metadata": {"total_count": total}}),
            ))
        }
        (method, [id]) => {
            let (region, floating) = id.split_once(':').ok_or_else(|| {
                ApiError::new(400, "bad_request", "Floating IP must be specified as REGION:ID")
            })?;
            let found = world
                .seen(Kind::FloatingIp, floating, asked)
                .filter(|_| region == world.settings.region);
            let found = found.ok_or_else(missing)?;
            if method == "GET" {
                return Ok(Answer::ok(shown(world, asked, found)));
            }
            if method != "PATCH" {
                return Err(ApiError::unknown_path());
            }
            let given = asked.json()?;
            let name = &given["ptrdname"];
            if !name.is_null() && !name.as_str().is_some_and(is_name) {
                return Err(invalid("ptrdname", &format!("{name} is not a 'hostname'")));
            }
            let floating = world.store.get_mut(Kind::FloatingIp, floating).ok_or_else(missing)?;
            floating.keep("ptr", if name.is_null() { Value::Null } else { given.clone() });
            let floating = floating.clone();
            let mut body = shown(world, asked, &floating);
            body["status"] = json!("PENDING");
            body["action"] = json!(if name.is_null() { "DELETE" } else { "CREATE" });
            Ok(Answer::json(202, body))
        }
        _ => Err(ApiError::unknown_path()),
    }
}
