//! Creates and deletes load balancers.

use serde_json::json;

use super::change::{self, refuse_unknown};
use super::references::{below, take_out, tree};
use super::{full, quota, refuse, types};
use crate::neutron;
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::resource::Set;
use crate::world::{BackgroundTask, Event, World};

/// Answers `POST /loadbalancers`, fully populated or not.
pub(super) fn create(world: &mut World, asked: &ApiRequest) -> ApiAnswer {
    let given = asked.wrapped("loadbalancer")?;
    let of = types::at("loadbalancers")?;
    refuse_unknown(of, &given, Set::New)?;
    let project = given.text_of("project_id").unwrap_or(&asked.caller.project).to_owned();
    if !asked.sees(&project) {
        return Err(refuse::policy());
    }
    quota::check(world, &project, Kind::LoadBalancer, "Load Balancer")?;
    if let Some(flavor) = given.text_of("flavor_id") {
        let known = world.store.get(Kind::LoadBalancerFlavor, flavor);
        known.ok_or_else(|| refuse::no_flavor(flavor))?;
    }
    let mut body = types::new_body(of, &project, &given);
    body["listeners"] = json!([]);
    body["pools"] = json!([]);
    let mut balancer = world.object(&project, body);
    let id = balancer.id.clone();
    let port = vip(world, asked, &project, &id, &given)?;
    let object = world.store.get(Kind::Port, &port).cloned().ok_or_else(ApiError::unknown_path)?;
    let ip = object.list("fixed_ips").first().cloned().unwrap_or_default();
    balancer.set("vip_port_id", port.clone());
    balancer.set("vip_network_id", object.text("network_id"));
    balancer.set("vip_subnet_id", ip["subnet_id"].clone());
    balancer.set("vip_address", ip["ip_address"].clone());
    balancer.keep("own_port", given.field("vip_port_id").is_null());
    let name = balancer.text("name").to_owned();
    world.store.insert(Kind::LoadBalancer, balancer);
    if let Err(problem) = full::below(world, asked, &id, &given) {
        remove(world, &id);
        return Err(problem);
    }
    let usual = world.settings.times.load_balancer;
    if let Some((time, error)) = world.first_end(Kind::LoadBalancer, &name, usual) {
        if error.is_some() {
            world.store.keep(Kind::LoadBalancer, &id, "doomed", true);
        }
        world.later(time, Event::Settled(id.clone()));
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
    given: &Fields,
) -> ApiResult<String> {
    if let Some(port) = given.text_of("vip_port_id") {
        let found = world.seen(Kind::Port, port, asked).ok_or_else(|| refuse::no_port(port))?;
        if !found.text("device_id").is_empty() {
            return Err(refuse::vip_used(port));
        }
        world.store.set(Kind::Port, port, "device_owner", "Octavia");
        world.store.set(Kind::Port, port, "device_id", format!("lb-{id}"));
        return Ok(port.to_owned());
    }
    let is_visible = |network: &str| {
        world.store.get(Kind::Network, network).is_some_and(|network| {
            asked.sees(&network.project) || network.is("shared") || network.is("router:external")
        })
    };
    let mut ip = Fields::new();
    let network = match (given.text_of("vip_subnet_id"), given.text_of("vip_network_id")) {
        (Some(subnet), _) => {
            ip.insert("subnet_id".to_owned(), json!(subnet));
            let found = world.store.get(Kind::Subnet, subnet).map(|it| it.text("network_id"));
            let found = found.filter(|network| is_visible(network));
            found.ok_or_else(|| refuse::no_subnet(subnet))?
        }
        (None, Some(network)) if is_visible(network) => network,
        (None, Some(network)) => return Err(refuse::no_network(network)),
        (None, None) => return Err(refuse::no_vip()),
    };
    if let Some(address) = given.text_of("vip_address") {
        ip.insert("ip_address".to_owned(), json!(address));
    }
    let mut port = json!({
        "network_id": network, "name": format!("octavia-lb-{id}"), "device_owner": "Octavia", "device_id": format!("lb-{id}"), "admin_state_up": false,
    });
    if !ip.is_empty() {
        port["fixed_ips"] = json!([ip]);
    }
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
    world.store.change(Kind::LoadBalancer, id, |balancer| {
        balancer.set("provisioning_status", status);
        balancer.set("operating_status", if doomed { "ERROR" } else { "ONLINE" });
        balancer.hidden.remove("doomed");
    });
    world.start(BackgroundTask::Reopen);
}

/// Forgets the children of a load balancer, which then stay PENDING_CREATE, as Octavia 11 does without a jobboard.
pub(crate) fn forget_children(world: &mut World, id: &str) {
    for (kind, child) in below(world, id) {
        world.store.set(kind, &child, "provisioning_status", "PENDING_CREATE");
    }
}

/// Removes a load balancer, its children and its port.
fn remove(world: &mut World, id: &str) {
    for (kind, child) in below(world, id) {
        world.store.remove(kind, &child);
    }
    let Some(balancer) = world.store.remove(Kind::LoadBalancer, id) else { return };
    let port = balancer.text("vip_port_id");
    if balancer.hidden.is("own_port") {
        return neutron::delete_port(world, port);
    }
    world.store.set(Kind::Port, port, "device_owner", "");
    world.store.set(Kind::Port, port, "device_id", "");
}

/// Begins the deletion of a load balancer, with its children if the request says so.
pub(super) fn delete(world: &mut World, asked: &ApiRequest, id: &str) -> ApiResult {
    let children = below(world, id);
    let balancer = world.store.get(Kind::LoadBalancer, id);
    let status = balancer.map(|it| it.text("provisioning_status")).unwrap_or_default();
    if status.starts_with("PENDING") {
        return Err(refuse::immutable(id));
    }
    if !asked.flag("cascade") && !children.is_empty() {
        return Err(refuse::has_children(id));
    }
    if status == "ERROR" {
        world.store.set(Kind::LoadBalancer, id, "provisioning_status", "ACTIVE");
    }
    change::begin(world, id, world.settings.times.load_balancer)?;
    for (kind, one) in children.into_iter().chain([(Kind::LoadBalancer, id.to_owned())]) {
        world.store.set(kind, &one, "provisioning_status", "PENDING_DELETE");
    }
    Ok(())
}
