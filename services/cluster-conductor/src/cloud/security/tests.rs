//! Security group rules as Neutron has them, and as clusters need them.

use cluster_core::SecurityGroupRole;
use openstack::network::security_groups::Rule;

use super::*;

#[test]
fn a_rule_is_read_as_it_was_written() {
    let node = Key::SecurityGroup(SecurityGroupRole::Node);
    let ids = BTreeMap::from([("g-1", node.clone())]);
    let range = |raw: &str| RuleSource::Range(raw.parse().unwrap_or_else(|_| panic!("{raw}")));
    for rule in [
        IngressRule { protocol: Protocol::Any, ports: None, from: RuleSource::Group(node.clone()) },
        IngressRule { protocol: Protocol::Icmp, ports: None, from: range("0.0.0.0/0") },
        IngressRule { protocol: Protocol::Tcp, ports: Some((22, 22)), from: range("10.0.0.0/8") },
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
