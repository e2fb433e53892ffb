//! The settings of a cluster, as its labels set them.

use std::collections::BTreeMap;

use lease::{Length, MailAddress};

use crate::{Cidr, KubernetesVersion, ProxyField};

/// The settings of a cluster. A setting that no label sets is `None` or has Magnum's customary default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `None`: [`KubernetesVersion::DEFAULT`].
    pub kubernetes: Option<KubernetesVersion>,
    /// The registry from which all container images are pulled, instead of each image's own registry.
    pub registry: Option<String>,
    pub availability_zone: Option<String>,
    /// The volume that servers boot from, instead of the disk of their flavor.
    pub boot_volume: Option<Volume>,
    /// A separate volume for etcd on control-plane members.
    pub etcd_volume: Option<Volume>,
    /// The Cinder type of the volume for images and containers.
    pub container_volume_type: Option<String>,
    /// The address range of pods.
    pub pod_cidr: Cidr,
    /// How packets between pods travel.
    pub pod_network: PodNetwork,
    /// The address range of Services.
    pub service_cidr: Cidr,
    /// The address range of the subnet, when the cluster has its own network.
    pub node_cidr: Cidr,
    /// The DNS domain of Services in the cluster.
    pub cluster_domain: String,
    /// Whether the load balancer of the API gets a floating IP. `None`: it gets one when members get floating IPs.
    pub balancer_floating_ip: Option<bool>,
    /// Additional names and addresses of the API in its certificates.
    pub api_names: Vec<String>,
    /// The address ranges from which the API may be reached; empty means from anywhere.
    pub api_allowed_cidrs: Vec<Cidr>,
    /// The provider of load balancers; `None`: Octavia's default.
    pub provider: Option<Provider>,
    pub algorithm: Algorithm,
    /// Whether the cluster gets a load balancer for ports 80 and 443.
    pub ingress_balancer: bool,
    /// The DNS zone of `api.NAME.ZONE` and `*.apps.NAME.ZONE`, with the final dot.
    pub dns_zone: Option<String>,
    /// Whether every member gets a DNS name too.
    pub node_records: bool,
    /// Whether failed members are replaced.
    pub repair: bool,
    /// Whether members update their operating systems, and reboot one after the other.
    pub os_updates: bool,
    /// Whether the cloud controller manager is installed in the cluster.
    pub cloud_provider: bool,
    /// Whether the Cinder CSI driver is installed in the cluster.
    pub cinder_csi: bool,
    /// Whether metrics-server is installed, which `kubectl top` and autoscaling need.
    pub metrics_server: bool,
    /// Whether the GPU device plugin is installed, without which pods cannot use the GPUs of a flavor.
    pub gpu_plugin: bool,
    /// Tags of add-on images that replace the default tags, by image: `flannel`, `cinder-csi-plugin`, …
    pub image_tags: BTreeMap<&'static str, String>,
    /// Whether control-plane members must be on different hosts; otherwise Nova only tries.
    pub strict_anti_affinity: bool,
    /// How a server gets its Ignition config.
    pub delivery: Delivery,
    /// The smallest and the largest size of a node group.
    pub node_count_bounds: (Option<u32>, Option<u32>),
    /// Additional command-line arguments by component: `kubelet`, `kube-apiserver`, …
    pub arguments: BTreeMap<&'static str, Vec<(String, String)>>,
    /// Fields of kube-proxy's configuration that replace the defaults.
    pub kube_proxy: Vec<ProxyField>,
    /// Admission plugins that are switched on besides the default ones.
    pub admission_plugins: Vec<String>,
    /// How long the cluster is lent; `None`: without end.
    pub lease: Option<Length>,
    /// A mail address that receives notices about the end of the lease.
    pub lease_contact: Option<MailAddress>,
}

/// A volume that a server gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// In GiB.
    pub size: u32,
    /// The Cinder volume type; `None`: the cloud's default.
    pub kind: Option<String>,
}

/// The Octavia provider that makes load balancers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Virtual machines that run haproxy.
    Amphora,
    /// Flows in Open vSwitch, without virtual machines.
    Ovn,
    /// Another provider of the cloud, by Octavia's name.
    Other(String),
}

impl Provider {
    /// Returns Octavia's name of the provider.
    pub fn as_str(&self) -> &str {
        match self {
            Provider::Amphora => "amphora",
            Provider::Ovn => "ovn",
            Provider::Other(name) => name,
        }
    }
}

words::words! {
    /// How a load balancer chooses the member for a connection, with Octavia's name of the algorithm.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Algorithm {
        RoundRobin = "ROUND_ROBIN",
        LeastConnections = "LEAST_CONNECTIONS",
        /// By the address of the client.
        SourceIp = "SOURCE_IP",
        /// By the address and the port of the client: the only algorithm that OVN supports.
        SourceIpPort = "SOURCE_IP_PORT",
    }
}

/// How packets between pods travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodNetwork {
    /// By the add-on that `network_driver` of the template names.
    Driver,
    /// By routes on the members, without an add-on.
    Routes,
}

/// How a server gets its Ignition config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// User-data holds a claim, a single-use credential with which the server fetches its config from clusterd.
    Claim,
    /// User-data holds the whole config.
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
            api_names: Vec::new(),
            api_allowed_cidrs: Vec::new(),
            provider: None,
            algorithm: Algorithm::RoundRobin,
            ingress_balancer: false,
            dns_zone: None,
            node_records: false,
            repair: true,
            os_updates: false,
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
