//! Listeners, pools, members and health monitors.

use serde_json::{Value, json};

use super::change::{self, refuse_incomplete, refuse_unknown};
use super::references::{put_in, tie};
use super::{quota, refuse, types};
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{ApiRequest, ApiResult};
use crate::resource::{ResourceType, Set};
use crate::world::{World, bare_stamp};

/// Creates a child of a load balancer that is not busy.
pub(super) fn create(
    world: &mut World,
    asked: &ApiRequest,
    of: &ResourceType,
    given: &Fields,
) -> ApiResult<String> {
    let balancer = balancer_of(world, asked, given)?;
    // Validation comes first: a bad request to a busy load balancer gets the validation error, and creates nothing.
    let found = world.store.get(Kind::LoadBalancer, &balancer);
    if found.is_none_or(|one| one.text("provisioning_status") != "ACTIVE") {
        return Err(refuse::immutable(&balancer));
    }
    let id = make(world, asked, of, given)?;
    change::begin(world, &balancer, world.settings.times.load_balancer_child)?;
    Ok(id)
}

/// The load balancer of a new child.
fn balancer_of(world: &World, asked: &ApiRequest, given: &Fields) -> ApiResult<String> {
    for (key, path) in
        [("loadbalancer_id", "loadbalancers"), ("listener_id", "listeners"), ("pool_id", "pools")]
    {
        let Some(id) = given.text_of(key) else { continue };
        let of = types::at(path)?;
        let parent = world.seen(of.kind, id, asked).ok_or_else(|| of.missing(id))?;
        return Ok(balancer(world, of, &parent.id));
    }
    Err(refuse::no_parent())
}

/// The given fields of a child, with the id of its parent.
pub(super) fn below(given: &Value, parent: &str, id: &str) -> Fields {
    let mut fields = given.as_object().cloned().unwrap_or_default();
    fields.insert(parent.to_owned(), json!(id));
    fields
}

/// Creates a child of the parents that its fields name.
pub(super) fn make(
    world: &mut World,
    asked: &ApiRequest,
    of: &ResourceType,
    given: &Fields,
) -> ApiResult<String> {
    let balancer = balancer_of(world, asked, given)?;
    let project = world.store.get(Kind::LoadBalancer, &balancer).map(|one| one.project.clone());
    let project = project.unwrap_or_default();
    quota::check(world, &project, of.kind, of.single)?;
    refuse_unknown(of, given, Set::New)?;
    refuse_incomplete(of, given)?;
    check(world, of, &balancer, given)?;
    let (pool, above) = (given.text("pool_id"), json!([{"id": balancer}]));
    let mut body = types::new_body(of, &project, given);
    match of.path {
        "listeners" => body["loadbalancers"] = above,
        "pools" => {
            body["loadbalancers"] = above;
            body["members"] = json!([]);
        }
        "healthmonitors" => {
            body["pools"] = json!([{"id": pool}]);
            let usual = [("http_method", "GET"), ("url_path", "/"), ("expected_codes", "200")];
            let is_http = ["HTTP", "HTTPS"].contains(&given.text("type"));
            for (key, value) in usual {
                if is_http && body[key].is_null() {
                    body[key] = json!(value);
                }
            }
        }
        _ => {}
    }
    let mut object = world.object(&project, body);
    object.keep("balancer", balancer.clone());
    object.keep("pool", pool);
    let id = object.id.clone();
    world.store.insert(of.kind, object);
    put_in(world, of.path, &balancer, pool, &id);
    match (of.path, given.text("default_pool_id"), given.text("listener_id")) {
        ("listeners", pool, _) if !pool.is_empty() => tie(world, &id, pool),
        ("pools", _, listener) if !listener.is_empty() => tie(world, listener, &id),
        _ => {}
    }
    Ok(id)
}

