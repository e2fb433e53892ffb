//! What a cluster's labels say, as types.

use std::collections::BTreeMap;

use lease::{Length, MailAddress};

use crate::{Cidr, KubernetesVersion, ProxyField};

/// What the labels say. What they do not say is `None` or the customary value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which Kubernetes.
    pub kubernetes: Option<KubernetesVersion>,
    /// Where images come from, in place of their own registries.
    pub registry: Option<String>,
    /// Where machines are put.
    pub availability_zone: Option<String>,
    /// The disk that machines boot from, in place of their flavor's.
    pub boot_volume: Option<Volume>,
    /// A disk of etcd's own on control-plane machines.
    pub etcd_volume: Option<Volume>,
    /// The type of the volume for images and containers.
    pub container_volume_type: Option<String>,
    /// Addresses of pods.
    pub pod_cidr: Cidr,
    /// What pods' packets travel by.
    pub pod_network: PodNetwork,
    /// Addresses of Services.
    pub service_cidr: Cidr,
    /// Addresses of machines, on a network of the cluster's own.
    pub node_cidr: Cidr,
    /// The domain of Services.
    pub cluster_domain: String,
    /// Whether the API's load balancer is reached from outside; else as nodes are.
    pub balancer_floating_ip: Option<bool>,
    /// Who may reach the API, where not anyone.
    pub api_allowed_cidrs: Vec<Cidr>,
    /// Which load balancer Octavia makes.
    pub provider: Option<Provider>,
    /// How the load balancer chooses a machine.
    pub algorithm: Algorithm,
    /// Whether a load balancer for ports 80 and 443 is made.
    pub ingress_balancer: bool,
    /// The DNS zone for `api.NAME.ZONE` and `*.apps.NAME.ZONE`, ending with a dot.
    pub dns_zone: Option<String>,
    /// Whether every node gets a DNS name too.
    pub node_records: bool,
    /// Whether machines that fail are replaced.
    pub repair: bool,
    /// Whether the cloud provider runs in the cluster.
    pub cloud_provider: bool,
    /// Whether volumes can be had in the cluster.
    pub cinder_csi: bool,
    /// Whether the usage of nodes and pods is measured: `kubectl top`, autoscaling.
    pub metrics_server: bool,
    /// Whether pods can have the GPUs of machines whose flavor has some.
    pub gpu_plugin: bool,
    /// Tags of add-ons' images that are not the customary ones, by image: `flannel`, `cinder-csi-plugin`, …
    pub image_tags: BTreeMap<&'static str, String>,
    /// Whether machines of the control plane must be apart, not only should.
    pub strict_anti_affinity: bool,
    /// How machines get what makes them nodes.
    pub delivery: Delivery,
    /// How a group may be scaled, least and most.
    pub node_count_bounds: (Option<u32>, Option<u32>),
    /// Further arguments of each component: `kubelet`, `kube-apiserver`, …
    pub arguments: BTreeMap<&'static str, Vec<(String, String)>>,
    /// Fields of kube-proxy's configuration.
    pub kube_proxy: Vec<ProxyField>,
    /// Admission plugins to switch on.
    pub admission_plugins: Vec<String>,
    /// How long it is lent.
    pub lease: Option<Length>,
    /// A mail address that is told of the end of its lease.
    pub lease_contact: Option<MailAddress>,
}

/// A volume that a machine gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// In GiB.
    pub size: u32,
    /// Cinder's volume type; the cloud's default where none is said.
    pub kind: Option<String>,
}

/// Who makes load balancers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Virtual machines with haproxy.
    Amphora,
    /// Open vSwitch itself.
    Ovn,
    /// Another of the cloud's.
    Other(String),
}

impl Provider {
    /// Octavia's word.
    pub fn as_str(&self) -> &str {
        match self {
            Provider::Amphora => "amphora",
            Provider::Ovn => "ovn",
            Provider::Other(name) => name,
        }
    }
}

/// How a load balancer chooses a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// In turn.
    RoundRobin,
    /// The least busy.
    LeastConnections,
    /// By the client's address.
    SourceIp,
    /// By the client's address and port: the only one that OVN knows.
    SourceIpPort,
}

impl Algorithm {
    /// Octavia's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::RoundRobin => "ROUND_ROBIN",
            Algorithm::LeastConnections => "LEAST_CONNECTIONS",
            Algorithm::SourceIp => "SOURCE_IP",
            Algorithm::SourceIpPort => "SOURCE_IP_PORT",
        }
    }
}

/// What pods' packets travel by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodNetwork {
    /// What the template's `network_driver` names, as an add-on.
    Driver,
    /// Routes between machines, without an add-on.
    Routes,
}

/// How machines get what makes them nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// User-data holds a claim, which a machine redeems once.
    Claim,
    /// User-data holds it all.
    Inline,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            kubernetes: None,
            registry: None,
            availability_zone: None,
            boot_volume: None,
            etcd_volume: None,
            container_volume_type: None,
            pod_cidr: Cidr::v4([10, 100, 0, 0], 16),
            pod_network: PodNetwork::Driver,
            service_cidr: Cidr::v4([10, 254, 0, 0], 16),
            node_cidr: Cidr::v4([10, 0, 0, 0], 24),
            cluster_domain: "cluster.local".to_owned(),
            balancer_floating_ip: None,
            api_allowed_cidrs: Vec::new(),
            provider: None,
            algorithm: Algorithm::RoundRobin,
            ingress_balancer: false,
            dns_zone: None,
            node_records: false,
            repair: true,
            cloud_provider: true,
            cinder_csi: true,
            metrics_server: false,
            gpu_plugin: true,
            image_tags: BTreeMap::new(),
            strict_anti_affinity: false,
            delivery: Delivery::Claim,
            node_count_bounds: (None, None),
            arguments: BTreeMap::new(),
            kube_proxy: Vec::new(),
            admission_plugins: Vec::new(),
            lease: None,
            lease_contact: None,
        }
    }
}
