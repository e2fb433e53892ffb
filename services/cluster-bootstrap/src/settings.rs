//! The settings of a cluster that its members' configs depend on.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::net::IpAddr;

use ignition::Config;
use ipnet::IpNet;
use serde_json::{Map, Value};

use crate::{BootstrapToken, KubernetesVersion, Name, Pki, Source};

/// The properties of a cluster that its members have to know.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The name of the cluster in kubeconfigs, and etcd's cluster token.
    pub name: Name,
    pub version: KubernetesVersion,
    /// The address range of pods. Each member gets a part of this range.
    pub pods: IpNet,
    /// The address range of Services.
    pub services: IpNet,
    /// The DNS domain inside the cluster, such as `cluster.local`.
    pub domain: String,
    /// The address of the cluster's API for members and users: the load balancer.
    pub endpoint: Endpoint,
    /// Other names and addresses of the API, which are added to its certificates.
    pub also_known_as: Vec<String>,
    /// 1, 3 or 5 members that found the cluster; the first of them also runs the steps that a cluster needs once. For a member that joins,
    /// the members that should exist.
    pub control_plane: Vec<Member>,
    pub pod_network: PodNetwork,
    pub dns: ClusterDns,
    /// The source of programs and images.
    pub source: Source,
    /// The bootstrap token with which workers join.
    pub token: BootstrapToken,
    /// The lifetime of the token in hours, counted from the start of the first member; 0 means no end.
    pub token_hours: u32,
    pub pki: Pki,
    /// The cgroup driver that containerd and systemd of the image use: `Systemd` on Fedora CoreOS.
    pub cgroups: CgroupDriver,
    pub approval: Approval,
    /// Whether a cloud controller manager will set the addresses and zones of Kubernetes nodes.
    pub external_cloud_provider: bool,
    pub overrides: Overrides,
    /// Merged into each member's config last: users, keys, more units.
    pub extra: Option<Config>,
}

/// The address of the cluster's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A host name or an IP address.
    pub host: String,
    /// Usually 6443. The API servers of control-plane members listen on this port too.
    pub port: u16,
}

/// A member, whose name and address are known before its server exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The host name, which is also the name of the Kubernetes node.
    pub name: Name,
    /// The address in the cluster's network.
    pub address: IpAddr,
}

/// A member that runs pods and no control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub machine: Member,
    /// Labels of the Kubernetes node.
    pub labels: BTreeMap<String, String>,
    /// Taints that the Kubernetes node registers with.
    pub taints: Vec<Taint>,
}

/// A taint of a Kubernetes node: keeps away pods that do not tolerate the taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    pub key: String,
    /// May be empty.
    pub value: String,
    pub effect: TaintEffect,
}

/// The effect of a taint on pods that do not tolerate the taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaintEffect {
    /// The scheduler does not place pods on the node.
    NoSchedule,
    /// The scheduler avoids the node if another node fits.
    PreferNoSchedule,
    /// The scheduler does not place pods on the node, and running pods are evicted.
    NoExecute,
}

/// The network that carries packets between pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodNetwork {
    /// A bridge on each member, and on each member a route to the pods of every other member. Needs no images, but one network for all
    /// members that accepts packets with pod addresses (in Neutron: allowed address pairs).
    HostRoutes,
    /// An add-on that is applied once the API answers. Kubernetes nodes are not ready before.
    AddOn,
}

/// The DNS server inside the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterDns {
    /// kubeadm's CoreDNS.
    CoreDns,
    /// No DNS server, or one that is applied later.
    Absent,
}

/// The approval of certificate requests from members that join with the bootstrap token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The cluster approves by itself, as kubeadm sets it up. Every holder of the token can become a node of any name.
    Automatic,
    /// A service outside of the cluster that knows the cluster's members. kubeadm's automatic approval is removed.
    External,
}

/// The program that creates control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupDriver {
    /// systemd, as on Fedora CoreOS.
    Systemd,
    /// containerd and the kubelet.
    Cgroupfs,
}

/// Fields and arguments that replace the values of this crate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Fields of `KubeletConfiguration`.
    pub kubelet: Map<String, Value>,
    /// Fields of `KubeProxyConfiguration`.
    pub kube_proxy: Map<String, Value>,
    pub api_server: BTreeMap<String, String>,
    pub controller_manager: BTreeMap<String, String>,
    pub scheduler: BTreeMap<String, String>,
    /// For arguments of one member only, the caller sets this field while making the config of that member.
    pub kubelet_arguments: BTreeMap<String, String>,
}

