//! What a cluster is to be.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::net::IpAddr;

use ignition::Config;
use serde_json::{Map, Value};

use crate::{BootstrapToken, Cidr, KubernetesVersion, Name, Pki, Source};

/// A cluster, as far as its machines have to know it.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its name, which kubeconfigs show and etcd's members check.
    pub name: Name,
    /// Which Kubernetes.
    pub version: KubernetesVersion,
    /// The range that pods' addresses are of; each machine gets a part.
    pub pods: Cidr,
    /// The range that services' addresses are of.
    pub services: Cidr,
    /// The domain within the cluster, such as `cluster.local`.
    pub domain: String,
    /// Where the API is reached by machines and users: the load balancer.
    pub endpoint: Endpoint,
    /// Other names and addresses the API is reached at; certificates hold them.
    pub also_known_as: Vec<String>,
    /// 1, 3 or 5 machines. The first does what is done once for the cluster.
    pub control_plane: Vec<Machine>,
    /// What pods' packets travel by.
    pub pod_network: PodNetwork,
    /// Who answers names within the cluster.
    pub dns: ClusterDns,
    /// Where programs and images come from.
    pub source: Source,
    /// What workers show to be let in.
    pub token: BootstrapToken,
    /// For how many hours, counted from the cluster's start; 0 is for ever.
    pub token_hours: u32,
    /// Authorities and keys.
    pub pki: Pki,
    /// Which of the two the image's containerd and systemd agree on: `Systemd` on Fedora CoreOS.
    pub cgroups: CgroupDriver,
    /// Who lets machines in that show the token.
    pub approval: Approval,
    /// Whether a cloud controller manager will tell machines their addresses and zones.
    pub external_cloud_provider: bool,
    /// What is to differ from the configurations made here.
    pub overrides: Overrides,
    /// Merged into each machine's config last: users, keys, more units.
    pub extra: Option<Config>,
}

/// Where the API is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address.
    pub host: String,
    /// Mostly 6443. Machines of the control plane listen on it too.
    pub port: u16,
}

/// A machine that is known by name and address before it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its host name, and its node's.
    pub name: Name,
    /// Its address in the cluster's network.
    pub address: IpAddr,
}

/// A machine that runs pods and no control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Who it is.
    pub machine: Machine,
    /// Labels of its node.
    pub labels: BTreeMap<String, String>,
    /// Taints of its node, from its first moment.
    pub taints: Vec<Taint>,
}

/// Keeps pods away that do not tolerate it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value, which may be empty.
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaintEffect {
    /// They are not placed here.
    NoSchedule,
    /// They are placed here last.
    PreferNoSchedule,
    /// They are not placed here, and those that are here leave.
    NoExecute,
}

/// What pods' packets travel by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodNetwork {
    /// A bridge on each machine, and on each machine a route to every other's pods. Wants one network for all machines that lets
    /// pods' addresses pass (in Neutron: allowed address pairs), and no images.
    HostRoutes,
    /// Something that is applied once the API answers. Nodes are not ready until it is.
    AddOn,
}

/// Who answers names within the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterDns {
    /// kubeadm's CoreDNS.
    CoreDns,
    /// Nobody, or something that is applied later.
    Absent,
}

/// Who signs what a machine that shows the token asks to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The cluster itself, as kubeadm sets it up: whoever has the token becomes a node of any name.
    Automatic,
    /// Somebody who knows which machines there are. What kubeadm set up is taken away.
    Elsewhere,
}

/// Who makes control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupDriver {
    /// systemd, as on Fedora CoreOS.
    Systemd,
    /// containerd and the kubelet themselves.
    Cgroupfs,
}

/// Fields that replace those of the configurations made here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Of `KubeletConfiguration`.
    pub kubelet: Map<String, Value>,
    /// Of `KubeProxyConfiguration`.
    pub kube_proxy: Map<String, Value>,
    /// Arguments of kube-apiserver.
    pub api_server: BTreeMap<String, String>,
    /// Arguments of kube-controller-manager.
    pub controller_manager: BTreeMap<String, String>,
    /// Arguments of kube-scheduler.
    pub scheduler: BTreeMap<String, String>,
    /// Arguments of kubelets; those of one machine alone, where they are given for its config alone.
    pub kubelet_arguments: BTreeMap<String, String>,
}

/// Why settings do not make a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// etcd wants an odd number, and more than five are slower and no safer.
    #[error("{count} control-plane machines: there may be 1, 3 or 5")]
    ControlPlaneCount {
        /// How many there are.
        count: usize,
    },
    /// Two machines share a name or an address.
    #[error("two control-plane machines are called {what}")]
    Duplicate {
        /// The name or address.
        what: String,
    },
    /// Ranges that have to be apart are not.
    #[error("{one} and {other} overlap")]
    Overlap {
        /// One.
        one: String,
        /// The other.
        other: String,
    },
    /// Too few addresses.
    #[error("{range} is too small for {what}: {most} bits of prefix at most")]
    TooSmall {
        /// The range.
        range: Cidr,
        /// For what.
        what: &'static str,
        /// The longest prefix that will do.
        most: u8,
    },
    /// A kubelet may not give itself this label.
    #[error("a machine cannot give itself the label `{key}`: {why}")]
    Label {
        /// The label.
        key: String,
        /// Why.
        why: &'static str,
    },
    /// A text that goes into a unit or a configuration holds what it must not.
    #[error("{field} is `{value}`: {why}")]
    Text {
        /// The setting.
        field: &'static str,
        /// Its value.
        value: String,
        /// Why not.
        why: &'static str,
    },
}

