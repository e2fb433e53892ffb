//! Listeners, pools, members and health monitors.

use serde_json::{Map, Value, json};

use super::sort::{ResourceType, SORTS};
use super::{change, fill, find, full, list, quota};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Kind, Object};
use crate::world::{World, bare_stamp};

const LISTENER_PROTOCOLS: [&str; 8] =
    ["TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "UDP", "SCTP", "PROMETHEUS", "PROXY"];
const POOL_PROTOCOLS: [&str; 7] = ["TCP", "HTTP", "HTTPS", "PROXY", "PROXYV2", "UDP", "SCTP"];
const ALGORITHMS: [&str; 4] = ["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"];
const MONITORS: [&str; 7] = ["HTTP", "HTTPS", "PING", "TCP", "TLS-HELLO", "UDP-CONNECT", "SCTP"];

/// Answers `POST /listeners` and the like.
pub(super) fn create(world: &mut World, asked: &ApiRequest, sort: &ResourceType) -> AnswerResult {
    let given = asked.wrapped(sort.single)?;
    let balancer = balancer_of(world, asked, &given)?;
    let usual = world.settings.times.load_balancer_child;
    // Validation comes first: a bad request to a busy load balancer gets the validation error, and creates nothing.
    let status = world
        .store
        .get(Kind::LoadBalancer, &balancer)
        .map(|one| one.text("provisioning_status").to_owned());
    if status.as_deref() != Some("ACTIVE") {
        return Err(super::immutable(&balancer));
    }
    let id = make(world, asked, sort, given)?;
    change(world, &balancer, usual)?;
    let body = world.store.get(sort.kind, &id).map(Object::shown);
    Ok(Answer::json(201, json!({sort.single: body})))
}

/// The load balancer of a new child.
fn balancer_of(
    world: &World,
    asked: &ApiRequest,
    given: &Map<String, Value>,
) -> Result<String, ApiError> {
    for (key, path) in
        [("loadbalancer_id", "loadbalancers"), ("listener_id", "listeners"), ("pool_id", "pools")]
    {
        let Some(id) = given.get(key).and_then(Value::as_str) else { continue };
        let parent = find(world, asked, ResourceType::of(path)?, id)?;
        let balancer =
            if key == "loadbalancer_id" { parent.id.as_str() } else { parent.note("balancer") };
        return Ok(balancer.to_owned());
    }
    Err(ApiError::bad(
        "Validation failure: Must provide at least one of loadbalancer_id, listener_id or pool_id.",
    ))
}

/// Creates a child of the parents that its fields name.
pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    sort: &ResourceType,
    given: Map<String, Value>,
) -> Result<String, ApiError> {
    let balancer = balancer_of(world, asked, &given)?;
    let project = world
        .store
        .get(Kind::LoadBalancer, &balancer)
        .map(|one| one.project.clone())
        .unwrap_or_default();
    quota::check(world, &project, sort.kind, sort.single)?;
    let mut known = sort.create.to_vec();
    known.push("pool_id");
    let mut body = fill(sort, &given, &known)?;
    check(world, sort, &balancer, &given)?;
    for key in
        ["loadbalancer_id", "listener_id", "pool_id", "default_pool", "members", "healthmonitor"]
    {
        if let Some(body) = body.as_object_mut() {
            body.remove(key);
        }
    }
    body["project_id"] = json!(project);
    body["created_at"] = json!(bare_stamp());
    body["updated_at"] = Value::Null;
    let pool = given.get("pool_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    match sort.path {
        "listeners" => body["loadbalancers"] = json!([{"id": balancer}]),
        "pools" => {
            body["loadbalancers"] = json!([{"id": balancer}]);
            body["members"] = json!([]);
        }
        "healthmonitors" => {
            body["pools"] = json!([{"id": pool}]);
            if ["HTTP", "HTTPS"].contains(&body["type"].as_str().unwrap_or_default()) {
                for (key, value) in
                    [("http_method", "GET"), ("url_path", "/"), ("expected_codes", "200")]
                {
                    if body[key].is_null() {
                        body[key] = json!(value);
                    }
                }
            }
        }
        _ => {}
    }
    let mut object = world.object(&project, body);
    object.keep("balancer", balancer.clone());
    object.keep("pool", pool.clone());
    let id = object.id.clone();
    world.store.insert(sort.kind, object);
    match sort.path {
        "listeners" => {
            refer(world, Kind::LoadBalancer, &balancer, "listeners", &id);
            if let Some(pool) = given.get("default_pool_id").and_then(Value::as_str) {
                full::tie(world, &id, pool);
            }
        }
        "pools" => {
            refer(world, Kind::LoadBalancer, &balancer, "pools", &id);
            if let Some(listener) = given.get("listener_id").and_then(Value::as_str) {
                full::tie(world, listener, &id);
            }
        }
        "members" => refer(world, Kind::Pool, &pool, "members", &id),
        "healthmonitors" => {
            if let Some(pool) = world.store.get_mut(Kind::Pool, &pool) {
                pool.set("healthmonitor_id", id.clone());
            }
        }
        _ => {}
    }
    Ok(id)
}

