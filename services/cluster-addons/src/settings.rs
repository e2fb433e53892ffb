//! What add-ons a cluster is to have, and how.

use std::collections::BTreeSet;

use cluster_core::{Algorithm, Cidr, KubernetesVersion, NetworkDriver, Provider};
use secrecy::SecretString;

use crate::{GpuVendor, ImageSource};

/// A cluster, as far as its add-ons have to know it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the cloud knows it by: load balancers and volumes that are made for it carry it. Mostly its id.
    pub cluster: String,
    /// Which Kubernetes: it decides which version of an add-on fits.
    pub kubernetes: KubernetesVersion,
    /// Where images come from.
    pub images: ImageSource,
    /// The range that pods' addresses are of.
    pub pods: Cidr,
    /// What pods' packets travel by; none, where machines have routes to each other's pods.
    pub network: Option<NetworkDriver>,
    /// The cloud, for those that speak with it.
    pub cloud: Option<Cloud>,
    /// Whether the cloud controller manager runs: it tells nodes their addresses, and makes load balancers.
    pub cloud_controller: Option<LoadBalancing>,
    /// Whether volumes of Cinder's can be had.
    pub volumes: Option<Volumes>,
    /// Whose GPUs pods can have.
    pub gpus: BTreeSet<GpuVendor>,
    /// Whether metrics-server runs, and whom it trusts.
    pub metrics: Option<KubeletCertificates>,
}

/// The cloud a cluster is in, and as whom the cluster speaks with it.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// Keystone's address: `https://…/v3`.
    pub auth_url: String,
    /// The region.
    pub region: String,
    /// The cluster's own application credential.
    pub credential: Credential,
    /// Authorities that sign the cloud's certificates, as PEM; those of the images, where there are none.
    pub authorities: Option<String>,
}

/// An application credential. Its secret is not printed.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Counts the credentials that the cluster has had.
    pub generation: u32,
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: SecretString,
}

/// How load balancers for Services are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancing {
    /// The network that floating addresses come from, by id; load balancers are reached from inside only, where there is none.
    pub floating_network: Option<String>,
    /// The subnet that load balancers and their members are on, by id; that of nodes, where none is said.
    pub subnet: Option<String>,
    /// Who makes them; whom the cloud prefers, where none is said.
    pub provider: Option<Provider>,
    /// How they choose a node.
    pub algorithm: Algorithm,
}

/// How volumes are had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volumes {
    /// The kinds that can be asked for; one is the default at most.
    pub classes: Vec<StorageClass>,
    /// Whether volumes can be attached to machines of other zones.
    pub ignore_zones: bool,
    /// Whether the sidecar for snapshots runs. The definitions of snapshots, and their controller, are not installed here: without them it
    /// does not start.
    pub snapshots: bool,
}

/// A kind of volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageClass {
    /// What pods ask for it by.
    pub name: String,
    /// Cinder's volume type; the cloud's default, where there is none.
    pub volume_type: Option<String>,
    /// Whether it is what claims get that name none.
    pub is_default: bool,
}

/// How metrics-server knows kubelets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeletCertificates {
    /// Kubelets sign their own certificates, as kubeadm leaves it: they are not verified.
    SelfSigned,
    /// The cluster's authority signs them (`serverTLSBootstrap`).
    Signed,
}

/// Why settings make no add-ons.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddOnError {
    /// Nobody wrote Calico's documents.
    #[error(
        "network_driver: calico is not installed by clusterd; choose flannel, or the label pod_network=routes"
    )]
    Calico,
    /// An `APIService` cannot be applied: kubernetes 89264, corrected in 1.21.
    #[error(
        "metrics_server_enabled: Kubernetes {kubernetes} cannot have it applied; choose v1.21 or later, or remove the label"
    )]
    MetricsTooEarly {
        /// The cluster's version.
        kubernetes: KubernetesVersion,
    },
    /// What speaks with the cloud has to be somebody there.
    #[error("{add_on} speaks with the cloud, and the cluster has no credential for that")]
    NoCloud {
        /// Which one.
        add_on: &'static str,
    },
    /// A text holds what it must not.
    #[error("{field}: {why}")]
    Text {
        /// The setting.
        field: &'static str,
        /// What it may hold. The value is not repeated, for it may be secret.
        why: &'static str,
    },
}

impl Settings {
    /// Whether these settings go together.
    pub(crate) fn check(&self) -> Result<(), AddOnError> {
        plain("cluster", &self.cluster)?;
        self.images.check()?;
        if self.network == Some(NetworkDriver::Calico) {
            return Err(AddOnError::Calico);
        }
        if self.metrics.is_some() && self.kubernetes.minor < 21 {
            return Err(AddOnError::MetricsTooEarly { kubernetes: self.kubernetes });
        }
        if let Some(cloud) = &self.cloud {
            if !["https://", "http://"].iter().any(|it| cloud.auth_url.starts_with(it)) {
                return Err(text("cloud.auth_url", "it begins with https:// or http://"));
            }
            plain("cloud.auth_url", &cloud.auth_url)?;
            plain("cloud.region", &cloud.region)?;
            plain("cloud.credential.id", &cloud.credential.id)?;
        }
        if let Some(balancing) = &self.cloud_controller {
            let ids = [&balancing.floating_network, &balancing.subnet];
            ids.into_iter().flatten().try_for_each(|id| plain("cloud_controller", id))?;
            balancing.provider.iter().try_for_each(|it| plain("cloud_controller", it.as_str()))?;
        }
        self.volumes.iter().flat_map(|it| &it.classes).try_for_each(StorageClass::check)
    }
}

impl StorageClass {
    // kubernetes, apimachinery/pkg/util/validation: IsDNS1123Subdomain
    fn check(&self) -> Result<(), AddOnError> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let (first, last) = (self.name.chars().next(), self.name.chars().next_back());
        if self.name.len() > 253 || !self.name.chars().all(legal) || !ends(first) || !ends(last) {
            return Err(text("volumes.classes.name", "small letters, digits, `-` and `.` only"));
        }
        self.volume_type.iter().try_for_each(|it| match it.chars().any(char::is_control) {
            true => Err(text("volumes.classes.volume_type", "it is one line")),
            false => Ok(()),
        })
    }
}

pub(crate) fn text(field: &'static str, why: &'static str) -> AddOnError {
    AddOnError::Text { field, why }
}

/// What becomes part of an argument, an image's name or a line of `cloud.conf`.
fn plain(field: &'static str, value: &str) -> Result<(), AddOnError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:/[]".contains(c);
    match value.is_empty() || !value.chars().all(legal) {
        true => Err(text(field, "letters, digits and -._:/ only")),
        false => Ok(()),
    }
}
