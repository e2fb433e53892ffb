//! Translates security group rules from and to Neutron's form.
//!
//! Only ingress rules are managed. Neutron gives each new group two egress rules; an administrator who removes them has a reason.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::{CloudObjectDetails, IngressRule, Key, Protocol, RuleSource};
use openstack::network::security_groups::{Direction, Remote, RuleSpec, SecurityGroup};

/// Returns the ingress rules of a group; `CloudObjectDetails::None` when one of them has no counterpart here.
pub(crate) fn facts(group: &SecurityGroup, ids: &BTreeMap<&str, Key>) -> CloudObjectDetails {
    let inward = group.rules.iter().filter(|rule| rule.what.direction == Direction::Ingress);
    let rules: Option<BTreeSet<IngressRule>> = inward.map(|rule| read(&rule.what, ids)).collect();
    rules.map_or(CloudObjectDetails::None, CloudObjectDetails::Rules)
}

/// Translates a rule of Neutron; `None` when it has no counterpart here.
pub(crate) fn read(what: &RuleSpec, ids: &BTreeMap<&str, Key>) -> Option<IngressRule> {
    let protocol = match what.protocol.as_deref() {
        None | Some("any" | "0") => Protocol::Any,
        Some("icmp" | "1") => Protocol::Icmp,
        Some("tcp" | "6") => Protocol::Tcp,
        Some("udp" | "17") => Protocol::Udp,
        Some(_) => return None,
    };
    let anywhere = if what.ethertype == "IPv6" { "::/0" } else { "0.0.0.0/0" };
    let from = match (&what.remote_group_id, &what.remote_ip_prefix) {
        (Some(_), _) if what.ethertype != "IPv4" => return None,
        (Some(group), _) => RuleSource::Group(ids.get(group.as_str())?.clone()),
        (None, prefix) => RuleSource::Range(prefix.as_deref().unwrap_or(anywhere).parse().ok()?),
    };
    let ports = match (what.port_range_min, what.port_range_max) {
        (Some(first), Some(last)) => Some((first, last)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return None,
    };
    Some(IngressRule { protocol, ports, from })
}

/// Translates a rule for Neutron; `None` when a group that it names does not exist.
pub(crate) fn write(
    rule: &IngressRule,
    id_of: impl Fn(&Key) -> Option<String>,
) -> Option<RuleSpec> {
    let remote = match &rule.from {
        RuleSource::Range(range) => Remote::Prefix(range.to_string()),
        RuleSource::Group(group) => Remote::Group(id_of(group)?),
    };
    let protocol = match rule.protocol {
        Protocol::Any => None,
        Protocol::Icmp => Some("icmp"),
        Protocol::Tcp => Some("tcp"),
        Protocol::Udp => Some("udp"),
    };
    Some(RuleSpec {
        protocol: protocol.map(str::to_owned),
        port_range_min: rule.ports.map(|(first, _)| first),
        port_range_max: rule.ports.map(|(_, last)| last),
        ..RuleSpec::everything(remote)
    })
}

#[cfg(test)]
mod tests;
