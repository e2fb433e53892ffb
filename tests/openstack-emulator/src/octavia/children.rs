//! Listeners, pools, members and health monitors.

use serde_json::{Value, json};

use super::change::{self, immutable, refuse_incomplete, refuse_unknown, text};
use super::references::{put_in, tie};
use super::{quota, types};
use crate::handlers::Fields;
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::resource::{ResourceType, Set};
use crate::world::{World, bare_stamp};

/// Creates a child of a load balancer that is not busy.
pub(super) fn create(
    world: &mut World,
    asked: &ApiRequest,
    of: &ResourceType,
    given: &Fields,
) -> Result<String, ApiError> {
    let balancer = balancer_of(world, asked, given)?;
    // Validation comes first: a bad request to a busy load balancer gets the validation error, and creates nothing.
    let found = world.store.get(Kind::LoadBalancer, &balancer);
    if found.is_none_or(|one| one.text("provisioning_status") != "ACTIVE") {
        return Err(immutable(&balancer));
    }
    let id = make(world, asked, of, given)?;
    change::begin(world, &balancer, world.settings.times.load_balancer_child)?;
    Ok(id)
}

/// The load balancer of a new child.
fn balancer_of(world: &World, asked: &ApiRequest, given: &Fields) -> Result<String, ApiError> {
    for (key, path) in
        [("loadbalancer_id", "loadbalancers"), ("listener_id", "listeners"), ("pool_id", "pools")]
    {
        let Some(id) = given.get(key).and_then(Value::as_str) else { continue };
        let of = types::at(path)?;
        let parent = world.seen(of.kind, id, asked).ok_or_else(|| of.missing(id))?;
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
    of: &ResourceType,
    given: &Fields,
) -> Result<String, ApiError> {
    let balancer = balancer_of(world, asked, given)?;
    let project = world.store.get(Kind::LoadBalancer, &balancer).map(|one| one.project.clone());
    let project = project.unwrap_or_default();
    quota::check(world, &project, of.kind, of.single)?;
    refuse_unknown(of, given, Set::New)?;
    refuse_incomplete(of, given)?;
    check(world, of, &balancer, given)?;
    let mut body = of.filled(given);
    body["project_id"] = json!(project);
    body["created_at"] = json!(bare_stamp());
    body["updated_at"] = Value::Null;
    let pool = text(given, "pool_id");
    match of.path {
        "listeners" => body["loadbalancers"] = json!([{"id": balancer}]),
        "pools" => {
            body["loadbalancers"] = json!([{"id": balancer}]);
            body["members"] = json!([]);
        }
        "healthmonitors" => {
            body["pools"] = json!([{"id": pool}]);
            if ["HTTP", "HTTPS"].contains(&text(given, "type")) {
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
    object.keep("pool", pool);
    let id = object.id.clone();
    world.store.insert(of.kind, object);
    put_in(world, of.path, &balancer, pool, &id);
    match of.path {
        "listeners" if !text(given, "default_pool_id").is_empty() => {
            tie(world, &id, text(given, "default_pool_id"));
        }
        "pools" if !text(given, "listener_id").is_empty() => {
            tie(world, text(given, "listener_id"), &id);
        }
        _ => {}
    }
    Ok(id)
}

/// Refuses a request that the fields of other objects rule out.
fn check(world: &World, of: &ResourceType, balancer: &str, given: &Fields) -> Result<(), ApiError> {
    let port = given.get("protocol_port").and_then(Value::as_i64).unwrap_or_default();
    match of.path {
        "listeners" => {
            if !(1..=65535).contains(&port) {
                return Err(ApiError::bad(
                    "Invalid input for field/attribute protocol_port. Mandatory field missing.",
                ));
            }
            let udp = |protocol: &str| protocol == "UDP";
            let protocol = text(given, "protocol");
            let mut others = world.store.with_text(Kind::Listener, "balancer", balancer);
            if others.any(|one| {
                one.number("protocol_port") == port && udp(one.text("protocol")) == udp(protocol)
            }) {
                return Err(ApiError::conflict(format!(
                    "Another Listener on this Load Balancer is already using protocol {protocol} and protocol_port {port}"
                )));
            }
            let pool = text(given, "default_pool_id");
            let known = world.store.get(Kind::Pool, pool);
            if !pool.is_empty() && known.is_none_or(|pool| pool.note("balancer") != balancer) {
                return Err(types::at("pools")?.missing(pool));
            }
        }
        "pools" => {
            let listener = world.store.get(Kind::Listener, text(given, "listener_id"));
            if let Some(listener) = listener.filter(|one| !one.text("default_pool_id").is_empty()) {
                return Err(ApiError::conflict(format!(
                    "Listener {} already has a default pool: {}",
                    listener.id,
                    listener.text("default_pool_id")
                )));
            }
        }
        "members" => {
            let address = text(given, "address");
            if address.parse::<std::net::IpAddr>().is_err() {
                return Err(ApiError::bad(format!(
                    "Invalid input for field/attribute address. Value: '{address}'. Value should be IPv4 or IPv6 format"
                )));
            }
            let mut others = world.store.with_text(Kind::Member, "pool", text(given, "pool_id"));
            if others
                .any(|one| one.text("address") == address && one.number("protocol_port") == port)
            {
                return Err(ApiError::conflict(format!(
                    "Another member on this pool is already using ip {address} on protocol_port {port}"
                )));
            }
        }
        _ => {
            let pool = text(given, "pool_id");
            if world.store.with_text(Kind::HealthMonitor, "pool", pool).next().is_some() {
                return Err(ApiError::conflict("This pool already has a health monitor"));
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
) -> Result<(), ApiError> {
    refuse_unknown(of, given, Set::Later)?;
    let balancer = balancer(world, of, id);
    change::begin(world, &balancer, world.settings.times.load_balancer_child)?;
    if let Some(object) = world.store.get_mut(of.kind, id) {
        object.body.extend(given.clone());
        object.set("provisioning_status", "PENDING_UPDATE");
        object.set("updated_at", bare_stamp());
    }
    if !text(given, "default_pool_id").is_empty() {
        tie(world, id, text(given, "default_pool_id"));
    }
    Ok(())
}

/// Begins the deletion of a child. The members and the monitor of a pool are deleted with it.
pub(super) fn delete(world: &mut World, of: &ResourceType, id: &str) -> Result<(), ApiError> {
    let balancer = balancer(world, of, id);
    change::begin(world, &balancer, world.settings.times.load_balancer_child)?;
    let below = [Kind::Member, Kind::HealthMonitor].into_iter().filter(|_| of.kind == Kind::Pool);
    let below = below.flat_map(|kind| {
        world.store.ids(kind, "pool", id).into_iter().map(move |child| (kind, child))
    });
    for (kind, id) in below.chain([(of.kind, id.to_owned())]).collect::<Vec<_>>() {
        if let Some(object) = world.store.get_mut(kind, &id) {
            object.set("provisioning_status", "PENDING_DELETE");
        }
    }
    Ok(())
}

/// Answers `PUT /pools/{pool}/members`: replaces all members, or adds some if the request says so.
pub(super) fn replace(world: &mut World, asked: &ApiRequest, pool: &str) -> Result<(), ApiError> {
    let of = types::at("members")?;
    let wanted = asked.json()?["members"].as_array().cloned().unwrap_or_default();
    let additive = asked.query("additive_only").is_some() && asked.flag("additive_only");
    let balancer = balancer(world, types::at("pools")?, pool);
    change::begin(world, &balancer, world.settings.times.load_balancer_child)?;
    let there = world.store.with_text(Kind::Member, "pool", pool);
    let there: Vec<(String, String, i64)> = there
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
        if there.iter().any(|(_, address, port)| same(one, address, *port)) {
            continue;
        }
        let mut fields = one.as_object().cloned().unwrap_or_default();
        fields.insert("pool_id".into(), json!(pool));
        make(world, asked, of, &fields)?;
    }
    Ok(())
}