impl Cluster {
    /// Whether these settings go together.
    pub fn check(&self) -> Result<(), SettingsError> {
        let count = self.control_plane.len();
        if !matches!(count, 1 | 3 | 5) {
            return Err(SettingsError::ControlPlaneCount { count });
        }
        let mut seen = HashSet::new();
        for machine in &self.control_plane {
            for what in [machine.name.to_string(), machine.address.to_string()] {
                if !seen.insert(what.clone()) {
                    return Err(SettingsError::Duplicate { what });
                }
            }
            self.check_address(machine.address)?;
        }
        if self.pods.overlaps(&self.services) {
            return Err(overlap(&self.pods, &self.services));
        }
        // The controller manager hands out /24 (or /64), and a part of it to each machine.
        at_most(self.pods, "pods", 22, 60)?;
        at_most(self.services, "services", 24, 112)?;
        plain("endpoint.host", &self.endpoint.host)?;
        plain("domain", &self.domain)?;
        plain("source.images.repository", &self.source.images.repository)?;
        self.also_known_as.iter().try_for_each(|name| plain("also_known_as", name))
    }

    /// Whether a machine may have this address.
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), SettingsError> {
        let inside = [self.pods, self.services].into_iter().find(|range| range.contains(address));
        inside.map_or(Ok(()), |range| Err(overlap(&range, &address)))
    }

    /// Name and address of each member of etcd, as etcd takes them.
    pub(crate) fn etcd_members(&self) -> String {
        let member = |it: &Machine| format!("{}=https://{}:2380", it.name, in_url(it.address));
        self.control_plane.iter().map(member).collect::<Vec<_>>().join(",")
    }
}

impl Worker {
    /// Whether its node may have these labels. kubernetes, plugin/pkg/admission/noderestriction: a kubelet may set few labels of
    /// Kubernetes' own.
    pub fn check(&self) -> Result<(), SettingsError> {
        const OWN: [&str; 2] = ["kubernetes.io", "k8s.io"];
        for (key, value) in &self.labels {
            let refuse = |why| Err(SettingsError::Label { key: key.clone(), why });
            let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
            let own = OWN.iter().any(|it| prefix == *it || prefix.ends_with(&format!(".{it}")));
            let allowed = ["node.kubernetes.io", "kubelet.kubernetes.io"];
            if own && !allowed.iter().any(|it| prefix == *it || prefix.ends_with(&format!(".{it}")))
            {
                return refuse(
                    "of Kubernetes' own prefixes only node.kubernetes.io is left to machines",
                );
            }
            let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let name = key.rsplit('/').next().unwrap_or_default();
            let legal_prefix = prefix.chars().all(|c| legal(c) && !c.is_ascii_uppercase());
            if name.is_empty()
                || name.len() > 63
                || !name.chars().all(legal)
                || !legal_prefix
                || prefix.len() > 253
            {
                return refuse(
                    "a key is an optional domain and `/`, then 1 to 63 letters, digits, `-`, `_` and `.`",
                );
            }
            if value.len() > 63 || !value.chars().all(legal) {
                return refuse("a value is at most 63 letters, digits, `-`, `_` and `.`");
            }
        }
        Ok(())
    }
}

impl Endpoint {
    /// `host:port`.
    pub fn authority(&self) -> String {
        match self.host.parse() {
            Ok(address) => format!("{}:{}", in_url(address), self.port),
            Err(_) => format!("{}:{}", self.host, self.port),
        }
    }
}

impl TaintEffect {
    /// As Kubernetes calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            TaintEffect::NoSchedule => "NoSchedule",
            TaintEffect::PreferNoSchedule => "PreferNoSchedule",
            TaintEffect::NoExecute => "NoExecute",
        }
    }
}

fn in_url(address: IpAddr) -> String {
    match address {
        IpAddr::V4(it) => it.to_string(),
        IpAddr::V6(it) => format!("[{it}]"),
    }
}

fn overlap(one: &impl fmt::Display, other: &impl fmt::Display) -> SettingsError {
    SettingsError::Overlap { one: one.to_string(), other: other.to_string() }
}

fn at_most(range: Cidr, what: &'static str, four: u8, six: u8) -> Result<(), SettingsError> {
    let most = if range.to_string().contains(':') { six } else { four };
    if range.prefix() > most { Err(SettingsError::TooSmall { range, what, most }) } else { Ok(()) }
}

fn plain(field: &'static str, value: &str) -> Result<(), SettingsError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:/*".contains(c);
    if value.is_empty() || !value.chars().all(legal) {
        let why = "letters, digits and -._:/* only";
        return Err(SettingsError::Text { field, value: value.to_owned(), why });
    }
    Ok(())
}
