//! The names of a cluster's cloud objects within the cluster.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{InvalidName, Name};

/// The name of a member within its cluster: `default-worker-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemberName {
    /// The node group of the member.
    pub group: Name,
    /// Unique within the cluster, and never used again.
    pub number: u32,
}

words::words! {
    /// The members that a security group applies to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SecurityGroupRole {
        /// Every member.
        Node = "node",
        /// Control-plane members, in addition to `Node`.
        ControlPlane = "control-plane",
    }
}

words::words! {
    /// The purpose of a load balancer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum BalancerPurpose {
        /// The Kubernetes API.
        Api = "api",
        /// Ports 80 and 443 of the nodes.
        Ingress = "ingress",
    }
}

/// The purpose of a DNS name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DnsName {
    /// `api.NAME.ZONE`.
    Api,
    /// `*.apps.NAME.ZONE`.
    Apps,
    /// `GROUP-NUMBER.NAME.ZONE`.
    Machine(MemberName),
}

/// A cloud object of a cluster or a VM, named by its purpose. As text: `server/default-worker-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Key {
    /// The network of a cluster that has its own.
    Network,
    Subnet,
    /// The router to the external network.
    Router,
    /// The interface of the router in the subnet.
    RouterInterface,
    SecurityGroup(SecurityGroupRole),
    /// The server group of a node group, which places its servers on different hosts.
    ServerGroup(Name),
    /// The port that holds the VIP of a load balancer.
    VipPort(BalancerPurpose),
    /// A load balancer with its listeners, pools and members.
    LoadBalancer(BalancerPurpose),
    /// The floating IP of a load balancer.
    BalancerAddress(BalancerPurpose),
    Port(MemberName),
    /// The floating IP of a member.
    MachineAddress(MemberName),
    Record(DnsName),
    Server(MemberName),
    /// The application credential of the cluster, by generation: a replacement has the next number.
    Credential(u32),
    /// A load balancer that Kubernetes created for a Service, by its id in the cloud.
    ServiceBalancer(String),
    /// A volume that Kubernetes created for a claim, by its id in the cloud.
    Volume(String),
    /// The volume that a VM boots from.
    RootVolume,
    /// A possible duplicate of an object: its create request got no answer and was sent again, so the cloud may have made two.
    Twin(Box<Key>),
}

/// The kind of a cloud object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Network,
    Subnet,
    Router,
    RouterInterface,
    SecurityGroup,
    ServerGroup,
    Port,
    LoadBalancer,
    FloatingIp,
    /// A set of DNS records.
    Record,
    Server,
    Credential,
    /// A load balancer that Kubernetes created for a Service.
    ServiceBalancer,
    /// A volume that Kubernetes created for a claim.
    Volume,
    /// A volume that a VM boots from.
    RootVolume,
}

impl Key {
    /// Returns the kind of the object.
    pub fn kind(&self) -> Kind {
        match self {
            Key::Network => Kind::Network,
            Key::Subnet => Kind::Subnet,
            Key::Router => Kind::Router,
            Key::RouterInterface => Kind::RouterInterface,
            Key::SecurityGroup(_) => Kind::SecurityGroup,
            Key::ServerGroup(_) => Kind::ServerGroup,
            Key::VipPort(_) | Key::Port(_) => Kind::Port,
            Key::LoadBalancer(_) => Kind::LoadBalancer,
            Key::ServiceBalancer(_) => Kind::ServiceBalancer,
            Key::BalancerAddress(_) | Key::MachineAddress(_) => Kind::FloatingIp,
            Key::Record(_) => Kind::Record,
            Key::Server(_) => Kind::Server,
            Key::Credential(_) => Kind::Credential,
            Key::Volume(_) => Kind::Volume,
            Key::RootVolume => Kind::RootVolume,
            Key::Twin(of) => of.kind(),
        }
    }

