//! The ports of networks.

use serde_json::{Value, json};

use super::address::{allocate, release};
use super::object::{self, merge, visible};
use super::quota::check as check_quota;
use super::security_group::default_group;
use super::{refuse, route, tag, types};
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::request::{ApiError, ApiRequest, ApiResult};
use crate::world::{BackgroundTask, World};

const DHCP: &str = "network:dhcp";
/// Device owners whose ports can only be deleted with their owner.
const OWNED: [&str; 3] =
    ["network:router_interface", "network:router_gateway", "network:floatingip"];

pub(super) fn create(
    world: &mut World,
    asked: &ApiRequest,
    object: Object,
    given: &Fields,
) -> ApiResult<String> {
    let network = visible(world, asked, Kind::Network, object.text("network_id"))?;
    if !asked.sees(&network.project) && !network.is("shared") {
        return Err(refuse::foreign_network(object.project));
    }
    if let Some(tags) = given.get("tags") {
        let tags = tags.as_array().ok_or_else(|| refuse::bad_tags("a list is needed"))?;
        tag::checked(tags.clone())?;
    }
    finish(world, object, given)
}

/// Creates a port for another service.
pub(crate) fn make(world: &mut World, project: &str, body: Value) -> ApiResult<String> {
    check_quota(world, project, Kind::Port, 1)?;
    let given = body.as_object().cloned().unwrap_or_default();
    let object = world.object(project, object::body(Kind::Port, project, &given));
    finish(world, object, &given)
}

fn finish(world: &mut World, mut object: Object, given: &Fields) -> ApiResult<String> {
    let network = object.text("network_id").to_owned();
    if object.text("mac_address").is_empty() {
        object.set("mac_address", new_mac(&object.id.clone()));
    }
    check_mac(world, &network, object.text("mac_address"), None)?;
    let groups = match given.get("security_groups").and_then(Value::as_array) {
        Some(groups) => checked_groups(world, groups)?,
        None if object.text("device_owner").starts_with("network:")
            || !object.is("port_security_enabled") =>
        {
            Vec::new()
        }
        None => vec![json!(default_group(world, &object.project.clone()))],
    };
    object.set("security_groups", groups);
    let wanted = given.get("fixed_ips").and_then(Value::as_array);
    let ips = allocate(world, &network, wanted.map(Vec::as_slice))?;
    object.set("dns_assignment", assignment(&object, &ips));
    object.set("fixed_ips", ips);
    let id = object.id.clone();
    world.store.insert(Kind::Port, object);
    Ok(id)
}

/// A MAC address made of the first digits of `id`.
fn new_mac(id: &str) -> String {
    let hex: Vec<char> = id.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    let pairs: Vec<String> = hex.chunks(2).map(|pair| pair.iter().collect()).collect();
    format!("fa:16:{}", pairs.join(":"))
}

/// Refuses a MAC address that another port of the network has.
fn check_mac(world: &World, network: &str, mac: &str, own: Option<&str>) -> ApiResult {
    let mut same = world.store.with_text(Kind::Port, "mac_address", mac);
    match same.any(|port| port.text("network_id") == network && own != Some(port.id.as_str())) {
        true => Err(refuse::mac_in_use(network, mac)),
        false => Ok(()),
    }
}

/// The DNS names of a port within its network.
fn assignment(port: &Object, ips: &[Value]) -> Vec<Value> {
    let row = |ip: &Value| {
        let address = ip.text("ip_address");
        let host = format!("host-{}", address.replace(['.', ':'], "-"));
        let name =
            if port.text("dns_name").is_empty() { host } else { port.text("dns_name").to_owned() };
        json!({"hostname": name, "ip_address": address, "fqdn": format!("{name}.openstacklocal.")})
    };
    ips.iter().map(row).collect()
}

fn checked_groups(world: &World, groups: &[Value]) -> ApiResult<Vec<Value>> {
    for group in groups {
        let id = group.as_str().unwrap_or_default();
        let found = world.store.get(Kind::SecurityGroup, id);
        found.ok_or_else(|| types::of(Kind::SecurityGroup).missing(id))?;
    }
    Ok(groups.to_vec())
}

