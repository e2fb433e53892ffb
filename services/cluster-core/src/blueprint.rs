//! What a template says, and a cluster takes over when it is made.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Labels, NetworkDriver as Network};

/// What a template says of clusters. A cluster keeps a copy of its own, so that no later change of the template reaches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    /// The image of machines: an id or a name.
    pub image: String,
    /// The keypair that may log in to machines.
    pub keypair: Option<String>,
    /// The network that floating addresses come from.
    pub external_network: Option<String>,
    /// The network of machines; one of the cluster's own where there is none.
    pub fixed_network: Option<String>,
    /// The subnet of `fixed_network`.
    pub fixed_subnet: Option<String>,
    /// How pods reach each other.
    pub network_driver: Network,
    /// How volumes are had.
    pub volume_driver: Option<VolumeDriver>,
    /// The name servers of machines on a network of the cluster's own.
    pub dns_nameservers: Vec<IpAddr>,
    /// The flavor of workers: an id or a name.
    pub flavor: Option<String>,
    /// The flavor of control-plane machines; that of workers where there is none.
    pub master_flavor: Option<String>,
    /// The size of a volume for images and containers, in GiB.
    pub docker_volume_size: Option<u32>,
    /// The proxies that machines use.
    pub http_proxy: Option<String>,
    /// As `http_proxy`, for TLS.
    pub https_proxy: Option<String>,
    /// What is reached without them.
    pub no_proxy: Option<String>,
    /// The port of the Kubernetes API, where it is not 6443.
    pub apiserver_port: Option<u16>,
    /// Whether each machine gets a floating address.
    pub floating_ip_enabled: bool,
    /// Whether a load balancer stands before the control plane.
    pub master_lb_enabled: bool,
    /// All other settings.
    pub labels: Labels,
}

/// How pods reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkDriver {
    /// Flannel.
    Flannel,
    /// Calico.
    Calico,
}

impl NetworkDriver {
    /// Magnum's word.
    pub fn as_str(self) -> &'static str {
        match self {
            NetworkDriver::Flannel => "flannel",
            NetworkDriver::Calico => "calico",
        }
    }
}

/// How volumes are had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeDriver {
    /// From Cinder.
    Cinder,
}

impl Blueprint {
    /// The DNS zone that names are made in, if there is one.
    pub fn zone(&self) -> Option<&str> {
        self.labels.settings().dns_zone.as_deref()
    }

    /// What a template says that says nothing but its image.
    pub fn new(image: String) -> Self {
        Blueprint {
            image,
            keypair: None,
            external_network: None,
            fixed_network: None,
            fixed_subnet: None,
            network_driver: Network::Flannel,
            volume_driver: None,
            dns_nameservers: vec![IpAddr::from([8, 8, 8, 8])],
            flavor: None,
            master_flavor: None,
            docker_volume_size: None,
            http_proxy: None,
            https_proxy: None,
            no_proxy: None,
            apiserver_port: None,
            floating_ip_enabled: true,
            master_lb_enabled: false,
            labels: Labels::default(),
        }
    }

    /// The port of the Kubernetes API.
    pub fn api_port(&self) -> u16 {
        self.apiserver_port.unwrap_or(6443)
    }

    /// Whether machines get floating addresses: there must be somewhere to have them from.
    pub fn has_floating_machines(&self) -> bool {
        self.floating_ip_enabled && self.external_network.is_some()
    }

    /// Whether the load balancer gets a floating address: as its label says, or else as machines do.
    pub fn has_floating_balancer(&self) -> bool {
        let wished = self.labels.settings().balancer_floating_ip;
        wished.unwrap_or(self.floating_ip_enabled) && self.external_network.is_some()
    }
}
