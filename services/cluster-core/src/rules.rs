//! The security group rules of a cluster's servers.

use std::collections::BTreeSet;

use crate::{Cidr, ClusterSpec, IngressRule, Key, Protocol, RuleSource, SecurityGroupRole};

/// The range of every IPv4 address.
const ANYWHERE: Cidr = Cidr::v4([0, 0, 0, 0], 0);
/// The default port range of Services of type NodePort.
const NODE_PORTS: (u16, u16) = (30000, 32767);

/// Returns the rules of every member: all traffic between members, node ports, ping, and SSH when there is a keypair.
pub(crate) fn node_rules(spec: &ClusterSpec<'_>) -> BTreeSet<IngressRule> {
    let mut rules = BTreeSet::from([
        IngressRule {
            protocol: Protocol::Any,
            ports: None,
            from: RuleSource::Group(Key::SecurityGroup(SecurityGroupRole::Node)),
        },
        IngressRule { protocol: Protocol::Icmp, ports: None, from: RuleSource::Range(ANYWHERE) },
        // Traffic that a load balancer of the cloud forwards comes from an address within the subnet, so the node ports are open to every
        // address.
        IngressRule {
            protocol: Protocol::Tcp,
            ports: Some(NODE_PORTS),
            from: RuleSource::Range(ANYWHERE),
        },
        IngressRule {
            protocol: Protocol::Udp,
            ports: Some(NODE_PORTS),
            from: RuleSource::Range(ANYWHERE),
        },
    ]);
    if spec.cluster.blueprint.keypair.is_some() {
        rules.insert(IngressRule {
            protocol: Protocol::Tcp,
            ports: Some((22, 22)),
            from: RuleSource::Range(ANYWHERE),
        });
    }
    if spec.cluster.blueprint.labels.settings().ingress_balancer {
        for port in [80, 443] {
            rules.insert(IngressRule {
                protocol: Protocol::Tcp,
                ports: Some((port, port)),
                from: RuleSource::Range(ANYWHERE),
            });
        }
    }
    rules
}

/// Returns the additional rules of the control plane: the API port, open to the allowed ranges and to the members.
pub(crate) fn control_plane_rules(spec: &ClusterSpec<'_>) -> BTreeSet<IngressRule> {
    let settings = spec.cluster.blueprint.labels.settings();
    let port = spec.cluster.blueprint.api_port();
    let mut from: BTreeSet<Cidr> = settings.api_allowed_cidrs.iter().copied().collect();
    if from.is_empty() {
        from.insert(ANYWHERE);
    } else {
        from.insert(settings.node_cidr);
    }
    let rule = |range| IngressRule {
        protocol: Protocol::Tcp,
        ports: Some((port, port)),
        from: RuleSource::Range(range),
    };
    from.into_iter().map(rule).collect()
}
