//! What the objects of a cluster are called within it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{InvalidName, Name};

/// One machine of a cluster: `default-worker-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MachineRef {
    /// The node group it is of.
    pub group: Name,
    /// Its number there.
    pub number: u32,
}

/// What a security group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Every machine.
    Node,
    /// Machines of the control plane, besides.
    ControlPlane,
}

/// What a load balancer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Balancer {
    /// The Kubernetes API.
    Api,
    /// Ports 80 and 443.
    Ingress,
}

/// What a DNS name is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Named {
    /// `api.NAME.ZONE`.
    Api,
    /// `*.apps.NAME.ZONE`.
    Apps,
    /// `MACHINE.NAME.ZONE`.
    Machine(MachineRef),
}

/// A cloud object of a cluster, by what it is for. Written `server/default-worker-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Key {
    /// The network of the cluster's own.
    Network,
    /// Its subnet.
    Subnet,
    /// The router to the external network.
    Router,
    /// The router's leg in the subnet.
    RouterInterface,
    /// Who may reach machines.
    SecurityGroup(Role),
    /// That machines of a group stand apart.
    ServerGroup(Name),
    /// The address of a load balancer.
    VipPort(Balancer),
    /// A load balancer with all its parts.
    LoadBalancer(Balancer),
    /// A floating address of a load balancer.
    BalancerAddress(Balancer),
    /// A machine's port.
    Port(MachineRef),
    /// A floating address of a machine.
    MachineAddress(MachineRef),
    /// A DNS name.
    Record(Named),
    /// A machine.
    Server(MachineRef),
    /// The cluster's own credential in the cloud, of this generation: exchanging it makes the next one.
    Credential(u32),
    /// A load balancer that the cluster made itself, for a Service, by its id in the cloud.
    ServiceBalancer(String),
    /// A volume that the cluster made itself, by its id in the cloud.
    Volume(String),
    /// The volume that a person's machine boots from.
    RootVolume,
    /// What a request for that object may have made besides, which nobody answered and which was made again.
    Twin(Box<Key>),
}

/// What kind of object a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A network.
    Network,
    /// A subnet.
    Subnet,
    /// A router.
    Router,
    /// A leg of a router.
    RouterInterface,
    /// A security group.
    SecurityGroup,
    /// A server group.
    ServerGroup,
    /// A port.
    Port,
    /// A load balancer.
    LoadBalancer,
    /// A floating address.
    FloatingIp,
    /// A set of DNS records.
    Record,
    /// A server.
    Server,
    /// An application credential.
    Credential,
    /// A load balancer of a Service.
    ServiceBalancer,
    /// A volume that a cluster made itself.
    Volume,
    /// A volume that a machine boots from.
    RootVolume,
}

impl Key {
    /// What kind of object it names.
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

    /// What else there may be of it, if it was asked for twice: `None` where the cloud has but one of that name.
    pub fn twin(&self) -> Option<Key> {
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

    /// Whether the cluster made it itself: it is not asked for, and goes when the cluster goes.
    pub fn is_made_inside(&self) -> bool {
        matches!(self, Key::ServiceBalancer(_) | Key::Volume(_))
    }

    /// The machine whose object it is.
    pub fn machine(&self) -> Option<&MachineRef> {
        match self {
            Key::Port(machine)
            | Key::MachineAddress(machine)
            | Key::Server(machine)
            | Key::Record(Named::Machine(machine)) => Some(machine),
            Key::Network
            | Key::Subnet
            | Key::Router
            | Key::RouterInterface
            | Key::SecurityGroup(_)
            | Key::ServerGroup(_)
            | Key::VipPort(_)
            | Key::LoadBalancer(_)
            | Key::BalancerAddress(_)
            | Key::Record(Named::Api | Named::Apps)
            | Key::Credential(_)
            | Key::ServiceBalancer(_)
            | Key::Volume(_)
            | Key::RootVolume
            | Key::Twin(_) => None,
        }
    }

    /// Whether this cannot be, in the cloud, without `other`: it is made after it, and `other` is deleted after this.
    pub fn rests_on(&self, other: &Key) -> bool {
        match (self, other) {
            (Key::Subnet, Key::Network)
            | (Key::RouterInterface, Key::Router | Key::Subnet)
            | (Key::VipPort(_), Key::Subnet | Key::SecurityGroup(_))
            | (Key::Port(_), Key::Subnet | Key::SecurityGroup(_))
            // The cloud gives no floating address to a port without a way out, and keeps the way while there is one.
            | (Key::BalancerAddress(_) | Key::MachineAddress(_), Key::RouterInterface) => true,
            (Key::LoadBalancer(one), Key::VipPort(of)) => one == of,
            (Key::BalancerAddress(one), Key::VipPort(of)) => one == of,
            (Key::MachineAddress(one), Key::Port(of)) => one == of,
            (Key::Server(one), Key::Port(of)) => one == of,
            (Key::Server(one), Key::ServerGroup(of)) => one.group == *of,
            (Key::Server(_), Key::RootVolume) => true,
            (Key::ServiceBalancer(_), Key::Subnet) => true,
            // On a twin nothing rests: nobody knew of it.
            (Key::Twin(twin), other) => twin.rests_on(other),
            _ => false,
        }
    }

    /// Whether this has to be gone before `other` goes, though it could be without it: as long as there are servers, what
    /// the cluster made itself may be made again, and with its credential.
    pub fn goes_before(&self, other: &Key) -> bool {
        let last = matches!(other, Key::ServiceBalancer(_) | Key::Volume(_) | Key::Credential(_));
        self.rests_on(other) || (last && matches!(self, Key::Server(_)))
    }
}

impl fmt::Display for MachineRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.group, self.number)
    }
}

