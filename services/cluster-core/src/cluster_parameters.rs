//! The parameters of a cluster template, which each cluster copies.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Labels, NetworkDriver as Network};

/// The parameters of a cluster. A cluster keeps its own copy, so that a later change of the template does not change the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterParameters {
    /// The image of the servers: an id or a name.
    pub image: String,
    /// The Nova keypair that may log in to the servers.
    pub keypair: Option<String>,
    /// The network that floating IPs come from.
    pub external_network: Option<String>,
    /// The network of the servers; `None`: the cluster gets a network of its own.
    pub fixed_network: Option<String>,
    /// The subnet of `fixed_network`; given together with it or not at all.
    pub fixed_subnet: Option<String>,
    pub network_driver: Network,
    pub volume_driver: Option<VolumeDriver>,
    /// The name servers of the subnet, when the cluster has a network of its own.
    pub dns_nameservers: Vec<IpAddr>,
    /// The flavor of workers: an id or a name.
    pub flavor: Option<String>,
    /// The flavor of control-plane members: an id or a name. `None` in a template: clusters use `flavor`.
    pub master_flavor: Option<String>,
    /// The size of a volume for images and containers, in GiB.
    pub docker_volume_size: Option<u32>,
    pub http_proxy: Option<String>,
    pub https_proxy: Option<String>,
    /// Hosts that the nodes reach without a proxy.
    pub no_proxy: Option<String>,
    /// The port of the Kubernetes API; `None`: 6443.
    pub apiserver_port: Option<u16>,
    /// Whether each server gets a floating IP.
    pub floating_ip_enabled: bool,
    /// Whether the control plane gets a load balancer.
    pub master_lb_enabled: bool,
    /// All other settings.
    pub labels: Labels,
    /// The names that the caller gave for the image and the networks, by the ids that are recorded instead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
}

words::words! {
    /// The pod network that the template asks for, with Magnum's name of its driver.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum NetworkDriver {
        Flannel = "flannel",
        /// clusterd does not install Calico; accepted only with the label `pod_network=routes`.
        Calico = "calico",
    }
}

words::words! {
    /// The driver of persistent volumes, with Magnum's name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum VolumeDriver {
        Cinder = "cinder",
    }
}

impl ClusterParameters {
    /// Returns the DNS zone of the cluster's names, with the final dot.
    pub fn zone(&self) -> Option<&str> {
        self.labels.settings().dns_zone.as_deref()
    }

    /// Makes the parameters of a template that names only an image; everything else has Magnum's defaults.
    pub fn new(image: String) -> Self {
        ClusterParameters {
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
            names: BTreeMap::new(),
        }
    }

    /// Returns the name that the caller gave for the object with this id, or else the id. Magnum's answers show names as they were given.
    pub fn shown<'a>(&'a self, id: &'a str) -> &'a str {
        self.names.get(id).map_or(id, String::as_str)
    }

    /// Records that the caller gave `given` for the object with this id.
    pub fn note_name(&mut self, given: &str, id: &str) {
        match given == id {
            true => self.names.remove(id),
            false => self.names.insert(id.to_owned(), given.to_owned()),
        };
    }

    /// Returns the port of the Kubernetes API.
    pub fn api_port(&self) -> u16 {
        self.apiserver_port.unwrap_or(6443)
    }

    /// Whether servers get floating IPs: floating IPs must be enabled, and there must be an external network that has them.
    pub fn has_floating_machines(&self) -> bool {
        self.floating_ip_enabled && self.external_network.is_some()
    }

    /// Whether the load balancer gets a floating IP: by its label, or without the label when servers get floating IPs.
    pub fn has_floating_balancer(&self) -> bool {
        let wished = self.labels.settings().balancer_floating_ip;
        wished.unwrap_or(self.floating_ip_enabled) && self.external_network.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::labels;

    #[test]
    fn floating_ips_need_an_external_network() {
        let parameters = |enabled, external: Option<&str>, label: Option<&str>| {
            let label = label.map(|value| ("master_lb_floating_ip_enabled", value));
            ClusterParameters {
                floating_ip_enabled: enabled,
                external_network: external.map(str::to_owned),
                labels: labels(label.as_slice()),
                ..ClusterParameters::new("fcos".to_owned())
            }
        };
        for (enabled, external, label, machines, balancer) in [
            (true, Some("public"), None, true, true),
            (true, None, None, false, false),
            (false, Some("public"), None, false, false),
            (false, Some("public"), Some("true"), false, true),
            (false, None, Some("true"), false, false),
            (true, Some("public"), Some("false"), true, false),
        ] {
            let of = parameters(enabled, external, label);
            let got = (of.has_floating_machines(), of.has_floating_balancer());
            assert_eq!(got, (machines, balancer), "{enabled} {external:?} {label:?}");
        }
    }

    #[test]
    fn a_name_is_shown_as_it_was_given_last() {
        let mut parameters = ClusterParameters::new("4f1e".to_owned());
        assert_eq!(parameters.shown("4f1e"), "4f1e");
        parameters.note_name("fedora-coreos", "4f1e");
        assert_eq!(parameters.shown(&parameters.image), "fedora-coreos");
        assert_eq!(parameters.shown("other"), "other");
        parameters.note_name("4f1e", "4f1e");
        assert_eq!(parameters.shown(&parameters.image), "4f1e");
    }

    #[test]
    fn the_dns_zone_comes_from_its_label() {
        let mut parameters = ClusterParameters::new("fcos".to_owned());
        assert_eq!(parameters.zone(), None);
        parameters.labels = labels(&[("dns_zone", "k8s.example")]);
        assert_eq!(parameters.zone(), Some("k8s.example."));
    }
}
