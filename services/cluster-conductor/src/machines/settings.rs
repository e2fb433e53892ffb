//! What the machines of all clusters have in common, as an administrator chose it.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_addons::ImageSource;
use cluster_bootstrap::{Approval, CgroupDriver, ClusterDns, Overrides, Source};
use cluster_core::KubernetesVersion;
use url::Url;

/// What the machines of all clusters have in common.
#[derive(Clone, Debug, Default)]
pub struct MachineSettings {
    /// What makes them Kubernetes nodes.
    pub kubernetes: KubernetesSettings,
    /// Where they fetch their configs; without it, clusters have theirs in their user data or not at all.
    pub nodes: Option<NodesListener>,
}

/// What makes machines Kubernetes nodes.
#[derive(Clone, Debug)]
pub struct KubernetesSettings {
    /// Where programs and images of each version come from.
    pub versions: BTreeMap<KubernetesVersion, Source>,
    /// Who answers names within clusters.
    pub dns: ClusterDns,
    /// Who makes control groups.
    pub cgroups: CgroupDriver,
    /// Who lets machines in that show the token.
    pub approval: Approval,
    /// What is to differ from kubeadm's configurations.
    pub overrides: Overrides,
    /// Where the images of add-ons come from.
    pub images: ImageSource,
}

impl Default for KubernetesSettings {
    fn default() -> Self {
        KubernetesSettings {
            versions: BTreeMap::new(),
            dns: ClusterDns::CoreDns,
            cgroups: CgroupDriver::Systemd,
            approval: Approval::Elsewhere,
            overrides: Overrides::default(),
            images: ImageSource::default(),
        }
    }
}

/// Where machines fetch their configs and report.
#[derive(Clone, Debug)]
pub struct NodesListener {
    /// As machines reach it: HTTPS, ending with a slash.
    pub url: Url,
    /// The authority that its certificate is of, as PEM.
    pub authority: String,
    /// From where claims may be redeemed.
    pub source: SourceAddress,
    /// How long a claim is good.
    pub claim_lasts: Duration,
}

/// From where a machine's claim may be redeemed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceAddress {
    /// From the machine's own addresses, or its router's.
    Machine,
    /// From anywhere: where addresses are translated on the way.
    Any,
}
