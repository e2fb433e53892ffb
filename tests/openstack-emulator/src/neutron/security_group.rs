//! Security groups and their rules.

use serde_json::{Value, json};

use super::object::{add, merge, touch};
use super::quota::check as check_quota;
use super::{refuse, types};
use crate::cidr;
use crate::index::PROJECT;
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::page;
use crate::request::{ApiRequest, ApiResult};
use crate::world::World;

/// The protocols by name.
#[rustfmt::skip]
const PROTOCOLS: [&str; 16] = [
    "ah", "dccp", "egp", "esp", "gre", "icmp", "icmpv6", "igmp", "ipip", "ipv6-icmp", "ospf", "sctp", "tcp", "udp", "udplite", "vrrp",
];

/// The fields that make two rules equal.
#[rustfmt::skip]
const IDENTITY: [&str; 8] = [
    "security_group_id", "direction", "ethertype", "protocol", "port_range_min", "port_range_max", "normalized_cidr", "remote_group_id",
];

/// The id of the project's group `default`. Creates the group if it is missing.
pub(crate) fn default_group(world: &mut World, project: &str) -> String {
    if let Some(group) = group_called(world, project, "default") {
        return group.id.clone();
    }
    let body = json!({"name": "default", "description": "Default security group"});
    let id = add(world, Kind::SecurityGroup, project, &body);
    for version in ["IPv4", "IPv6"] {
        add_rule(
            world,
            project,
            json!({"security_group_id": id, "direction": "egress", "ethertype": version}),
        );
        let within = json!({"security_group_id": id, "direction": "ingress", "ethertype": version, "remote_group_id": id});
        add_rule(world, project, within);
    }
    id
}

/// The group of a project with this name or id. The oldest one if several match.
pub(crate) fn group_called<'w>(world: &'w World, project: &str, name: &str) -> Option<&'w Object> {
    let said = [vec![(PROJECT, project)], vec![("name", name), ("id", name)]];
    let mut groups = world.store.narrowed(Kind::SecurityGroup, &said).into_iter();
    groups
        .find(|group| group.project == project && (group.text("name") == name || group.id == name))
}

fn add_rule(world: &mut World, project: &str, given: Value) {
    // The rules that Neutron adds itself have revision 0.
    let id = add(world, Kind::SecurityGroupRule, project, &given);
    world.store.set(Kind::SecurityGroupRule, &id, "revision_number", 0);
}

pub(super) fn make(
    world: &mut World,
    _: &ApiRequest,
    object: Object,
    _: &Fields,
) -> ApiResult<String> {
    let (id, project) = (object.id.clone(), object.project.clone());
    if object.text("name") == "default" {
        return Err(refuse::default_exists());
    }
    // Neutron creates the group `default` with the first group of a project.
    default_group(world, &project);
    check_quota(world, &project, Kind::SecurityGroup, 1)?;
    world.store.insert(Kind::SecurityGroup, object);
    for version in ["IPv4", "IPv6"] {
        add_rule(
            world,
            &project,
            json!({"security_group_id": id, "direction": "egress", "ethertype": version}),
        );
    }
    Ok(id)
}

pub(super) fn change(world: &mut World, _: &ApiRequest, id: &str, given: &Fields) -> ApiResult {
    merge(world, Kind::SecurityGroup, id, given);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str, asked: &ApiRequest) -> ApiResult {
    if world.store.with_text(Kind::Port, "security_groups", id).next().is_some() {
        return Err(refuse::group_in_use(id));
    }
    let group = world.store.get(Kind::SecurityGroup, id);
    if group.is_some_and(|it| it.text("name") == "default") && !asked.caller.is_admin() {
        return Err(refuse::default_stays());
    }
    // Deletes the group's own rules, and rules of other groups that refer to the group.
    for field in ["security_group_id", "remote_group_id"] {
        for rule in world.store.ids(Kind::SecurityGroupRule, field, id) {
            world.store.remove(Kind::SecurityGroupRule, &rule);
        }
    }
    world.store.remove(Kind::SecurityGroup, id);
    Ok(())
}

pub(super) fn make_rule(
    world: &mut World,
    asked: &ApiRequest,
    mut object: Object,
    _: &Fields,
) -> ApiResult<String> {
    for field in ["security_group_id", "remote_group_id"] {
        let id = object.text(field);
        let is_needed = field == "security_group_id" || !id.is_empty();
        if is_needed && world.seen(Kind::SecurityGroup, id, asked).is_none() {
            return Err(types::of(Kind::SecurityGroup).missing(id));
        }
    }
    let direction = object.text("direction");
    if !["ingress", "egress"].contains(&direction) {
        return Err(refuse::bad_direction(direction));
    }
    let prefix = object.text("remote_ip_prefix").to_owned();
    if !object.text("remote_group_id").is_empty() && !prefix.is_empty() {
        return Err(refuse::two_remotes());
    }
    normalise(&mut object, &prefix)?;
    let group = object.text("security_group_id").to_owned();
    let same =
        |rule: &&Object| IDENTITY.iter().all(|it| rule.body.get(*it) == object.body.get(*it));
    let field = "security_group_id";
    let twin = world.store.with_text(Kind::SecurityGroupRule, field, &group).find(same);
    if let Some(twin) = twin {
        return Err(refuse::rule_exists(&twin.id));
    }
    let id = object.id.clone();
    world.store.insert(Kind::SecurityGroupRule, object);
    touch(world, Kind::SecurityGroup, &group);
    Ok(id)
}

/// Brings protocol, ports and address range into their stored form.
fn normalise(object: &mut Object, prefix: &str) -> ApiResult {
    let protocol = page::words(object.body.get("protocol")).to_ascii_lowercase();
    if !protocol.is_empty() {
        if !PROTOCOLS.contains(&protocol.as_str()) && protocol.parse::<u8>().is_err() {
            return Err(refuse::bad_protocol(protocol, format!("{PROTOCOLS:?}")));
        }
        object.set("protocol", protocol.as_str());
    }
    let (low, high) =
        (object.body.number_of("port_range_min"), object.body.number_of("port_range_max"));
    if low.is_some() && protocol.is_empty() {
        return Err(refuse::protocol_needed());
    }
    let ports = ["tcp", "udp", "sctp", "dccp", "udplite", "6", "17"].contains(&protocol.as_str());
    let is_outside = low.is_some_and(|low| !(0..=65535).contains(&low));
    if ports && (low.is_some() != high.is_some() || low > high || is_outside) {
        return Err(refuse::bad_ports());
    }
    object.set("port_range_min", json!(low));
    object.set("port_range_max", json!(high));
    if prefix.is_empty() {
        return Ok(());
    }
    let bits = if prefix.contains(':') { 128 } else { 32 };
    let whole = if prefix.contains('/') { prefix.to_owned() } else { format!("{prefix}/{bits}") };
    let cidr = cidr::parse(&whole).ok_or_else(|| refuse::bad_prefix(prefix))?;
    if cidr::is_v6(cidr) != (object.text("ethertype") == "IPv6") {
        return Err(refuse::other_ethertype(object.text("ethertype"), prefix));
    }
    object.set("remote_ip_prefix", whole);
    object.set("normalized_cidr", cidr.to_string());
    Ok(())
}

pub(super) fn delete_rule(world: &mut World, id: &str, _: &ApiRequest) -> ApiResult {
    if let Some(rule) = world.store.remove(Kind::SecurityGroupRule, id) {
        touch(world, Kind::SecurityGroup, rule.text("security_group_id"));
    }
    Ok(())
}
