//! The ports of networks.

use serde_json::{Map, Value, json};

use super::address::{allocate, release};
use super::object::{self, merge, visible};
use super::quota::check as check_quota;
use super::security_group::default_group;
use super::{association, tag, types};
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::world::{BackgroundTask, World};

/// Device owners whose ports can only be deleted with their owner.
const OWNED: [&str; 4] =
    ["network:router_interface", "network:router_gateway", "network:floatingip", "network:dhcp"];

pub(super) fn create(
    world: &mut World,
    asked: &ApiRequest,
    object: Object,
    given: &Map<String, Value>,
) -> Result<String, ApiError> {
    let id = object.text("network_id").to_owned();
    let network = visible(world, asked, Kind::Network, &id)?;
    if !asked.sees(&network.project) && !network.is("shared") {
        return Err(ApiError::forbidden(format!(
            "Tenant {} not allowed to create port on this network",
            object.project
        )));
    }
    if let Some(tags) = given.get("tags") {
        tag::checked(tags.as_array())?;
    }
    finish(world, object, given)
}

/// Creates a port for another service.
pub(crate) fn make(world: &mut World, project: &str, body: Value) -> Result<String, ApiError> {
    check_quota(world, project, Kind::Port, 1)?;
    let given = body.as_object().cloned().unwrap_or_default();
    let object = world.object(project, object::body(Kind::Port, project, &given));
    finish(world, object, &given)
}

fn finish(
    world: &mut World,
    mut object: Object,
    given: &Map<String, Value>,
) -> Result<String, ApiError> {
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
fn check_mac(world: &World, network: &str, mac: &str, own: Option<&str>) -> Result<(), ApiError> {
    let mut same = world.store.with_text(Kind::Port, "mac_address", mac);
    if !same.any(|port| port.text("network_id") == network && own != Some(port.id.as_str())) {
        return Ok(());
    }
    let message = format!(
        "Unable to complete operation for network {network}. The mac address {mac} is in use."
    );
    Err(ApiError::new(409, "MacAddressInUse", message))
}

/// The DNS names of a port within its network.
fn assignment(port: &Object, ips: &[Value]) -> Vec<Value> {
    let row = |ip: &Value| {
        let address = ip["ip_address"].as_str().unwrap_or_default();
        let host = format!("host-{}", address.replace(['.', ':'], "-"));
        let name =
            if port.text("dns_name").is_empty() { host } else { port.text("dns_name").to_owned() };
        json!({"hostname": name, "ip_address": address, "fqdn": format!("{name}.openstacklocal.")})
    };
    ips.iter().map(row).collect()
}

fn checked_groups(world: &World, groups: &[Value]) -> Result<Vec<Value>, ApiError> {
    for group in groups {
        let id = group.as_str().unwrap_or_default();
        let found = world.store.get(Kind::SecurityGroup, id);
        found.ok_or_else(|| types::of(Kind::SecurityGroup).missing(id))?;
    }
    Ok(groups.to_vec())
}

/// Refuses a change of the binding by others than administrators, and a change of the MAC address of a bound port.
fn check_binding(
    world: &World,
    asked: &ApiRequest,
    id: &str,
    given: &Map<String, Value>,
) -> Result<(), ApiError> {
    let admins = ["binding:host_id", "binding:profile", "mac_address"];
    if let Some(key) = admins.into_iter().find(|key| given.contains_key(*key))
        && !asked.caller.is_admin()
    {
        return Err(ApiError::forbidden(format!(
            "((rule:update_port and rule:update_port:{key})) is disallowed by policy"
        )));
    }
    let Some(port) = world.store.get(Kind::Port, id) else { return Ok(()) };
    let (old, host) = (port.text("mac_address"), port.text("binding:host_id"));
    let is_new = given.get("mac_address").is_some_and(|new| new.as_str() != Some(old));
    if is_new && !host.is_empty() {
        return Err(ApiError::new(
            409,
            "PortBound",
            format!(
                "Unable to complete operation on port {id}, port is already bound, port type: other, old_mac {old}"
            ),
        ));
    }
    Ok(())
}

pub(super) fn change(
    world: &mut World,
    asked: &ApiRequest,
    id: &str,
    given: &Map<String, Value>,
) -> Result<(), ApiError> {
    let mut given = given.clone();
    check_binding(world, asked, id, &given)?;
    check_new_mac(world, id, &given)?;
    if given.get("mac_address").is_some_and(Value::is_null) {
        given.insert("mac_address".into(), json!(new_mac(&uuid::Uuid::new_v4().to_string())));
    }
    if let Some(groups) = given.get("security_groups").and_then(Value::as_array) {
        checked_groups(world, groups)?;
    }
    let port = world.store.get(Kind::Port, id).cloned();
    if let (Some(wanted), Some(port)) = (given.get("fixed_ips").and_then(Value::as_array), port) {
        let wanted = wanted.clone();
        // Addresses that stay are kept. The others are released and allocated anew.
        let (kept, gone): (Vec<Value>, Vec<Value>) = port
            .list("fixed_ips")
            .iter()
            .cloned()
            .partition(|ip| wanted.iter().any(|one| one["ip_address"] == ip["ip_address"]));
        let fresh: Vec<Value> = wanted
            .into_iter()
            .filter(|one| !kept.iter().any(|ip| ip["ip_address"] == one["ip_address"]))
            .collect();
        let mut ips = kept;
        ips.extend(allocate(world, port.text("network_id"), Some(&fresh))?);
        release(world, &gone);
        given.insert("dns_assignment".into(), json!(assignment(&port, &ips)));
        given.insert("fixed_ips".into(), json!(ips));
        world.start(BackgroundTask::Reopen);
    }
    merge(world, Kind::Port, id, &given);
    Ok(())
}

/// Refuses a new MAC address that another port of the same network has.
fn check_new_mac(world: &World, id: &str, given: &Map<String, Value>) -> Result<(), ApiError> {
    let mac = given.get("mac_address").and_then(Value::as_str);
    match (mac, world.store.get(Kind::Port, id)) {
        (Some(mac), Some(port)) => check_mac(world, port.text("network_id"), mac, Some(id)),
        _ => Ok(()),
    }
}

pub(super) fn delete_asked(world: &mut World, id: &str, _: &ApiRequest) -> Result<(), ApiError> {
    let port = world.store.get(Kind::Port, id);
    let owner = port.map(|port| port.text("device_owner").to_owned()).unwrap_or_default();
    if OWNED.contains(&owner.as_str()) && owner != "network:dhcp" {
        return Err(ApiError::new(
            409,
            "ServicePortInUse",
            format!(
                "Port {id} cannot be deleted directly via the port API: has device owner {owner}."
            ),
        ));
    }
    delete(world, id);
    Ok(())
}

/// Deletes a port, even if a device owns it, releases its addresses and disassociates its floating IPs.
pub(crate) fn delete(world: &mut World, id: &str) {
    let Some(port) = world.store.remove(Kind::Port, id) else { return };
    release(world, port.list("fixed_ips"));
    association::leave(world, id);
    world.start(BackgroundTask::Reopen);
}
