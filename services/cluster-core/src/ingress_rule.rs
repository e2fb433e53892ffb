//! The rules of a security group.

use crate::{Cidr, Key};

/// A rule that lets traffic in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IngressRule {
    pub protocol: Protocol,
    /// The first and the last port; `None`: all ports.
    pub ports: Option<(u16, u16)>,
    pub from: RuleSource,
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
pub enum RuleSource {
    /// Addresses of this range.
    Range(Cidr),
    /// Servers in this security group.
    Group(Key),
}
