//! The desired objects of a cluster: every cloud object that should exist.

use std::collections::BTreeSet;

use crate::{
    BalancerPurpose, Cluster, ClusterSpec, ClusterUuid, Delivery, DesiredObject, DesiredObjects,
    DnsName, GroupRole, Key, Listener, MemberName, NodeGroup, PodNetwork, Reference, ResourceSpec,
    SecurityGroupRole, ServerVolume, api_name_for_members, rules,
};

/// Watches of the Kubernetes API send nothing for minutes, and must not be closed.
const API_IDLE_TIMEOUT_MS: u32 = 600_000;
const INGRESS_IDLE_TIMEOUT_MS: u32 = 50_000;

/// Returns the tag of all cloud objects of a cluster. Nova allows 60 characters.
pub fn tag(cluster: ClusterUuid) -> String {
    format!("bedplate-cluster={cluster}")
}

/// Computes every object that should exist for `spec`. Empty when the cluster is to be deleted.
pub fn desired_objects(spec: &ClusterSpec<'_>) -> DesiredObjects {
    let mut shape = DesiredObjects::new();
    if spec.cluster.desire == crate::DesiredState::Gone {
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

/// Returns the start of all object names: the cluster's name, for people, and the first eight characters of its id, which make it unique.
fn stem(cluster: &Cluster) -> String {
    let id = cluster.id.to_string();
    format!("{}-{}", cluster.name.label(20), &id[..8])
}

/// Returns the name of a member's server and port. The name becomes the host name and the name of the Kubernetes node, so it is one DNS
/// label.
pub fn machine_name(cluster: &Cluster, machine: &MemberName) -> String {
    format!("{}-{}-{}", stem(cluster), machine.group.label(20), machine.number)
}

struct Draft<'a> {
    spec: &'a ClusterSpec<'a>,
    stem: String,
}

impl Draft<'_> {
    fn add(
        &self,
        shape: &mut DesiredObjects,
        key: Key,
        thing: ResourceSpec,
        needs: impl IntoIterator<Item = Key>,
    ) {
        // The name of a server becomes its host name, so it is one DNS label.
        let name = if let Key::Server(machine) | Key::Port(machine) = &key {
            machine_name(self.spec.cluster, machine)
        } else {
            format!("{}-{}", self.stem, key.to_string().replace('/', "-"))
        };
        shape.insert(key, DesiredObject { name, thing, needs: needs.into_iter().collect() });
    }

    fn blueprint(&self) -> &crate::ClusterParameters {
        &self.spec.cluster.blueprint
    }

    /// Returns the network and the subnet of the servers, and the keys that a port needs first.
    fn network_and_subnet(&self) -> (Reference, Reference, Vec<Key>) {
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

    fn network(&self, shape: &mut DesiredObjects) {
        if let (Reference::Given(_), ..) = self.network_and_subnet() {
            return;
        }
        let cidr = self.blueprint().labels.settings().node_cidr;
        let name_servers = self.blueprint().dns_nameservers.clone();
        self.add(shape, Key::Network, ResourceSpec::Network, []);
        self.add(shape, Key::Subnet, ResourceSpec::Subnet { cidr, name_servers }, [Key::Network]);
        if let Some(external_network) = self.blueprint().external_network.clone() {
            self.add(shape, Key::Router, ResourceSpec::Router { external_network }, []);
            self.add(
                shape,
                Key::RouterInterface,
                ResourceSpec::RouterInterface,
                [Key::Router, Key::Subnet],
            );
        }
    }

    fn security(&self, shape: &mut DesiredObjects) {
        let nodes = ResourceSpec::SecurityGroup { rules: rules::node_rules(self.spec) };
        self.add(shape, Key::SecurityGroup(SecurityGroupRole::Node), nodes, []);
        let control_plane =
            ResourceSpec::SecurityGroup { rules: rules::control_plane_rules(self.spec) };
        self.add(shape, Key::SecurityGroup(SecurityGroupRole::ControlPlane), control_plane, []);
    }

    fn ports(&self, role: SecurityGroupRole) -> BTreeSet<Key> {
        let of_role = self.spec.groups.iter().filter(|group| {
            (group.role == GroupRole::Master) == (role == SecurityGroupRole::ControlPlane)
        });
        of_role.flat_map(NodeGroup::refs).map(Key::Port).collect()
    }

    fn balancers(&self, shape: &mut DesiredObjects) {
        if self.blueprint().master_lb_enabled {
            let listener = Listener {
                name: "api",
                port: self.blueprint().api_port(),
                idle_timeout_ms: API_IDLE_TIMEOUT_MS,
            };
            self.balancer(
                shape,
                BalancerPurpose::Api,
                vec![listener],
                self.ports(SecurityGroupRole::ControlPlane),
            );
        }
        if self.blueprint().labels.settings().ingress_balancer {
            let listener =
                |(name, port)| Listener { name, port, idle_timeout_ms: INGRESS_IDLE_TIMEOUT_MS };
            let listeners = [("http", 80), ("https", 443)].map(listener).to_vec();
            self.balancer(
                shape,
                BalancerPurpose::Ingress,
                listeners,
                self.ports(SecurityGroupRole::Node),
            );
        }
    }

    fn balancer(
        &self,
        shape: &mut DesiredObjects,
        of: BalancerPurpose,
        listeners: Vec<Listener>,
        members: BTreeSet<Key>,
    ) {
        let settings = self.blueprint().labels.settings();
        let (network, subnet, place) = self.network_and_subnet();
        let port = ResourceSpec::Port {
            network,
            subnet: Some(subnet),
            groups: BTreeSet::new(),
            allowed: BTreeSet::new(),
        };
        self.add(shape, Key::VipPort(of), port, place);

        let mut allowed = if of == BalancerPurpose::Api {
            settings.api_allowed_cidrs.clone()
        } else {
            Vec::new()
        };
        // Members reach the API at the same address as everybody else.
        if !allowed.is_empty() && !allowed.contains(&settings.node_cidr) {
            allowed.push(settings.node_cidr);
        }
        let needs: Vec<Key> = members.iter().cloned().chain([Key::VipPort(of)]).collect();
        let provider = settings.provider.as_ref().map(|it| it.as_str().to_owned());
        let balancer = ResourceSpec::LoadBalancer {
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

    fn floating(&self, shape: &mut DesiredObjects, key: Key, port: Key) {
        let Some(external_network) = self.blueprint().external_network.clone() else { return };
        let way_out = shape.contains_key(&Key::RouterInterface).then_some(Key::RouterInterface);
        let needs: Vec<Key> = way_out.into_iter().chain([port.clone()]).collect();
        self.add(shape, key, ResourceSpec::FloatingIp { external_network, port }, needs);
    }

    fn group(&self, shape: &mut DesiredObjects, group: &NodeGroup) {
        let settings = self.blueprint().labels.settings();
        let is_master = group.role == GroupRole::Master;
        let strict = settings.strict_anti_affinity && is_master;
        let policy = if strict { "anti-affinity" } else { "soft-anti-affinity" };
        self.add(
            shape,
            Key::ServerGroup(group.name.clone()),
            ResourceSpec::ServerGroup { policy },
            [],
        );
        for machine in group.refs() {
            self.machine(shape, group, &machine);
        }
    }

    fn machine(&self, shape: &mut DesiredObjects, group: &NodeGroup, machine: &MemberName) {
        let settings = group.labels.settings();
        let is_master = group.role == GroupRole::Master;
        let (network, subnet, place) = self.network_and_subnet();
        let mut groups = BTreeSet::from([Key::SecurityGroup(SecurityGroupRole::Node)]);
        if is_master {
            groups.insert(Key::SecurityGroup(SecurityGroupRole::ControlPlane));
        }
        let needs: Vec<Key> = groups.iter().cloned().chain(place).collect();
        // With routes, packets between pods carry the addresses of the pods; with an overlay network they carry those of the members.
        let of_cluster = self.blueprint().labels.settings();
        let bare = of_cluster.pod_network == PodNetwork::Routes;
        let allowed = bare.then_some(of_cluster.pod_cidr).into_iter().collect();
        let port = ResourceSpec::Port { network, subnet: Some(subnet), groups, allowed };
        self.add(shape, Key::Port(machine.clone()), port, needs);

        let disk = |purpose, volume: &crate::Volume| ServerVolume {
            purpose,
            size: volume.size,
            kind: volume.kind.clone(),
        };
        let etcd = settings.etcd_volume.as_ref().filter(|_| is_master).map(|it| disk("etcd", it));
        let boot = settings.boot_volume.as_ref().map(|it| disk("boot", it));
        let containers =
            group.docker_volume_size.filter(|size| *size > 0).map(|size| ServerVolume {
                purpose: "containers",
                size,
                kind: settings.container_volume_type.clone(),
            });
        let server = ResourceSpec::Server {
            image: group.image.clone(),
            flavor: group.flavor.clone(),
            keypair: self.spec.cluster.nova_keypair().map(str::to_owned),
            availability_zone: settings.availability_zone.clone(),
            disks: boot.into_iter().chain(etcd).chain(containers).collect(),
        };
        let needs = self.user_data_needs(shape, settings.delivery);
        let own = [Key::Port(machine.clone()), Key::ServerGroup(group.name.clone())];
        self.add(shape, Key::Server(machine.clone()), server, needs.into_iter().chain(own));
        if self.blueprint().has_floating_machines() {
            self.floating(shape, Key::MachineAddress(machine.clone()), Key::Port(machine.clone()));
        }
    }

    /// Returns the objects whose addresses are in a member's user-data, or are recorded for its claim: the API, the control plane, and the
    /// router, whose external address is that of requests from the members. All must be known before a server is created.
    fn user_data_needs(&self, shape: &DesiredObjects, delivery: Delivery) -> BTreeSet<Key> {
        let control_plane = self.ports(SecurityGroupRole::ControlPlane);
        let router = shape.contains_key(&Key::Router).then_some(Key::Router);
        let mut reported: BTreeSet<Key> = self.api_ports().into_iter().chain(router).collect();
        // A claim is redeemed when the server has booted, so floating IPs, which only certificates contain, may come later.
        if delivery == Delivery::Inline && self.blueprint().has_floating_machines() {
            let masters = control_plane.iter().filter_map(Key::member).cloned();
            reported.extend(masters.map(Key::MachineAddress));
        }
        if delivery == Delivery::Inline {
            let address = Key::BalancerAddress(BalancerPurpose::Api);
            reported.extend(shape.contains_key(&address).then_some(address));
        }
        reported.extend(control_plane);
        // A member must not resolve the name before the record exists: resolvers would cache the negative answer.
        reported.extend(api_name_for_members(self.spec).map(|_| Key::Record(DnsName::Api)));
        reported
    }

    /// Returns the ports at whose addresses members reach the API.
    fn api_ports(&self) -> BTreeSet<Key> {
        if self.blueprint().master_lb_enabled {
            return BTreeSet::from([Key::VipPort(BalancerPurpose::Api)]);
        }
        self.ports(SecurityGroupRole::ControlPlane)
    }

    /// Add-ons that call the cloud do so with the cluster's own credential, never with clusterd's.
    fn credential(&self, shape: &mut DesiredObjects) {
        let settings = self.blueprint().labels.settings();
        if settings.cloud_provider || settings.cinder_csi {
            let key = Key::Credential(self.spec.cluster.credential);
            self.add(shape, key, ResourceSpec::Credential, []);
        }
    }

    fn names(&self, shape: &mut DesiredObjects) {
        let settings = self.blueprint().labels.settings();
        let Some(zone) = settings.dns_zone.clone() else { return };
        let domain = format!("{}.{zone}", self.spec.cluster.name.label(63));
        // Records lead to the floating IP of a port where it has one, otherwise to the address of the port.
        let outside = |port: Key| {
            let floating = if let Key::VipPort(of) = &port {
                Some(Key::BalancerAddress(*of))
            } else {
                port.member().cloned().map(Key::MachineAddress)
            };
            floating.filter(|key| shape.contains_key(key)).unwrap_or(port)
        };
        let apps = if settings.ingress_balancer {
            BTreeSet::from([Key::VipPort(BalancerPurpose::Ingress)])
        } else {
            self.ports(SecurityGroupRole::Node)
        };
        let mut records = vec![
            (
                DnsName::Api,
                format!("api.{domain}"),
                self.api_ports().into_iter().map(outside).collect::<BTreeSet<_>>(),
            ),
            (DnsName::Apps, format!("*.apps.{domain}"), apps.into_iter().map(outside).collect()),
        ];
        if settings.node_records {
            for machine in self.spec.groups.iter().flat_map(NodeGroup::refs) {
                let host = format!("{}-{}.{domain}", machine.group.label(20), machine.number);
                let of = BTreeSet::from([outside(Key::Port(machine.clone()))]);
                records.push((DnsName::Machine(machine), host, of));
            }
        }
        for (named, host, of) in records {
            let needs: Vec<Key> = of.iter().cloned().collect();
            if !needs.is_empty() {
                let record = ResourceSpec::Record { zone: zone.clone(), host, of };
                self.add(shape, Key::Record(named), record, needs);
            }
        }
    }
}

#[cfg(test)]
mod tests;
