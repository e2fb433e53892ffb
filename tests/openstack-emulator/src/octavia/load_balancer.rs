//! Creates and deletes load balancers.

use serde_json::{Map, Value, json};

use super::change::{self, immutable, refuse_unknown};
use super::references::{below, take_out, tree};
use super::{full, quota, types};
use crate::misbehave::End;
use crate::neutron;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::resource::Set;
use crate::world::{BackgroundTask, Event, World, bare_stamp};

/// Answers `POST /loadbalancers`, fully populated or not.
pub(super) fn create(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    let given = asked.wrapped("loadbalancer")?;
    let of = types::at("loadbalancers")?;
    refuse_unknown(of, &given, Set::New)?;
    let mut body = of.filled(&given);
    let project =
        given.get("project_id").and_then(Value::as_str).unwrap_or(&asked.caller.project).to_owned();
    if !asked.sees(&project) {
        return Err(ApiError::forbidden("Policy does not allow this request to be performed."));
    }
    quota::check(world, &project, Kind::LoadBalancer, "Load Balancer")?;
    if let Some(flavor) = given.get("flavor_id").and_then(Value::as_str) {
        let known = world.store.get(Kind::LoadBalancerFlavor, flavor);
        known.ok_or_else(|| {
            ApiError::bad(format!("Validation failure: Invalid flavor_id: {flavor}."))
        })?;
    }
    body["project_id"] = json!(project);
    body["created_at"] = json!(bare_stamp());
    body["updated_at"] = Value::Null;
    for children in ["listeners", "pools"] {
        body[children] = json!([]);
    }
    let mut balancer = world.object(&project, body);
    let id = balancer.id.clone();
    let port = vip(world, asked, &project, &id, balancer.text("name"), &given)?;
    let object = world.store.get(Kind::Port, &port).cloned().ok_or_else(ApiError::unknown_path)?;
    let ip = object.list("fixed_ips").first().cloned().unwrap_or_default();
    balancer.set("vip_port_id", port.clone());
    balancer.set("vip_network_id", object.text("network_id"));
    balancer.set("vip_subnet_id", ip["subnet_id"].clone());
    balancer.set("vip_address", ip["ip_address"].clone());
    balancer.keep("own_port", !given.contains_key("vip_port_id") || given["vip_port_id"].is_null());
    let name = balancer.text("name").to_owned();
    world.store.insert(Kind::LoadBalancer, balancer);
    if let Err(problem) = full::below(world, asked, &id, &given) {
        remove(world, &id);
        return Err(problem);
    }
    let time = world.settings.times.load_balancer;
    match world.misbehaviour.on_create(Kind::LoadBalancer, &name) {
        Some(End::Stuck) => {}
        Some(End::Takes(time)) => world.later(time, Event::Settled(id.clone())),
        end => {
            if let (Some(End::Error(_)), Some(balancer)) =
                (end, world.store.get_mut(Kind::LoadBalancer, &id))
            {
                balancer.keep("doomed", true);
            }
            world.later(time, Event::Settled(id.clone()));
        }
    }
    let made = world.store.get(Kind::LoadBalancer, &id).ok_or_else(|| of.missing(&id))?;
    let tree = tree(world, made, Object::shown, false);
    Ok(Answer::json(201, json!({"loadbalancer": tree})))
}

