//! Security groups and their rules.

use serde_json::{Map, Value, json};

use super::object::{add, merge, touch};
use super::quota::check as check_quota;
use super::types;
use crate::cidr;
use crate::index::PROJECT;
use crate::object::{Kind, Object};
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::world::World;

/// The protocols by name.
const PROTOCOLS: [&str; 16] = [
    "ah",
    "dccp",
    "egp",
    "esp",
    "gre",
    "icmp",
    "icmpv6",
    "igmp",
    "ipip",
    "ipv6-icmp",
    "ospf",
    "sctp",
    "tcp",
    "udp",
    "udplite",
    "vrrp",
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
        add_rule(
            world,
            project,
            json!({"security_group_id": id, "direction": "ingress", "ethertype": version, "remote_group_id": id}),
        );
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
    if let Some(rule) = world.store.get_mut(Kind::SecurityGroupRule, &id) {
        rule.set("revision_number", 0);
    }
}

pub(super) fn make(
    world: &mut World,
    _: &ApiRequest,
    object: Object,
    _: &Map<String, Value>,
) -> Result<String, ApiError> {
    let (id, project) = (object.id.clone(), object.project.clone());
    if object.text("name") == "default" {
        return Err(ApiError::new(
            409,
            "SecurityGroupDefaultAlreadyExists",
            "Default security group already exists.",
        ));
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

pub(super) fn change(
    world: &mut World,
    _: &ApiRequest,
    id: &str,
    given: &Map<String, Value>,
) -> Result<(), ApiError> {
    merge(world, Kind::SecurityGroup, id, given);
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str, asked: &ApiRequest) -> Result<(), ApiError> {
    if world.store.with_text(Kind::Port, "security_groups", id).next().is_some() {
        return Err(ApiError::new(
            409,
            "SecurityGroupInUse",
            format!("Security Group {id} in use."),
        ));
    }
    let name = world.store.get(Kind::SecurityGroup, id).map(|group| group.text("name"));
    if name == Some("default") && !asked.caller.is_admin() {
        return Err(ApiError::new(
            409,
            "SecurityGroupCannotRemoveDefault",
            "Insufficient rights for removing default security group.",
        ));
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
    _: &Map<String, Value>,
) -> Result<String, ApiError> {
    for field in ["security_group_id", "remote_group_id"] {
        let id = object.text(field);
        let found =
            world.store.get(Kind::SecurityGroup, id).filter(|group| asked.sees(&group.project));
        if found.is_none() && (field == "security_group_id" || !id.is_empty()) {
            return Err(types::of(Kind::SecurityGroup).missing(id));
        }
    }
    let bad = |kind: &str, message: String| ApiError::new(400, kind, message);
    if !["ingress", "egress"].contains(&object.text("direction")) {
        return Err(bad(
            "HTTPBadRequest",
            format!(
                "Invalid input for direction. Reason: '{}' is not in ['ingress', 'egress'].",
                object.text("direction")
            ),
        ));
    }
    let group = object.text("remote_group_id").to_owned();
    let prefix = object.text("remote_ip_prefix").to_owned();
    if !group.is_empty() && !prefix.is_empty() {
        return Err(bad(
            "SecurityGroupMultipleRemoteEntites",
            "Only one of remote_ip_prefix or remote_group_id may be provided.".into(),
        ));
    }
    normalise(&mut object, &prefix)?;
    let same = |rule: &Object| {
        [
            "security_group_id",
            "direction",
            "ethertype",
            "protocol",
            "port_range_min",
            "port_range_max",
            "normalized_cidr",
            "remote_group_id",
        ]
        .iter()
        .all(|field| rule.body.get(*field) == object.body.get(*field))
    };
    let group = object.text("security_group_id");
    let twin = world
        .store
        .with_text(Kind::SecurityGroupRule, "security_group_id", group)
        .find(|it| same(it));
    if let Some(rule) = twin {
        return Err(ApiError::new(
            409,
            "SecurityGroupRuleExists",
            format!("Security group rule already exists. Rule id is {}.", rule.id),
        ));
    }
    let (id, of) = (object.id.clone(), object.text("security_group_id").to_owned());
    world.store.insert(Kind::SecurityGroupRule, object);
    touch(world, Kind::SecurityGroup, &of);
    Ok(id)
}

/// Brings protocol, ports and address range into their stored form.
fn normalise(object: &mut Object, prefix: &str) -> Result<(), ApiError> {
    let bad = |kind: &str, message: String| Err(ApiError::new(400, kind, message));
    let protocol = match object.body.get("protocol") {
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(name)) => name.to_ascii_lowercase(),
        _ => String::new(),
    };
    if !protocol.is_empty() {
        let known = PROTOCOLS.contains(&protocol.as_str()) || protocol.parse::<u8>().is_ok();
        if !known {
            return bad(
                "SecurityGroupRuleInvalidProtocol",
                format!(
                    "Security group rule protocol {protocol} not supported. Only protocol values {PROTOCOLS:?} and integer representations [0 to 255] are supported."
                ),
            );
        }
        object.set("protocol", protocol.clone());
    }
    let port = |field: &str| {
        object
            .body
            .get(field)
            .and_then(|port| port.as_i64().or_else(|| port.as_str()?.parse().ok()))
    };
    let (low, high) = (port("port_range_min"), port("port_range_max"));
    if low.is_some() && protocol.is_empty() {
        return bad(
            "SecurityGroupProtocolRequiredWithPorts",
            "Must also specify protocol if port range is given.".into(),
        );
    }
    let ports = ["tcp", "udp", "sctp", "dccp", "udplite", "6", "17"].contains(&protocol.as_str());
    if ports
        && (low.is_some() != high.is_some()
            || low > high
            || low.is_some_and(|low| !(0..=65535).contains(&low)))
    {
        return bad(
            "SecurityGroupInvalidPortRange",
            "For TCP/UDP protocols, port_range_min must be <= port_range_max".into(),
        );
    }
    object.set("port_range_min", json!(low));
    object.set("port_range_max", json!(high));
    if prefix.is_empty() {
        return Ok(());
    }
    let whole = if prefix.contains('/') {
        prefix.to_owned()
    } else {
        format!("{prefix}/{}", if prefix.contains(':') { 128 } else { 32 })
    };
    let Some(cidr) = cidr::parse(&whole) else {
        return bad(
            "HTTPBadRequest",
            format!("Invalid input for remote_ip_prefix. Reason: '{prefix}' is not a valid CIDR."),
        );
    };
    if cidr::is_v6(cidr) != (object.text("ethertype") == "IPv6") {
        return bad(
            "SecurityGroupRuleParameterConflict",
            format!("Conflicting value ethertype {} for CIDR {prefix}", object.text("ethertype")),
        );
    }
    object.set("remote_ip_prefix", whole);
    object.set("normalized_cidr", cidr.to_string());
    Ok(())
}

pub(super) fn delete_rule(world: &mut World, id: &str, _: &ApiRequest) -> Result<(), ApiError> {
    let rule = world.store.remove(Kind::SecurityGroupRule, id);
    if let Some(rule) = rule {
        touch(world, Kind::SecurityGroup, rule.text("security_group_id"));
    }
    Ok(())
}