    /// Returns the key of the duplicate that a repeated create may leave behind; `None` when the cloud allows only one object of the name.
    pub fn duplicate(&self) -> Option<Key> {
        match self {
            Key::Network
            | Key::Subnet
            | Key::Router
            | Key::SecurityGroup(_)
            | Key::ServerGroup(_)
            | Key::VipPort(_)
            | Key::LoadBalancer(_)
            | Key::BalancerAddress(_)
            | Key::Port(_)
            | Key::MachineAddress(_)
            | Key::RootVolume
            | Key::Server(_) => Some(Key::Twin(Box::new(self.clone()))),
            Key::RouterInterface
            | Key::Record(_)
            | Key::Credential(_)
            | Key::ServiceBalancer(_)
            | Key::Volume(_)
            | Key::Twin(_) => None,
        }
    }

    /// Whether Kubernetes in the cluster created the object. clusterd never creates such an object, and deletes it with the cluster.
    pub fn is_made_inside(&self) -> bool {
        matches!(self, Key::ServiceBalancer(_) | Key::Volume(_))
    }

    /// Returns the member that the object belongs to.
    pub fn member(&self) -> Option<&MemberName> {
        match self {
            Key::Port(machine)
            | Key::MachineAddress(machine)
            | Key::Server(machine)
            | Key::Record(DnsName::Machine(machine)) => Some(machine),
            Key::Network
            | Key::Subnet
            | Key::Router
            | Key::RouterInterface
            | Key::SecurityGroup(_)
            | Key::ServerGroup(_)
            | Key::VipPort(_)
            | Key::LoadBalancer(_)
            | Key::BalancerAddress(_)
            | Key::Record(DnsName::Api | DnsName::Apps)
            | Key::Credential(_)
            | Key::ServiceBalancer(_)
            | Key::Volume(_)
            | Key::RootVolume
            | Key::Twin(_) => None,
        }
    }

    /// Whether the object depends on `other` in the cloud: `other` must be created before it and deleted after it.
    pub fn depends_on(&self, other: &Key) -> bool {
        match (self, other) {
            (Key::Subnet, Key::Network)
            | (Key::RouterInterface, Key::Router | Key::Subnet)
            | (Key::VipPort(_), Key::Subnet | Key::SecurityGroup(_))
            | (Key::Port(_), Key::Subnet | Key::SecurityGroup(_))
            // Neutron refuses a floating IP for a port without a route to the external network, and keeps the route while the floating IP
            // exists.
            | (Key::BalancerAddress(_) | Key::MachineAddress(_), Key::RouterInterface) => true,
            (Key::LoadBalancer(one), Key::VipPort(of)) => one == of,
            (Key::BalancerAddress(one), Key::VipPort(of)) => one == of,
            (Key::MachineAddress(one), Key::Port(of)) => one == of,
            (Key::Server(one), Key::Port(of)) => one == of,
            (Key::Server(one), Key::ServerGroup(of)) => one.group == *of,
            (Key::Server(_), Key::RootVolume) => true,
            (Key::ServiceBalancer(_), Key::Subnet) => true,
            // Nothing depends on a duplicate, because no other object was created with its id.
            (Key::Twin(twin), other) => twin.depends_on(other),
            _ => false,
        }
    }

