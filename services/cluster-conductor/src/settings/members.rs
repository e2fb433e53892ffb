//! The administrator's settings for the members of all clusters.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_addons::ImageSource;
use cluster_bootstrap::{Approval, CgroupDriver, ClusterDns, Overrides, Source};
use cluster_core::KubernetesVersion;
use url::Url;

/// The settings for the members of all clusters.
#[derive(Clone, Debug, Default)]
pub struct MachineSettings {
    pub kubernetes: KubernetesSettings,
    /// The listener for claims; `None`: clusters need the label `user_data_delivery=inline`.
    pub nodes: Option<NodesListener>,
}

/// The settings of the bootstrap to Kubernetes nodes.
#[derive(Clone, Debug)]
pub struct KubernetesSettings {
    /// The sources of programs and images, by version.
    pub versions: BTreeMap<KubernetesVersion, Source>,
    /// The DNS server within clusters.
    pub dns: ClusterDns,
    /// The driver of control groups.
    pub cgroups: CgroupDriver,
    /// The component that approves the certificates of joining nodes.
    pub approval: Approval,
    /// Changes of kubeadm's configurations.
    pub overrides: Overrides,
    /// The registry of add-on images.
    pub images: ImageSource,
}

impl Default for KubernetesSettings {
    fn default() -> Self {
        KubernetesSettings {
            versions: BTreeMap::new(),
            dns: ClusterDns::CoreDns,
            cgroups: CgroupDriver::Systemd,
            approval: Approval::External,
            overrides: Overrides::default(),
            images: ImageSource::default(),
        }
    }
}

/// The listener where servers fetch their configs and send reports.
#[derive(Clone, Debug)]
pub struct NodesListener {
    /// The URL at which servers reach the listener: HTTPS, with a final slash.
    pub url: Url,
    /// The CA certificate of the listener's certificate, in PEM.
    pub authority: String,
    /// The addresses from which claims may be redeemed.
    pub source: SourceAddress,
    /// How long a claim is valid.
    pub claim_lasts: Duration,
}

/// The addresses from which a claim may be redeemed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceAddress {
    /// The addresses of the server itself, or of its router.
    Machine,
    /// Any address, for networks that translate addresses on the way.
    Any,
}
