//! Who may reach machines.

use std::collections::BTreeSet;

use crate::{Cidr, ClusterSpec, Key, Role};

/// One rule that lets traffic in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Which protocol.
    pub protocol: Protocol,
    /// The first and last port; all of them, where there is none.
    pub ports: Option<(u16, u16)>,
    /// From where.
    pub from: Peer,
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Any.
    Any,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP.
    Icmp,
}

/// From where traffic comes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// From these addresses.
    Range(Cidr),
    /// From machines in this security group.
    Group(Key),
}

/// Everywhere, in IPv4.
const ANYWHERE: Cidr = Cidr::v4([0, 0, 0, 0], 0);
/// The ports of Kubernetes' Services of type NodePort.
const NODE_PORTS: (u16, u16) = (30000, 32767);

/// The rules of every machine: all from each other, node ports and logins.
pub(crate) fn of_nodes(spec: &ClusterSpec<'_>) -> BTreeSet<Rule> {
    let mut rules = BTreeSet::from([
        Rule {
            protocol: Protocol::Any,
            ports: None,
            from: Peer::Group(Key::SecurityGroup(Role::Node)),
        },
        Rule { protocol: Protocol::Icmp, ports: None, from: Peer::Range(ANYWHERE) },
        // What a load balancer of the cloud's forwards comes from within the subnet.
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

/// The rules of the control plane besides: its API, from where it may be reached.
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