fn refer(world: &mut World, kind: Kind, parent: &str, field: &str, child: &str) {
    if let Some(parent) = world.store.get_mut(kind, parent) {
        let mut all = parent.list(field).to_vec();
        all.push(json!({"id": child}));
        parent.set(field, all);
    }
}

fn one_of(given: &Map<String, Value>, field: &str, known: &[&str]) -> Result<(), ApiError> {
    let value = given.get(field).and_then(Value::as_str).unwrap_or_default();
    if known.contains(&value) {
        return Ok(());
    }
    Err(ApiError::bad(format!(
        "Invalid input for field/attribute {field}. Value: '{value}'. Value should be one of: {}",
        known.join(", ")
    )))
}

fn check(
    world: &World,
    sort: &ResourceType,
    balancer: &str,
    given: &Map<String, Value>,
) -> Result<(), ApiError> {
    let port = given.get("protocol_port").and_then(Value::as_i64);
    match sort.path {
        "listeners" => {
            one_of(given, "protocol", &LISTENER_PROTOCOLS)?;
            let port = port.filter(|port| (1..=65535).contains(port)).ok_or_else(|| {
                ApiError::bad(
                    "Invalid input for field/attribute protocol_port. Mandatory field missing.",
                )
            })?;
            let udp = |protocol: &str| protocol == "UDP";
            let protocol = given.get("protocol").and_then(Value::as_str).unwrap_or_default();
            let mut others = world.store.with_text(Kind::Listener, "balancer", balancer);
            if others.any(|one| {
                one.number("protocol_port") == port && udp(one.text("protocol")) == udp(protocol)
            }) {
                return Err(ApiError::conflict(format!(
                    "Another Listener on this Load Balancer is already using protocol {protocol} and protocol_port {port}"
                )));
            }
            if let Some(pool) = given.get("default_pool_id").and_then(Value::as_str) {
                let known = world
                    .store
                    .get(Kind::Pool, pool)
                    .filter(|pool| pool.note("balancer") == balancer);
                known.ok_or_else(|| ApiError::missing(format!("Pool {pool} not found.")))?;
            }
        }
        "pools" => {
            one_of(given, "protocol", &POOL_PROTOCOLS)?;
            one_of(given, "lb_algorithm", &ALGORITHMS)?;
            let listener = given
                .get("listener_id")
                .and_then(Value::as_str)
                .and_then(|id| world.store.get(Kind::Listener, id));
            if let Some(listener) =
                listener.filter(|listener| !listener.text("default_pool_id").is_empty())
            {
                return Err(ApiError::conflict(format!(
                    "Listener {} already has a default pool: {}",
                    listener.id,
                    listener.text("default_pool_id")
                )));
            }
        }
        "members" => {
            let address = given.get("address").and_then(Value::as_str).unwrap_or_default();
            if address.parse::<std::net::IpAddr>().is_err() {
                return Err(ApiError::bad(format!(
                    "Invalid input for field/attribute address. Value: '{address}'. Value should be IPv4 or IPv6 format"
                )));
            }
            let port = port.ok_or_else(|| {
                ApiError::bad(
                    "Invalid input for field/attribute protocol_port. Mandatory field missing.",
                )
            })?;
            let pool = given.get("pool_id").and_then(Value::as_str).unwrap_or_default();
            let mut others = world.store.with_text(Kind::Member, "pool", pool);
            if others
                .any(|one| one.text("address") == address && one.number("protocol_port") == port)
            {
                return Err(ApiError::conflict(format!(
                    "Another member on this pool is already using ip {address} on protocol_port {port}"
                )));
            }
        }
        "healthmonitors" => {
            one_of(given, "type", &MONITORS)?;
            for field in ["delay", "timeout", "max_retries"] {
                if given.get(field).and_then(Value::as_i64).is_none() {
                    return Err(ApiError::bad(format!(
                        "Invalid input for field/attribute {field}. Mandatory field missing."
                    )));
                }
            }
            let pool = given.get("pool_id").and_then(Value::as_str).unwrap_or_default();
            if world.store.with_text(Kind::HealthMonitor, "pool", pool).next().is_some() {
                return Err(ApiError::conflict("This pool already has a health monitor"));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Answers `PUT` for any object, including a load balancer.
pub(super) fn update(
    world: &mut World,
    asked: &ApiRequest,
    sort: &ResourceType,
    id: &str,
) -> AnswerResult {
    let given = asked.wrapped(sort.single)?;
    fill(sort, &given, sort.update)?;
    let object = world.store.get(sort.kind, id).ok_or_else(|| sort.missing(id))?;
    let balancer = if sort.kind == Kind::LoadBalancer {
        id.to_owned()
    } else {
        object.note("balancer").to_owned()
    };
    let usual = world.settings.times.load_balancer_child;
    change(world, &balancer, usual)?;
    if let Some(object) = world.store.get_mut(sort.kind, id) {
        for (key, value) in &given {
            object.set(key, value.clone());
        }
        object.set("provisioning_status", "PENDING_UPDATE");
        object.set("updated_at", bare_stamp());
    }
    if let Some(pool) = given.get("default_pool_id").and_then(Value::as_str) {
        full::tie(world, id, pool);
    }
    let body = world.store.get(sort.kind, id).map(Object::shown);
    Ok(Answer::ok(json!({sort.single: body})))
}

/// Answers `DELETE` for a child.
pub(super) fn delete(world: &mut World, sort: &ResourceType, id: &str) -> AnswerResult {
    let object = world.store.get(sort.kind, id).ok_or_else(|| sort.missing(id))?;
    let balancer = object.note("balancer").to_owned();
    let usual = world.settings.times.load_balancer_child;
    change(world, &balancer, usual)?;
    if let Some(object) = world.store.get_mut(sort.kind, id) {
        object.set("provisioning_status", "PENDING_DELETE");
    }
    if sort.kind == Kind::Pool {
        for kind in [Kind::Member, Kind::HealthMonitor] {
            for child in world.store.ids(kind, "pool", id) {
                if let Some(child) = world.store.get_mut(kind, &child) {
                    child.set("provisioning_status", "PENDING_DELETE");
                }
            }
        }
    }
    Ok(Answer::empty(204))
}

/// Removes a child and all references to it.
pub(super) fn take_out(world: &mut World, kind: Kind, id: &str) {
    let Some(object) = world.store.remove(kind, id) else { return };
    let balancer = object.note("balancer").to_owned();
    let without =
        |all: &[Value]| all.iter().filter(|one| one["id"] != id).cloned().collect::<Vec<Value>>();
    let forget = |world: &mut World, kind: Kind, parent: &str, field: &str| {
        if let Some(parent) = world.store.get_mut(kind, parent) {
            let left = without(parent.list(field));
            parent.set(field, left);
        }
    };
    let path = SORTS.iter().find(|sort| sort.kind == kind).map_or("", |sort| sort.path);
    match path {
        "listeners" => {
            forget(world, Kind::LoadBalancer, &balancer, "listeners");
            forget(world, Kind::Pool, object.text("default_pool_id"), "listeners");
        }
        "pools" => {
            forget(world, Kind::LoadBalancer, &balancer, "pools");
            for listener in world.store.ids(Kind::Listener, "default_pool_id", id) {
                if let Some(listener) = world.store.get_mut(Kind::Listener, &listener) {
                    listener.set("default_pool_id", Value::Null);
                }
            }
        }
        "members" => forget(world, Kind::Pool, object.note("pool"), "members"),
        "healthmonitors" => {
            if let Some(pool) = world.store.get_mut(Kind::Pool, object.note("pool")) {
                pool.set("healthmonitor_id", Value::Null);
            }
        }
        _ => {}
    }
}

/// Answers `/pools/{pool}/members`.
pub(super) fn members(
    world: &mut World,
    asked: &ApiRequest,
    pool: &str,
    path: &[&str],
) -> AnswerResult {
    let sort = ResourceType::of("members")?;
    match (asked.method.as_str(), path) {
        ("GET", []) => list(world, asked, sort, Some(pool)),
        ("POST", []) => {
            let mut given = asked.wrapped("member")?;
            given.insert("pool_id".into(), json!(pool));
            let mut inner = asked.clone();
            inner.body = json!({"member": given}).to_string().into();
            create(world, &inner, sort)
        }
        ("PUT", []) => replace(world, asked, pool, sort),
        (method, [id]) => {
            let member =
                world.store.get(Kind::Member, id).filter(|member| member.note("pool") == pool);
            let member = member.ok_or_else(|| sort.missing(id))?;
            match method {
                "GET" => Ok(Answer::ok(json!({"member": member.shown()}))),
                "PUT" => update(world, asked, sort, id),
                "DELETE" => delete(world, sort, id),
                _ => Err(ApiError::unknown_path()),
            }
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Answers `PUT /pools/{pool}/members`: replaces all members, or adds some if the request says so.
fn replace(world: &mut World, asked: &ApiRequest, pool: &str, sort: &ResourceType) -> AnswerResult {
    let wanted = asked.json()?["members"].as_array().cloned().unwrap_or_default();
    let additive = asked.query("additive_only").is_some() && asked.flag("additive_only");
    let balancer = world
        .store
        .get(Kind::Pool, pool)
        .map(|pool| pool.note("balancer").to_owned())
        .unwrap_or_default();
    let usual = world.settings.times.load_balancer_child;
    change(world, &balancer, usual)?;
    let there: Vec<(String, String, i64)> = world
        .store
        .with_text(Kind::Member, "pool", pool)
        .map(|member| {
            (member.id.clone(), member.text("address").to_owned(), member.number("protocol_port"))
        })
        .collect();
    let same = |one: &Value, address: &str, port: i64| {
        one["address"] == address && one["protocol_port"] == port
    };
    for (id, address, port) in &there {
        let mention = wanted.iter().find(|one| same(one, address, *port));
        let Some(member) = world.store.get_mut(Kind::Member, id) else { continue };
        match mention {
            Some(given) => {
                for key in sort.update {
                    if let Some(value) = given.get(key) {
                        member.set(key, value.clone());
                    }
                }
            }
            None if additive => {}
            None => member.set("provisioning_status", "PENDING_DELETE"),
        }
    }
    for one in &wanted {
        if there.iter().any(|(_, address, port)| same(one, address, *port)) {
            continue;
        }
        let mut fields = one.as_object().cloned().unwrap_or_default();
        fields.insert("pool_id".into(), json!(pool));
        make(world, asked, sort, fields)?;
    }
    Ok(Answer::empty(202))
}