    /// Whether the object must be deleted before `other`.
    ///
    /// Besides dependencies, servers are deleted before load balancers and volumes that Kubernetes created, and before the credential: as
    /// long as a server runs, Kubernetes could create them again.
    pub fn is_deleted_before(&self, other: &Key) -> bool {
        let last = matches!(other, Key::ServiceBalancer(_) | Key::Volume(_) | Key::Credential(_));
        self.depends_on(other) || (last && matches!(self, Key::Server(_)))
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.group, self.number)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Network => f.write_str("network"),
            Key::Subnet => f.write_str("subnet"),
            Key::Router => f.write_str("router"),
            Key::RouterInterface => f.write_str("router-interface"),
            Key::SecurityGroup(role) => write!(f, "security-group/{}", role.as_str()),
            Key::ServerGroup(group) => write!(f, "server-group/{group}"),
            Key::VipPort(of) => write!(f, "vip-port/{}", of.as_str()),
            Key::LoadBalancer(of) => write!(f, "load-balancer/{}", of.as_str()),
            Key::BalancerAddress(of) => write!(f, "balancer-address/{}", of.as_str()),
            Key::Port(machine) => write!(f, "port/{machine}"),
            Key::MachineAddress(machine) => write!(f, "machine-address/{machine}"),
            Key::Record(DnsName::Api) => f.write_str("record/api"),
            Key::Record(DnsName::Apps) => f.write_str("record/apps"),
            Key::Record(DnsName::Machine(machine)) => write!(f, "machine-record/{machine}"),
            Key::Server(machine) => write!(f, "server/{machine}"),
            Key::Credential(generation) => write!(f, "credential/{generation}"),
            Key::ServiceBalancer(id) => write!(f, "service-balancer/{id}"),
            Key::Volume(id) => write!(f, "volume/{id}"),
            Key::RootVolume => f.write_str("root-volume"),
            Key::Twin(of) => write!(f, "twin/{of}"),
        }
    }
}

/// The text is not the key of a cloud object, or not the name of a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is not an object of a cluster: write a key such as server/default-worker-3")]
pub struct InvalidKey {
    pub raw: String,
}

impl FromStr for MemberName {
    type Err = InvalidKey;

    fn from_str(raw: &str) -> Result<Self, InvalidKey> {
        let read = || {
            let (group, number) = raw.rsplit_once('-')?;
            Some(MemberName { group: group.parse().ok()?, number: number.parse().ok()? })
        };
        read().ok_or_else(|| InvalidKey { raw: raw.to_owned() })
    }
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(raw: &str) -> Result<Self, InvalidKey> {
        let wrong = || InvalidKey { raw: raw.to_owned() };
        let balancer = |raw: &str| BalancerPurpose::find(raw).ok_or_else(wrong);
        let role = |raw: &str| SecurityGroupRole::find(raw).ok_or_else(wrong);
        let (kind, of) = raw.split_once('/').unwrap_or((raw, ""));
        Ok(match (kind, of) {
            ("network", "") => Key::Network,
            ("subnet", "") => Key::Subnet,
            ("router", "") => Key::Router,
            ("router-interface", "") => Key::RouterInterface,
            ("security-group", of) => Key::SecurityGroup(role(of)?),
            ("server-group", of) => Key::ServerGroup(of.parse().map_err(|_: InvalidName| wrong())?),
            ("vip-port", of) => Key::VipPort(balancer(of)?),
            ("load-balancer", of) => Key::LoadBalancer(balancer(of)?),
            ("balancer-address", of) => Key::BalancerAddress(balancer(of)?),
            ("port", of) => Key::Port(of.parse()?),
            ("machine-address", of) => Key::MachineAddress(of.parse()?),
            ("record", "api") => Key::Record(DnsName::Api),
            ("record", "apps") => Key::Record(DnsName::Apps),
            ("machine-record", of) => Key::Record(DnsName::Machine(of.parse()?)),
            ("server", of) => Key::Server(of.parse()?),
            ("credential", of) => Key::Credential(of.parse().map_err(|_| wrong())?),
            ("service-balancer", of) if !of.is_empty() => Key::ServiceBalancer(of.to_owned()),
            ("volume", of) if !of.is_empty() => Key::Volume(of.to_owned()),
            ("root-volume", "") => Key::RootVolume,
            ("twin", of) => of.parse::<Key>()?.duplicate().ok_or_else(wrong)?,
            _ => return Err(wrong()),
        })
    }
}

words::strings!(MemberName, Key);

#[cfg(test)]
mod tests;