/// The VIP port: the port that the request names, or a new one.
fn vip(
    world: &mut World,
    asked: &ApiRequest,
    project: &str,
    id: &str,
    name: &str,
    given: &Map<String, Value>,
) -> Result<String, ApiError> {
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    if let Some(port) = text("vip_port_id") {
        let found = world.seen(Kind::Port, port, asked);
        let found = found.ok_or_else(|| ApiError::bad(format!("Port {port} not found.")))?;
        if !found.text("device_id").is_empty() {
            return Err(ApiError::conflict(format!("VIP port {port} is already in use.")));
        }
        if let Some(port) = world.store.get_mut(Kind::Port, port) {
            port.set("device_owner", "Octavia");
            port.set("device_id", format!("lb-{id}"));
        }
        return Ok(port.to_owned());
    }
    let visible = |network: &str| {
        let network = world.store.get(Kind::Network, network)?;
        (asked.sees(&network.project) || network.is("shared") || network.is("router:external"))
            .then_some(())
    };
    let mut ip = json!({});
    let network = match (text("vip_subnet_id"), text("vip_network_id")) {
        (Some(subnet), _) => {
            let found = world
                .store
                .get(Kind::Subnet, subnet)
                .filter(|subnet| visible(subnet.text("network_id")).is_some());
            ip["subnet_id"] = json!(subnet);
            found
                .ok_or_else(|| ApiError::bad(format!("Subnet {subnet} not found.")))?
                .text("network_id")
                .to_owned()
        }
        (None, Some(network)) => {
            visible(network)
                .ok_or_else(|| ApiError::bad(format!("Network {network} not found.")))?;
            network.to_owned()
        }
        (None, None) => {
            return Err(ApiError::bad(
                "Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.",
            ));
        }
    };
    if let Some(address) = text("vip_address") {
        ip["ip_address"] = json!(address);
    }
    let mut port = json!({
        "network_id": network, "name": format!("octavia-lb-{id}"), "device_owner": "Octavia", "device_id": format!("lb-{id}"), "admin_state_up": false,
        "description": name,
    });
    if ip.as_object().is_some_and(|ip| !ip.is_empty()) {
        port["fixed_ips"] = json!([ip]);
    }
    port["description"] = json!("");
    neutron::make_port(world, project, port)
}

/// Ends a PENDING status of a load balancer.
pub(crate) fn settled(world: &mut World, id: &str) {
    let Some(balancer) = world.store.get(Kind::LoadBalancer, id) else { return };
    if balancer.text("provisioning_status") == "PENDING_DELETE" {
        remove(world, id);
        world.start(BackgroundTask::Reopen);
        return;
    }
    let doomed = balancer.hidden.contains_key("doomed");
    let status = if doomed { "ERROR" } else { "ACTIVE" };
    for (kind, child) in below(world, id) {
        let Some(object) = world.store.get_mut(kind, &child) else { continue };
        if object.text("provisioning_status") == "PENDING_DELETE" {
            take_out(world, kind, &child);
            continue;
        }
        object.set("provisioning_status", status);
        let monitored = kind != Kind::Member;
        if monitored && !doomed {
            object.set("operating_status", "ONLINE");
        }
    }
    if let Some(balancer) = world.store.get_mut(Kind::LoadBalancer, id) {
        balancer.set("provisioning_status", status);
        balancer.set("operating_status", if doomed { "ERROR" } else { "ONLINE" });
        balancer.hidden.remove("doomed");
    }
    world.start(BackgroundTask::Reopen);
}

/// Removes a load balancer, its children and its port.
fn remove(world: &mut World, id: &str) {
    for (kind, child) in below(world, id) {
        world.store.remove(kind, &child);
    }
    let Some(balancer) = world.store.remove(Kind::LoadBalancer, id) else { return };
    let port = balancer.text("vip_port_id");
    if balancer.hidden.get("own_port") == Some(&json!(true)) {
        neutron::delete_port(world, port);
    } else if let Some(port) = world.store.get_mut(Kind::Port, port) {
        port.set("device_owner", "");
        port.set("device_id", "");
    }
}

/// Begins the deletion of a load balancer, with its children if the request says so.
pub(super) fn delete(world: &mut World, asked: &ApiRequest, id: &str) -> Result<(), ApiError> {
    let cascade = asked.query("cascade").is_some() && asked.flag("cascade");
    let children = below(world, id);
    let status = world
        .store
        .get(Kind::LoadBalancer, id)
        .map(|balancer| balancer.text("provisioning_status").to_owned());
    if status.as_deref().is_some_and(|status| status.starts_with("PENDING")) {
        return Err(immutable(id));
    }
    if !cascade && !children.is_empty() {
        return Err(ApiError::bad(format!(
            "Validation failure: Cannot delete Load Balancer {id} - it has children"
        )));
    }
    if status.as_deref() == Some("ERROR")
        && let Some(balancer) = world.store.get_mut(Kind::LoadBalancer, id)
    {
        balancer.set("provisioning_status", "ACTIVE");
    }
    let time = world.settings.times.load_balancer;
    change::begin(world, id, time)?;
    if let Some(balancer) = world.store.get_mut(Kind::LoadBalancer, id) {
        balancer.set("provisioning_status", "PENDING_DELETE");
    }
    for (kind, child) in children {
        if let Some(object) = world.store.get_mut(kind, &child) {
            object.set("provisioning_status", "PENDING_DELETE");
        }
    }
    Ok(())
}