/// Refuses a request that the fields of other objects rule out.
fn check(world: &World, of: &ResourceType, balancer: &str, given: &Fields) -> ApiResult {
    let port = given.field("protocol_port").as_i64().unwrap_or_default();
    match of.path {
        "listeners" => {
            if !(1..=65535).contains(&port) {
                return Err(refuse::lacking("protocol_port"));
            }
            let (protocol, pool) = (given.text("protocol"), given.text("default_pool_id"));
            let mut others = world.store.with_text(Kind::Listener, "balancer", balancer);
            let udp = |protocol: &str| protocol == "UDP";
            if others.any(|one| {
                one.number("protocol_port") == port && udp(one.text("protocol")) == udp(protocol)
            }) {
                return Err(refuse::port_used(protocol, port));
            }
            let known = world.store.get(Kind::Pool, pool);
            if !pool.is_empty() && known.is_none_or(|pool| pool.note("balancer") != balancer) {
                return Err(types::at("pools")?.missing(pool));
            }
        }
        "pools" => {
            let listener = world.store.get(Kind::Listener, given.text("listener_id"));
            if let Some(listener) = listener.filter(|one| !one.text("default_pool_id").is_empty()) {
                return Err(refuse::has_pool(&listener.id, listener.text("default_pool_id")));
            }
        }
        "members" => {
            let address = given.text("address");
            if address.parse::<std::net::IpAddr>().is_err() {
                return Err(refuse::bad_address(address));
            }
            let mut others = world.store.with_text(Kind::Member, "pool", given.text("pool_id"));
            if others.any(|it| it.text("address") == address && it.number("protocol_port") == port)
            {
                return Err(refuse::member_twice(address, port));
            }
        }
        _ => {
            let pool = given.text("pool_id");
            if world.store.with_text(Kind::HealthMonitor, "pool", pool).next().is_some() {
                return Err(refuse::monitored());
            }
        }
    }
    Ok(())
}

/// The load balancer of an object, which may be the load balancer itself.
fn balancer(world: &World, of: &ResourceType, id: &str) -> String {
    let object = world.store.get(of.kind, id).filter(|_| of.kind != Kind::LoadBalancer);
    object.map_or(id, |object| object.note("balancer")).to_owned()
}

/// Updates an object, which may be a load balancer.
pub(super) fn update(
    world: &mut World,
    _: &ApiRequest,
    of: &ResourceType,
    id: &str,
    given: &Fields,
) -> ApiResult {
    refuse_unknown(of, given, Set::Later)?;
    let balancer = balancer(world, of, id);
    change::begin(world, &balancer, world.settings.times.load_balancer_child)?;
    world.store.change(of.kind, id, |object| {
        object.body.extend(given.clone());
        object.set("provisioning_status", "PENDING_UPDATE");
        object.set("updated_at", bare_stamp());
    });
    if !given.text("default_pool_id").is_empty() {
        tie(world, id, given.text("default_pool_id"));
    }
    Ok(())
}

/// Begins the deletion of a child. The members and the monitor of a pool are deleted with it.
pub(super) fn delete(world: &mut World, of: &ResourceType, id: &str) -> ApiResult {
    let balancer = balancer(world, of, id);
    change::begin(world, &balancer, world.settings.times.load_balancer_child)?;
    let below = [Kind::Member, Kind::HealthMonitor].into_iter().filter(|_| of.kind == Kind::Pool);
    let below = below.flat_map(|kind| {
        world.store.ids(kind, "pool", id).into_iter().map(move |child| (kind, child))
    });
    for (kind, id) in below.chain([(of.kind, id.to_owned())]).collect::<Vec<_>>() {
        world.store.set(kind, &id, "provisioning_status", "PENDING_DELETE");
    }
    Ok(())
}

/// Answers `PUT /pools/{pool}/members`: replaces all members, or adds some if the request says so.
pub(super) fn replace(world: &mut World, asked: &ApiRequest, pool: &str) -> ApiResult {
    let of = types::at("members")?;
    let wanted = asked.json()?.list("members").to_vec();
    let additive = asked.flag("additive_only");
    let balancer = balancer(world, types::at("pools")?, pool);
    change::begin(world, &balancer, world.settings.times.load_balancer_child)?;
    let there = world.store.with_text(Kind::Member, "pool", pool);
    let there: Vec<Object> = there.cloned().collect();
    let same = |one: &Value, member: &Object| {
        one["address"] == member.text("address")
            && one["protocol_port"] == member.number("protocol_port")
    };
    for member in &there {
        let mention = wanted.iter().find(|one| same(one, member));
        let Some(member) = world.store.get_mut(Kind::Member, &member.id) else { continue };
        match mention.and_then(Value::as_object) {
            Some(given) => {
                let given = of.settable(given, Set::Later);
                member.body.extend(given.map(|(key, value)| (key.clone(), value.clone())));
            }
            None if additive => {}
            None => member.set("provisioning_status", "PENDING_DELETE"),
        }
    }
    for one in &wanted {
        if there.iter().any(|member| same(one, member)) {
            continue;
        }
        make(world, asked, of, &below(one, "pool_id", pool))?;
    }
    Ok(())
}
