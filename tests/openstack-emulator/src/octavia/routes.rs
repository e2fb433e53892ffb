//! Routes Octavia's requests.

use serde_json::{Value, json};

use super::references::tree;
use super::types::{self, FLAVORS};
use super::{change, children, load_balancer, quota, refuse};
use crate::handlers::{Form, Handlers};
use crate::index::PROJECT;
use crate::list::{Links, Lists, Order, PLAIN};
use crate::object::{Kind, Object};
use crate::page;
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::resource::ResourceType;
use crate::store::Condition;
use crate::world::World;

const HANDLERS: Handlers = Handlers {
    update: "PUT",
    statuses: [201, 200, 204],
    form: Form::Wrapped,
    brief: false,
    lists: Lists {
        controls: "fields limit marker page_reverse sort_key sort_dir tags tags-any not-tags not-tags-any sort",
        passes: |one, key, values| values.iter().all(|value| passes(one, key, value)),
        index: |key, values| values.iter().filter_map(|value| index(key, value)).collect(),
        sees,
        scope: |_, asked, _| {
            let project = vec![(PROJECT, asked.caller.project.as_str())];
            (!asked.caller.is_admin()).then_some(project)
        },
        order: Order::Id,
        links: Links::Always,
        ..PLAIN
    },
    sees,
    shown: |_, _, _, object| object.shown(),
    create: children::create,
    change: children::update,
    delete: |world, asked, of, id| match of.path {
        "loadbalancers" => load_balancer::delete(world, asked, id),
        _ => children::delete(world, of, id),
    },
};

/// Flavors and their profiles: only administrators create and delete them, and nobody changes them.
const FLAVOR_HANDLERS: Handlers = Handlers {
    update: "",
    lists: Lists { is_filter: |_, _, key| Ok(key == "name"), links: Links::Always, ..PLAIN },
    sees: |_, _, _, _| true,
    create: |world, asked, of, given| {
        asked.admin("os_load-balancer_api:flavor:post")?;
        Ok(world.add(of.kind, "", of.filled(given)))
    },
    delete: |world, asked, of, id| {
        asked.admin("os_load-balancer_api:flavor:delete")?;
        if world.store.find(Kind::LoadBalancer, |one| one.text("flavor_id") == id).is_some() {
            return Err(refuse::flavor_used(id));
        }
        world.store.remove(of.kind, id);
        Ok(())
    },
    ..HANDLERS
};

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let roles = ["load-balancer_member", "load-balancer_admin", "load-balancer_observer"];
    if !roles.iter().any(|role| asked.caller.may(role)) {
        return Err(refuse::policy());
    }
    let (["lbaas", path @ ..] | ["octavia", path @ ..]) = path else {
        return Err(ApiError::unknown_path());
    };
    match (asked.method.as_str(), path) {
        ("GET", ["providers"]) => Ok(Answer::ok(
            json!({"providers": [{"name": "amphora", "description": "The Octavia Amphora driver."}]}),
        )),
        ("GET", ["availabilityzones"]) => Ok(Answer::ok(json!({"availability_zones": []}))),
        (_, ["quotas", rest @ ..]) => quota::answer(world, asked, rest),
        (_, [collection @ ("flavors" | "flavorprofiles"), rest @ ..]) => {
            let of = FLAVORS.iter().find(|of| of.path == *collection);
            FLAVOR_HANDLERS.answer(world, asked, of.ok_or_else(ApiError::unknown_path)?, rest)
        }
        ("GET", ["loadbalancers", id, "status" | "statuses"]) => {
            let balancer = HANDLERS.find(world, asked, types::at("loadbalancers")?, id)?;
            let tree = tree(world, balancer, status, true);
            Ok(Answer::ok(json!({"statuses": {"loadbalancer": tree}})))
        }
        ("GET", ["loadbalancers" | "listeners", _, "stats"]) => {
            let stats = json!({"active_connections": 0, "bytes_in": 0, "bytes_out": 0, "request_errors": 0, "total_connections": 0});
            Ok(Answer::ok(json!({"stats": stats})))
        }
        ("POST", ["loadbalancers"]) => load_balancer::create(world, asked),
        ("PUT", ["loadbalancers", id, "failover"]) => {
            asked.admin("os_load-balancer_api:loadbalancer:put_failover")?;
            HANDLERS.find(world, asked, types::at("loadbalancers")?, id)?;
            change::begin(world, id, world.settings.times.load_balancer)?;
            Ok(Answer::empty(202))
        }
        (_, ["pools", pool, "members", rest @ ..]) => {
            HANDLERS.find(world, asked, types::at("pools")?, pool)?;
            members(world, asked, pool, rest)
        }
        (_, [collection, rest @ ..]) => HANDLERS.answer(world, asked, types::at(collection)?, rest),
        _ => Err(ApiError::unknown_path()),
    }
}

fn members(world: &mut World, asked: &ApiRequest, pool: &str, path: &[&str]) -> ApiAnswer {
    let of = types::at("members")?;
    match (asked.method.as_str(), path) {
        ("GET", []) => HANDLERS.list(world, asked, of, Some(("pool", pool))),
        ("POST", []) => {
            let given = children::below(&json!(asked.wrapped("member")?), "pool_id", pool);
            let id = children::create(world, asked, of, &given)?;
            HANDLERS.one(world, asked, of, &id, 201)
        }
        ("PUT", []) => {
            children::replace(world, asked, pool)?;
            Ok(Answer::empty(202))
        }
        (_, [id]) => {
            let member = world.store.get(Kind::Member, id);
            if member.is_none_or(|member| member.note("pool") != pool) {
                return Err(of.missing(id));
            }
            HANDLERS.answer(world, asked, of, path)
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn sees(_: &World, asked: &ApiRequest, _: &ResourceType, one: &Object) -> bool {
    asked.sees(&one.project)
}

/// An object in the status tree.
fn status(object: &Object) -> Value {
    let has = |field: &str| object.body.contains_key(field);
    let fields: &[&str] = match (has("address"), has("type")) {
        (true, _) => {
            &["id", "name", "provisioning_status", "operating_status", "address", "protocol_port"]
        }
        (_, true) => &["id", "name", "provisioning_status", "operating_status", "type"],
        _ => &["id", "name", "provisioning_status", "operating_status"],
    };
    fields.iter().map(|field| ((*field).to_owned(), json!(object.body.get(*field)))).collect()
}

/// The index entry for a filter.
fn index<'a>(key: &'a str, value: &'a str) -> Option<Condition<'a>> {
    match key {
        "loadbalancer_id" | "load_balancer_id" => Some(vec![("balancer", value)]),
        "listener_id" => Some(vec![("listeners", value)]),
        "pool_id" => Some(vec![("pool", value), ("pools", value)]),
        "project_id" | "tenant_id" => Some(vec![(PROJECT, value)]),
        key => page::said(key, &[value]),
    }
}

/// Whether an object passes a filter. Filters may name the ids of parents.
fn passes(one: &Object, key: &str, value: &str) -> bool {
    let refers = |field: &str| one.list(field).iter().any(|other| other["id"] == value);
    match key {
        "loadbalancer_id" | "load_balancer_id" => one.note("balancer") == value,
        "listener_id" => refers("listeners"),
        "pool_id" => one.note("pool") == value || refers("pools"),
        _ => page::equals(one.body.get(key), value),
    }
}