impl Role {
    /// One word.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Node => "node",
            Role::ControlPlane => "control-plane",
        }
    }
}

impl Balancer {
    /// One word.
    pub fn as_str(self) -> &'static str {
        match self {
            Balancer::Api => "api",
            Balancer::Ingress => "ingress",
        }
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
            Key::Record(Named::Api) => f.write_str("record/api"),
            Key::Record(Named::Apps) => f.write_str("record/apps"),
            Key::Record(Named::Machine(machine)) => write!(f, "machine-record/{machine}"),
            Key::Server(machine) => write!(f, "server/{machine}"),
            Key::Credential(generation) => write!(f, "credential/{generation}"),
            Key::ServiceBalancer(id) => write!(f, "service-balancer/{id}"),
            Key::Volume(id) => write!(f, "volume/{id}"),
            Key::RootVolume => f.write_str("root-volume"),
            Key::Twin(of) => write!(f, "twin/{of}"),
        }
    }
}

/// The text is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} names no object of a cluster")]
pub struct InvalidKey {
    /// What was given.
    pub raw: String,
}

impl FromStr for MachineRef {
    type Err = InvalidKey;

    fn from_str(raw: &str) -> Result<Self, InvalidKey> {
        let read = || {
            let (group, number) = raw.rsplit_once('-')?;
            Some(MachineRef { group: group.parse().ok()?, number: number.parse().ok()? })
        };
        read().ok_or_else(|| InvalidKey { raw: raw.to_owned() })
    }
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(raw: &str) -> Result<Self, InvalidKey> {
        let wrong = || InvalidKey { raw: raw.to_owned() };
        let balancer = |raw: &str| {
            [Balancer::Api, Balancer::Ingress]
                .into_iter()
                .find(|it| it.as_str() == raw)
                .ok_or_else(wrong)
        };
        let role = |raw: &str| {
            [Role::Node, Role::ControlPlane]
                .into_iter()
                .find(|it| it.as_str() == raw)
                .ok_or_else(wrong)
        };
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
            ("record", "api") => Key::Record(Named::Api),
            ("record", "apps") => Key::Record(Named::Apps),
            ("machine-record", of) => Key::Record(Named::Machine(of.parse()?)),
            ("server", of) => Key::Server(of.parse()?),
            ("credential", of) => Key::Credential(of.parse().map_err(|_| wrong())?),
            ("service-balancer", of) if !of.is_empty() => Key::ServiceBalancer(of.to_owned()),
            ("volume", of) if !of.is_empty() => Key::Volume(of.to_owned()),
            ("root-volume", "") => Key::RootVolume,
            ("twin", of) => of.parse::<Key>()?.twin().ok_or_else(wrong)?,
            _ => return Err(wrong()),
        })
    }
}

impl TryFrom<String> for MachineRef {
    type Error = InvalidKey;

    fn try_from(raw: String) -> Result<Self, InvalidKey> {
        raw.parse()
    }
}

impl From<MachineRef> for String {
    fn from(machine: MachineRef) -> String {
        machine.to_string()
    }
}

impl TryFrom<String> for Key {
    type Error = InvalidKey;

    fn try_from(raw: String) -> Result<Self, InvalidKey> {
        raw.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.to_string()
    }
}