/// Refuses a change of the binding by others than administrators, a change of the MAC address of a bound port, and a MAC address that another
/// port of the network has.
fn check_binding(asked: &ApiRequest, world: &World, port: &Object, given: &Fields) -> ApiResult {
    let admins = ["binding:host_id", "binding:profile", "mac_address"];
    if let Some(key) = admins.into_iter().find(|key| given.contains_key(*key))
        && !asked.caller.is_admin()
    {
        let rule = format!("(rule:update_port and rule:update_port:{key})");
        return Err(refuse::not_allowed(rule));
    }
    let (old, host) = (port.text("mac_address"), port.text("binding:host_id"));
    let is_new = given.get("mac_address").is_some_and(|new| *new != old);
    if is_new && !host.is_empty() {
        return Err(refuse::port_bound(&port.id, old));
    }
    match given.text_of("mac_address") {
        Some(mac) => check_mac(world, port.text("network_id"), mac, Some(&port.id)),
        None => Ok(()),
    }
}

pub(super) fn change(world: &mut World, asked: &ApiRequest, id: &str, given: &Fields) -> ApiResult {
    let port = world.store.get(Kind::Port, id).cloned();
    let port = port.ok_or_else(|| types::of(Kind::Port).missing(id))?;
    let mut given = given.clone();
    check_binding(asked, world, &port, &given)?;
    if given.get("mac_address").is_some_and(Value::is_null) {
        given.insert("mac_address".into(), json!(new_mac(&uuid::Uuid::new_v4().to_string())));
    }
    checked_groups(world, given.list("security_groups"))?;
    if given.field("fixed_ips").is_array() {
        let wanted = given.list("fixed_ips");
        let same = |one: &Value, all: &[Value]| {
            all.iter().any(|other| other["ip_address"] == one["ip_address"])
        };
        // Addresses that stay are kept. The others are released and allocated anew.
        let own = port.list("fixed_ips").iter().cloned();
        let (mut ips, gone): (Vec<Value>, Vec<Value>) = own.partition(|ip| same(ip, wanted));
        let fresh: Vec<Value> = wanted.iter().filter(|ip| !same(ip, &ips)).cloned().collect();
        ips.extend(allocate(world, port.text("network_id"), Some(&fresh))?);
        release(world, &gone);
        given.insert("dns_assignment".into(), json!(assignment(&port, &ips)));
        given.insert("fixed_ips".into(), json!(ips));
        world.start(BackgroundTask::Reopen);
    }
    merge(world, Kind::Port, id, &given);
    Ok(())
}

pub(super) fn delete_asked(world: &mut World, id: &str, _: &ApiRequest) -> ApiResult {
    let owner = world.store.get(Kind::Port, id).map(|port| port.text("device_owner"));
    if let Some(owner) = owner.filter(|owner| OWNED.contains(owner)) {
        return Err(refuse::owned_port(id, owner));
    }
    delete(world, id);
    Ok(())
}

/// Deletes the DHCP ports whose field contains this text. Refuses if other ports contain it.
pub(super) fn delete_dhcp(
    world: &mut World,
    field: &str,
    text: &str,
    refusal: impl FnOnce(&[&str]) -> ApiError,
) -> ApiResult {
    let ports = world.store.with_text(Kind::Port, field, text);
    let (own, others): (Vec<&Object>, Vec<&Object>) =
        ports.partition(|port| port.text("device_owner") == DHCP);
    if !others.is_empty() {
        return Err(refusal(&others.iter().map(|port| port.id.as_str()).collect::<Vec<_>>()));
    }
    for port in own.iter().map(|port| port.id.clone()).collect::<Vec<_>>() {
        delete(world, &port);
    }
    Ok(())
}

/// Deletes a port, even if a device owns it, releases its addresses and disassociates its floating IPs.
pub(crate) fn delete(world: &mut World, id: &str) {
    let Some(port) = world.store.remove(Kind::Port, id) else { return };
    release(world, port.list("fixed_ips"));
    route::leave(world, id);
    world.start(BackgroundTask::Reopen);
}
