//! A cloud object that should exist, with everything that its create request says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::{Cidr, IngressRule, Key};

/// Every cloud object that should exist, by key.
pub type DesiredObjects = BTreeMap<Key, DesiredObject>;

/// A cloud object that should exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredObject {
    /// The name of the object in the cloud, by which a repeated create finds it.
    pub name: String,
    pub thing: ResourceSpec,
    /// Objects whose id or address the create request contains: they must exist before it is sent.
    pub needs: BTreeSet<Key>,
}

/// The kind of a desired object, with everything that its create request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceSpec {
    Network,
    Subnet {
        cidr: Cidr,
        /// The DNS servers that DHCP tells to the servers.
        name_servers: Vec<IpAddr>,
    },
    Router {
        /// An id or a name.
        external_network: String,
    },
    /// The interface of the router in the subnet.
    RouterInterface,
    SecurityGroup {
        rules: BTreeSet<IngressRule>,
    },
    ServerGroup {
        /// Nova's name of the policy.
        policy: &'static str,
    },
    Port {
        network: Reference,
        /// `None`: Neutron takes any subnet of the network.
        subnet: Option<Reference>,
        groups: BTreeSet<Key>,
        /// Further addresses that the port may send from (Neutron's allowed address pairs).
        allowed: BTreeSet<Cidr>,
    },
    /// A load balancer, created with its listeners, pools and members in one request.
    LoadBalancer {
        /// Octavia's name; `None`: the cloud's default.
        provider: Option<String>,
        /// Octavia's name.
        algorithm: &'static str,
        listeners: Vec<Listener>,
        /// The address ranges that may connect; empty means all.
        allowed: Vec<Cidr>,
        /// The ports whose addresses are the members.
        members: BTreeSet<Key>,
    },
    FloatingIp {
        /// The network that the floating IP comes from.
        external_network: String,
        /// The port that the floating IP leads to.
        port: Key,
    },
    /// A set of DNS records of type A.
    Record {
        /// With the final dot.
        zone: String,
        /// The full name, with the final dot.
        host: String,
        /// The objects whose addresses the name has.
        of: BTreeSet<Key>,
    },
    /// A server. Its user-data is not part of the desired object: the conductor adds it when it creates the server.
    Server {
        /// An id or a name.
        image: String,
        /// An id or a name.
        flavor: Option<String>,
        /// The name of a Nova keypair.
        keypair: Option<String>,
        availability_zone: Option<String>,
        /// Volumes besides the disk of the flavor.
        disks: Vec<ServerVolume>,
    },
    /// A volume that contains the bytes of an image.
    Volume {
        /// The id of the image.
        image: String,
        /// In GiB.
        size: u32,
        availability_zone: Option<String>,
    },
    /// An application credential with which the cluster's own add-ons call the cloud.
    Credential,
}

/// A reference to an object of the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An object that existed before, by id or name.
    Given(String),
    /// An object of the cluster.
    Own(Key),
}

/// A listener of a load balancer, and the port on which its members are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// `api`, `http` or `https`.
    pub name: &'static str,
    /// The port of the listener and of the members.
    pub port: u16,
    /// After how many milliseconds without data a connection is closed.
    pub idle_timeout_ms: u32,
}

/// A volume that is created and deleted with its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVolume {
    /// `boot`, `etcd` or `containers`.
    pub purpose: &'static str,
    /// In GiB.
    pub size: u32,
    /// The Cinder volume type; `None`: the cloud's default.
    pub kind: Option<String>,
}
