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
mod tests {
    use cluster_core::SecurityGroupRole;
    use openstack::network::security_groups::Rule;

    use super::*;

    #[test]
    fn a_rule_is_read_as_it_was_written() {
        let node = Key::SecurityGroup(SecurityGroupRole::Node);
        let ids = BTreeMap::from([("g-1", node.clone())]);
        let range = |raw: &str| RuleSource::Range(raw.parse().unwrap_or_else(|_| panic!("{raw}")));
        for rule in [
            IngressRule {
                protocol: Protocol::Any,
                ports: None,
                from: RuleSource::Group(node.clone()),
            },
            IngressRule { protocol: Protocol::Icmp, ports: None, from: range("0.0.0.0/0") },
            IngressRule {
                protocol: Protocol::Tcp,
                ports: Some((22, 22)),
                from: range("10.0.0.0/8"),
            },
            IngressRule { protocol: Protocol::Udp, ports: Some((1, 9)), from: range("fd00::/8") },
        ] {
            let written = write(&rule, |_| Some("g-1".to_owned()));
            assert_eq!(written.and_then(|it| read(&it, &ids)), Some(rule));
        }
    }

    #[test]
    fn a_rule_without_a_counterpart_is_not_translated() {
        let everyone = RuleSpec::everything(Remote::Anyone);
        let ids = BTreeMap::new();
        assert!(read(&everyone, &ids).is_some());
        assert_eq!(
            read(&RuleSpec { protocol: Some("sctp".to_owned()), ..everyone.clone() }, &ids),
            None
        );
        assert_eq!(read(&RuleSpec { port_range_min: Some(1), ..everyone }, &ids), None);
        assert_eq!(read(&RuleSpec::everything(Remote::Group("other".to_owned())), &ids), None);
    }

    #[test]
    fn protocols_have_names_and_numbers() {
        let read = |protocol: &str| {
            let protocol = Some(protocol.to_owned());
            read(&RuleSpec { protocol, ..RuleSpec::everything(Remote::Anyone) }, &BTreeMap::new())
        };
        for (word, number, protocol) in [
            ("any", "0", Protocol::Any),
            ("icmp", "1", Protocol::Icmp),
            ("tcp", "6", Protocol::Tcp),
            ("udp", "17", Protocol::Udp),
        ] {
            assert_eq!(read(word).unwrap().protocol, protocol);
            assert_eq!(read(number).unwrap().protocol, protocol);
        }
    }

    #[test]
    fn a_rule_without_a_range_is_for_all_addresses_of_its_family() {
        let ids = BTreeMap::from([("g-1", Key::SecurityGroup(SecurityGroupRole::Node))]);
        let from = |ethertype: &str, remote| {
            let rule = RuleSpec { ethertype: ethertype.to_owned(), ..RuleSpec::everything(remote) };
            read(&rule, &ids).map(|rule| rule.from)
        };
        let range = |raw: &str| Some(RuleSource::Range(raw.parse().unwrap()));
        let group = || Remote::Group("g-1".to_owned());
        assert_eq!(from("IPv4", Remote::Anyone), range("0.0.0.0/0"));
        assert_eq!(from("IPv6", Remote::Anyone), range("::/0"));
        let node = Key::SecurityGroup(SecurityGroupRole::Node);
        assert_eq!(from("IPv4", group()), Some(RuleSource::Group(node)));
        assert_eq!(from("IPv6", group()), None, "own rules for groups are for IPv4");
    }

    #[test]
    fn the_rules_of_a_group_are_those_for_incoming_packets() {
        let rule = |direction, protocol: &str| Rule {
            id: protocol.to_owned(),
            what: RuleSpec {
                direction,
                protocol: Some(protocol.to_owned()),
                ..RuleSpec::everything(Remote::Anyone)
            },
        };
        let facts = |rules| {
            let (id, name) = ("1".to_owned(), "a".to_owned());
            facts(&SecurityGroup { id, name, rules, tags: Vec::new() }, &BTreeMap::new())
        };
        let from = RuleSource::Range("0.0.0.0/0".parse().unwrap());
        let tcp = IngressRule { protocol: Protocol::Tcp, ports: None, from };
        let (ingress, egress) = (Direction::Ingress, Direction::Egress);
        let both = vec![rule(ingress, "tcp"), rule(egress, "udp"), rule(egress, "sctp")];
        assert_eq!(facts(both), CloudObjectDetails::Rules([tcp].into()));
        let foreign = vec![rule(ingress, "tcp"), rule(ingress, "sctp")];
        assert_eq!(facts(foreign), CloudObjectDetails::None);
    }
}