/// Why the settings of a cluster are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// etcd needs an odd number of members, and more than five members are slower and no safer.
    #[error("a control plane cannot have {count} members: choose 1, 3 or 5")]
    ControlPlaneCount { count: usize },
    #[error("two control-plane members have the same name or address: {what}")]
    Duplicate {
        /// The name or address.
        what: String,
    },
    /// Two ranges overlap, or a member's address is inside of a range for pods or Services.
    #[error("{one} and {other} overlap")]
    Overlap { one: String, other: String },
    /// The text of the range is not the one that Kubernetes' programs write.
    #[error("{range} does not start with the first address of the range: write {}", range.trunc())]
    NotFirst { range: IpNet },
    #[error("{range} is too small for {what}: choose a prefix of at most {most} bits")]
    TooSmall {
        range: IpNet,
        /// The use of the range, such as `pods`.
        what: &'static str,
        /// The longest permitted prefix.
        most: u8,
    },
    /// A kubelet is not permitted to set this label on its own node.
    #[error("a kubelet cannot set the label `{key}` on its own node: {why}")]
    Label { key: String, why: &'static str },
    /// A text that becomes part of a unit or a configuration contains a character that is not permitted.
    #[error("{field} is `{value}`: {why}")]
    Text { field: &'static str, value: String, why: &'static str },
}

impl ClusterSettings {
    /// Checks that the settings fit together.
    pub fn check(&self) -> Result<(), SettingsError> {
        let count = self.control_plane.len();
        if !matches!(count, 1 | 3 | 5) {
            return Err(SettingsError::ControlPlaneCount { count });
        }
        self.check_joining()
    }

    /// As [`ClusterSettings::check`], for a member that joins. The control plane may have any number of members: during an upgrade each new
    /// member joins before an old member is removed.
    pub(crate) fn check_joining(&self) -> Result<(), SettingsError> {
        let mut seen = HashSet::new();
        for machine in &self.control_plane {
            for what in [machine.name.to_string(), machine.address.to_string()] {
                if !seen.insert(what.clone()) {
                    return Err(SettingsError::Duplicate { what });
                }
            }
            self.check_address(machine.address)?;
        }
        if self.pods.contains(&self.services) || self.services.contains(&self.pods) {
            return Err(overlap(&self.pods, &self.services));
        }
        // The controller manager gives each node a /24 (IPv6: a /64) of the pod range.
        check_prefix(self.pods, "pods", 22, 60)?;
        check_prefix(self.services, "services", 24, 112)?;
        check_text("endpoint.host", &self.endpoint.host)?;
        check_text("domain", &self.domain)?;
        check_text("source.images.repository", &self.source.images.repository)?;
        self.also_known_as.iter().try_for_each(|name| check_text("also_known_as", name))
    }

    /// Checks that `address` is outside of the ranges of pods and Services.
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), SettingsError> {
        let inside = [self.pods, self.services].into_iter().find(|range| range.contains(&address));
        inside.map_or(Ok(()), |range| Err(overlap(&range, &address)))
    }

    /// The name and peer URL of each first etcd member, in the form of etcd's argument `initial-cluster`.
    pub(crate) fn etcd_members(&self) -> String {
        let member = |it: &Member| format!("{}=https://{}:2380", it.name, in_url(it.address));
        self.control_plane.iter().map(member).collect::<Vec<_>>().join(",")
    }
}

impl Worker {
    /// Checks the labels of the worker. kubernetes, plugin/pkg/admission/noderestriction: a kubelet may set few labels with Kubernetes' own
    /// prefixes.
    pub fn check(&self) -> Result<(), SettingsError> {
        const OWN: [&str; 2] = ["kubernetes.io", "k8s.io"];
        for (key, value) in &self.labels {
            let refuse = |why| Err(SettingsError::Label { key: key.clone(), why });
            let (prefix, name) = match key.split_once('/') {
                Some((prefix, name)) => (prefix, name),
                None => ("", key.as_str()),
            };
            let own = OWN.iter().any(|it| prefix == *it || prefix.ends_with(&format!(".{it}")));
            let allowed = ["node.kubernetes.io", "kubelet.kubernetes.io"];
            if own && !allowed.iter().any(|it| prefix == *it || prefix.ends_with(&format!(".{it}")))
            {
                return refuse(
                    "of Kubernetes' own prefixes a kubelet may use only node.kubernetes.io and kubelet.kubernetes.io",
                );
            }
            let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let legal_prefix = prefix.chars().all(|c| legal(c) && !c.is_ascii_uppercase());
            if name.is_empty()
                || name.len() > 63
                || !name.chars().all(legal)
                || !legal_prefix
                || prefix.len() > 253
                || key.starts_with('/')
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
    /// Returns `host:port`, with brackets around an IPv6 address.
    pub fn authority(&self) -> String {
        match self.host.parse() {
            Ok(address) => format!("{}:{}", in_url(address), self.port),
            Err(_) => format!("{}:{}", self.host, self.port),
        }
    }
}

impl TaintEffect {
    /// Returns Kubernetes' name of the effect.
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

fn check_prefix(range: IpNet, what: &'static str, four: u8, six: u8) -> Result<(), SettingsError> {
    let most = if range.addr().is_ipv6() { six } else { four };
    match () {
        () if range.trunc() != range => Err(SettingsError::NotFirst { range }),
        () if range.prefix_len() > most => Err(SettingsError::TooSmall { range, what, most }),
        () => Ok(()),
    }
}

fn check_text(field: &'static str, value: &str) -> Result<(), SettingsError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:/*".contains(c);
    if value.is_empty() || !value.chars().all(legal) {
        let why = "only letters, digits and -._:/* are permitted";
        return Err(SettingsError::Text { field, value: value.to_owned(), why });
    }
    Ok(())
}
