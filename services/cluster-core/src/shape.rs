//! The shape of a cluster: every cloud object that should exist.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::{
    Balancer, Cidr, Cluster, ClusterUuid, Delivery, GroupRole, Key, MachineRef, Named, NodeGroup,
    PodNetwork, Role, Rule, api_name_of_machines, rules,
};

/// A cluster with its node groups: what is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ClusterSpec<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// All its node groups.
    pub groups: &'a [NodeGroup],
}

/// Every object that should exist.
pub type Shape = BTreeMap<Key, Object>;

/// An object that should exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name in the cloud.
    pub name: String,
    /// What it is.
    pub thing: Thing,
    /// What has to be there, with its id or address, before it can be asked for.
    pub needs: BTreeSet<Key>,
}

/// What an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A network.
    Network,
    /// A subnet of it.
    Subnet {
        /// Its addresses.
        cidr: Cidr,
        /// What machines in it ask for names.
        name_servers: Vec<IpAddr>,
    },
    /// A router.
    Router {
        /// The network it leads to.
        external_network: String,
    },
    /// A leg of the router in the subnet.
    RouterInterface,
    /// A security group.
    SecurityGroup {
        /// Its rules.
        rules: BTreeSet<Rule>,
    },
    /// A server group.
    ServerGroup {
        /// Nova's word.
        policy: &'static str,
    },
    /// A port.
    Port {
        /// Its network.
        network: Reference,
        /// Its subnet; any of the network's, where there is none.
        subnet: Option<Reference>,
        /// Its security groups.
        groups: BTreeSet<Key>,
        /// Further addresses it may speak from.
        allowed: BTreeSet<Cidr>,
    },
    /// A load balancer, asked for whole.
    LoadBalancer {
        /// Octavia's word; the cloud's default where there is none.
        provider: Option<String>,
        /// Octavia's word.
        algorithm: &'static str,
        /// Where it listens.
        listeners: Vec<Listener>,
        /// Who may reach it, where not anyone.
        allowed: Vec<Cidr>,
        /// The ports behind it.
        members: BTreeSet<Key>,
    },
    /// A floating address.
    FloatingIp {
        /// The network it comes from.
        external_network: String,
        /// The port it leads to.
        port: Key,
    },
    /// A set of DNS records of type A.
    Record {
        /// The zone, ending with a dot.
        zone: String,
        /// The whole name, ending with a dot.
        host: String,
        /// Whose addresses.
        of: BTreeSet<Key>,
    },
    /// A server. What makes it a node is no part of this.
    Server {
        /// Id or name.
        image: String,
        /// Id or name.
        flavor: Option<String>,
        /// Who may log in.
        keypair: Option<String>,
        /// Where it is put.
        availability_zone: Option<String>,
        /// Its disks besides the flavor's own.
        disks: Vec<Disk>,
    },
    /// A volume with an image's bytes on it.
    Volume {
        /// The image's id.
        image: String,
        /// In GiB.
        size: u32,
        /// Where it is put.
        availability_zone: Option<String>,
    },
    /// What the cluster itself may do in the cloud, and no more.
    Credential,
}

/// An object that is the cloud's already, or the cluster's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Id or name.
    Given(String),
    /// The cluster's own.
    Own(Key),
}

/// Where a load balancer listens, and how its members are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// `api`, `http`, `https`.
    pub name: &'static str,
    /// Its port, and its members'.
    pub port: u16,
    /// How long a connection may be silent, in milliseconds.
    pub idle_timeout_ms: u32,
}

/// A volume that comes and goes with its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// `boot`, `etcd`, `containers`.
    pub purpose: &'static str,
    /// In GiB.
    pub size: u32,
    /// Cinder's volume type; the cloud's default where none is said.
    pub kind: Option<String>,
}

/// Watches of the Kubernetes API are silent for long.
const API_IDLE_TIMEOUT_MS: u32 = 600_000;
const INGRESS_IDLE_TIMEOUT_MS: u32 = 50_000;

/// The tag by which the cloud's objects of a cluster are found. Nova takes 60 letters at most.
pub fn tag(cluster: ClusterUuid) -> String {
    format!("bedplate-cluster={cluster}")
}

