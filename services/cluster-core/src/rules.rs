//! The security group rules of a cluster's servers.

use std::collections::BTreeSet;

use crate::{Cidr, ClusterSpec, Key, Role};

/// A rule that lets traffic in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    pub protocol: Protocol,
    /// The first and the last port; `None`: all ports.
    pub ports: Option<(u16, u16)>,
    pub from: Peer,
}

/// A protocol of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    Any,
    Tcp,
    Udp,
    Icmp,
}

/// The source of the traffic that a rule lets in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// Addresses of this range.
    Range(Cidr),
    /// Servers in this security group.
    Group(Key),
}

/// The range of every IPv4 address.
const ANYWHERE: Cidr = Cidr::v4([0, 0, 0, 0], 0);
/// The default port range of Services of type NodePort.
const NODE_PORTS: (u16, u16) = (30000, 32767);

/// Returns the rules of every member: all traffic between members, node ports, ping, and SSH when there is a keypair.
pub(crate) fn of_nodes(spec: &ClusterSpec<'_>) -> BTreeSet<Rule> {
    let mut rules = BTreeSet::from([
        Rule {
            protocol: Protocol::Any,
            ports: None,
            from: Peer::Group(Key::SecurityGroup(Role::Node)),
        },
        Rule { protocol: Protocol::Icmp, ports: None, from: Peer::Range(ANYWHERE) },
        // Traffic that a load balancer of the cloud forwards comes from an address within the subnet, so the node ports are open to every
        // address.
        Rule { protocol: Protocol::Tcp, ports: Some(NODE_PORTS), from: Peer::Range(ANYWHERE) },
        Rule { protocol: Protocol::Udp, ports: Some(NODE_PORTS), from: Peer::Range(ANYWHERE) },
    ]);
    if spec.cluster.blueprint.keypair.is_some() {
        rules.insert(Rule {
            protocol: Protocol::Tcp,
            ports: Some((22, 22)),
            from: Peer::Range(ANYWHERE),
        });
    }
    if spec.cluster.blueprint.labels.settings().ingress_balancer {
        for port in [80, 443] {
            rules.insert(Rule {
                protocol: Protocol::Tcp,
                ports: Some((port, port)),
                from: Peer::Range(ANYWHERE),
            });
        }
    }
    rules
}

/// Returns the additional rules of the control plane: the API port, open to the allowed ranges and to the members.
pub(crate) fn of_control_plane(spec: &ClusterSpec<'_>) -> BTreeSet<Rule> {
    let settings = spec.cluster.blueprint.labels.settings();
    let port = spec.cluster.blueprint.api_port();
    let mut from: BTreeSet<Cidr> = settings.api_allowed_cidrs.iter().copied().collect();
    if from.is_empty() {
        from.insert(ANYWHERE);
    } else {
        from.insert(settings.node_cidr);
    }
    let rule = |range| Rule {
        protocol: Protocol::Tcp,
        ports: Some((port, port)),
        from: Peer::Range(range),
    };
    from.into_iter().map(rule).collect()
}