/// Every object that should exist for `spec`; none, if it is not to be.
pub fn shape(spec: &ClusterSpec<'_>) -> Shape {
    let mut shape = Shape::new();
    if spec.cluster.desire == crate::Desire::Gone {
        return shape;
    }
    let draft = Draft { spec, stem: stem(spec.cluster) };
    draft.network(&mut shape);
    draft.security(&mut shape);
    draft.balancers(&mut shape);
    for group in spec.groups {
        draft.group(&mut shape, group);
    }
    draft.names(&mut shape);
    draft.credential(&mut shape);
    shape
}

/// What the names of all objects begin with: the cluster's name for people, and enough of its id to be the only one.
fn stem(cluster: &Cluster) -> String {
    let id = cluster.id.to_string();
    format!("{}-{}", cluster.name.label(20), &id[..8])
}

/// The name of a machine's server and port, which becomes its host's and its node's: one DNS label.
pub fn machine_name(cluster: &Cluster, machine: &MachineRef) -> String {
    format!("{}-{}-{}", stem(cluster), machine.group.label(20), machine.number)
}

struct Draft<'a> {
    spec: &'a ClusterSpec<'a>,
    stem: String,
}

impl Draft<'_> {
    fn add(&self, shape: &mut Shape, key: Key, thing: Thing, needs: impl IntoIterator<Item = Key>) {
        // A server's name becomes its host name: one DNS label.
        let name = if let Key::Server(machine) | Key::Port(machine) = &key {
            machine_name(self.spec.cluster, machine)
        } else {
            format!("{}-{}", self.stem, key.to_string().replace('/', "-"))
        };
        shape.insert(key, Object { name, thing, needs: needs.into_iter().collect() });
    }

    fn blueprint(&self) -> &crate::Blueprint {
        &self.spec.cluster.blueprint
    }

    /// Network and subnet of machines, and what has to be there before a port can be.
    fn place(&self) -> (Reference, Reference, Vec<Key>) {
        match (&self.blueprint().fixed_network, &self.blueprint().fixed_subnet) {
            (Some(network), Some(subnet)) => {
                (Reference::Given(network.clone()), Reference::Given(subnet.clone()), Vec::new())
            }
            _ => (
                Reference::Own(Key::Network),
                Reference::Own(Key::Subnet),
                vec![Key::Network, Key::Subnet],
            ),
        }
    }

    fn network(&self, shape: &mut Shape) {
        if let (Reference::Given(_), ..) = self.place() {
            return;
        }
        let cidr = self.blueprint().labels.settings().node_cidr;
        let name_servers = self.blueprint().dns_nameservers.clone();
        self.add(shape, Key::Network, Thing::Network, []);
        self.add(shape, Key::Subnet, Thing::Subnet { cidr, name_servers }, [Key::Network]);
        if let Some(external_network) = self.blueprint().external_network.clone() {
            self.add(shape, Key::Router, Thing::Router { external_network }, []);
            self.add(
                shape,
                Key::RouterInterface,
                Thing::RouterInterface,
                [Key::Router, Key::Subnet],
            );
        }
    }

    fn security(&self, shape: &mut Shape) {
        let nodes = Thing::SecurityGroup { rules: rules::of_nodes(self.spec) };
        self.add(shape, Key::SecurityGroup(Role::Node), nodes, []);
        let control_plane = Thing::SecurityGroup { rules: rules::of_control_plane(self.spec) };
        self.add(shape, Key::SecurityGroup(Role::ControlPlane), control_plane, []);
    }

    fn ports(&self, role: Role) -> BTreeSet<Key> {
        let of_role = self
            .spec
            .groups
            .iter()
            .filter(|group| (group.role == GroupRole::Master) == (role == Role::ControlPlane));
        of_role.flat_map(NodeGroup::refs).map(Key::Port).collect()
    }

    fn balancers(&self, shape: &mut Shape) {
        if self.blueprint().master_lb_enabled {
            let listener = Listener {
                name: "api",
                port: self.blueprint().api_port(),
                idle_timeout_ms: API_IDLE_TIMEOUT_MS,
            };
            self.balancer(shape, Balancer::Api, vec![listener], self.ports(Role::ControlPlane));
        }
        if self.blueprint().labels.settings().ingress_balancer {
            let listener =
                |(name, port)| Listener { name, port, idle_timeout_ms: INGRESS_IDLE_TIMEOUT_MS };
            let listeners = [("http", 80), ("https", 443)].map(listener).to_vec();
            self.balancer(shape, Balancer::Ingress, listeners, self.ports(Role::Node));
        }
    }

    fn balancer(
        &self,
        shape: &mut Shape,
        of: Balancer,
        listeners: Vec<Listener>,
        members: BTreeSet<Key>,
    ) {
        let settings = self.blueprint().labels.settings();
        let (network, subnet, place) = self.place();
        let port = Thing::Port {
            network,
            subnet: Some(subnet),
            groups: BTreeSet::new(),
            allowed: BTreeSet::new(),
        };
        self.add(shape, Key::VipPort(of), port, place);

        let mut allowed =
            if of == Balancer::Api { settings.api_allowed_cidrs.clone() } else { Vec::new() };
        // Nodes reach the API by the same address as everyone else.
        if !allowed.is_empty() && !allowed.contains(&settings.node_cidr) {
            allowed.push(settings.node_cidr);
        }
        let needs: Vec<Key> = members.iter().cloned().chain([Key::VipPort(of)]).collect();
        let provider = settings.provider.as_ref().map(|it| it.as_str().to_owned());
        let balancer = Thing::LoadBalancer {
            provider,
            algorithm: settings.algorithm.as_str(),
            listeners,
            allowed,
            members,
        };
        self.add(shape, Key::LoadBalancer(of), balancer, needs);
        if self.blueprint().has_floating_balancer() {
            self.floating(shape, Key::BalancerAddress(of), Key::VipPort(of));
        }
    }

    fn floating(&self, shape: &mut Shape, key: Key, port: Key) {
        let Some(external_network) = self.blueprint().external_network.clone() else { return };
        let way_out = shape.contains_key(&Key::RouterInterface).then_some(Key::RouterInterface);
        let needs: Vec<Key> = way_out.into_iter().chain([port.clone()]).collect();
        self.add(shape, key, Thing::FloatingIp { external_network, port }, needs);
    }

    fn group(&self, shape: &mut Shape, group: &NodeGroup) {
        let settings = self.blueprint().labels.settings();
        let is_master = group.role == GroupRole::Master;
        let strict = settings.strict_anti_affinity && is_master;
        let policy = if strict { "anti-affinity" } else { "soft-anti-affinity" };
        self.add(shape, Key::ServerGroup(group.name.clone()), Thing::ServerGroup { policy }, []);
        for machine in group.refs() {
            self.machine(shape, group, &machine);
        }
    }

    fn machine(&self, shape: &mut Shape, group: &NodeGroup, machine: &MachineRef) {
        let settings = group.labels.settings();
        let is_master = group.role == GroupRole::Master;
        let (network, subnet, place) = self.place();
        let mut groups = BTreeSet::from([Key::SecurityGroup(Role::Node)]);
        if is_master {
            groups.insert(Key::SecurityGroup(Role::ControlPlane));
        }
        let needs: Vec<Key> = groups.iter().cloned().chain(place).collect();
        // Packets between pods have the pods' own addresses where routes lead them, and those of machines where they are wrapped.
        let of_cluster = self.blueprint().labels.settings();
        let bare = of_cluster.pod_network == PodNetwork::Routes;
        let allowed = bare.then_some(of_cluster.pod_cidr).into_iter().collect();
        let port = Thing::Port { network, subnet: Some(subnet), groups, allowed };
        self.add(shape, Key::Port(machine.clone()), port, needs);

        let disk = |purpose, volume: &crate::Volume| Disk {
            purpose,
            size: volume.size,
            kind: volume.kind.clone(),
        };
        let etcd = settings.etcd_volume.as_ref().filter(|_| is_master).map(|it| disk("etcd", it));
        let boot = settings.boot_volume.as_ref().map(|it| disk("boot", it));
        let containers = group.docker_volume_size.filter(|size| *size > 0).map(|size| Disk {
            purpose: "containers",
            size,
            kind: settings.container_volume_type.clone(),
        });
        let server = Thing::Server {
            image: group.image.clone(),
            flavor: group.flavor.clone(),
            keypair: self.blueprint().keypair.clone(),
            availability_zone: settings.availability_zone.clone(),
            disks: boot.into_iter().chain(etcd).chain(containers).collect(),
        };
        let needs = self.told_to_machines(shape, settings.delivery);
        let own = [Key::Port(machine.clone()), Key::ServerGroup(group.name.clone())];
        self.add(shape, Key::Server(machine.clone()), server, needs.into_iter().chain(own));
        if self.blueprint().has_floating_machines() {
            self.floating(shape, Key::MachineAddress(machine.clone()), Key::Port(machine.clone()));
        }
    }

    /// Whose addresses a machine's user-data names, or what is kept for its claim: where the API is, who the control plane
    /// is, and as whom machines are seen outside. They are known before any server is asked for.
    fn told_to_machines(&self, shape: &Shape, delivery: Delivery) -> BTreeSet<Key> {
        let control_plane = self.ports(Role::ControlPlane);
        let router = shape.contains_key(&Key::Router).then_some(Key::Router);
        let mut told: BTreeSet<Key> = self.api_ports().into_iter().chain(router).collect();
        // A claim is redeemed later: the names in certificates have time until then.
        if delivery == Delivery::Inline && self.blueprint().has_floating_machines() {
            let masters = control_plane.iter().filter_map(Key::machine).cloned();
            told.extend(masters.map(Key::MachineAddress));
        }
        if delivery == Delivery::Inline {
            let address = Key::BalancerAddress(Balancer::Api);
            told.extend(shape.contains_key(&address).then_some(address));
        }
        told.extend(control_plane);
        // Nobody is to ask for a name before it leads somewhere: that it does not would be remembered.
        told.extend(api_name_of_machines(self.spec).map(|_| Key::Record(Named::Api)));
        told
    }

    /// The ports at whose addresses machines find the API.
    fn api_ports(&self) -> BTreeSet<Key> {
        if self.blueprint().master_lb_enabled {
            return BTreeSet::from([Key::VipPort(Balancer::Api)]);
        }
        self.ports(Role::ControlPlane)
    }

    /// Who runs a part of the cloud's provider in the cluster does so as the cluster, and not as us.
    fn credential(&self, shape: &mut Shape) {
        let settings = self.blueprint().labels.settings();
        if settings.cloud_provider || settings.cinder_csi {
            let key = Key::Credential(self.spec.cluster.credential);
            self.add(shape, key, Thing::Credential, []);
        }
    }

    fn names(&self, shape: &mut Shape) {
        let settings = self.blueprint().labels.settings();
        let Some(zone) = settings.dns_zone.clone() else { return };
        let domain = format!("{}.{zone}", self.spec.cluster.name.label(63));
        // Outside, where there is an outside; else the ports' own addresses.
        let outside = |port: Key| {
            let floating = if let Key::VipPort(of) = &port {
                Some(Key::BalancerAddress(*of))
            } else {
                port.machine().cloned().map(Key::MachineAddress)
            };
            floating.filter(|key| shape.contains_key(key)).unwrap_or(port)
        };
        let apps = if settings.ingress_balancer {
            BTreeSet::from([Key::VipPort(Balancer::Ingress)])
        } else {
            self.ports(Role::Node)
        };
        let mut records = vec![
            (
                Named::Api,
                format!("api.{domain}"),
                self.api_ports().into_iter().map(outside).collect::<BTreeSet<_>>(),
            ),
            (Named::Apps, format!("*.apps.{domain}"), apps.into_iter().map(outside).collect()),
        ];
        if settings.node_records {
            for machine in self.spec.groups.iter().flat_map(NodeGroup::refs) {
                let host = format!("{}-{}.{domain}", machine.group.label(20), machine.number);
                let of = BTreeSet::from([outside(Key::Port(machine.clone()))]);
                records.push((Named::Machine(machine), host, of));
            }
        }
        for (named, host, of) in records {
            let needs: Vec<Key> = of.iter().cloned().collect();
            if !needs.is_empty() {
                let record = Thing::Record { zone: zone.clone(), host, of };
                self.add(shape, Key::Record(named), record, needs);
            }
        }
    }
}

#[cfg(test)]
mod tests;
