//! Settings: which add-ons a cluster gets, and how each is configured.

use std::collections::BTreeSet;

use cluster_core::{Algorithm, Cidr, KubernetesVersion, NetworkDriver, Provider};
use secrecy::SecretString;

use crate::error::text;
use crate::{AddOnError, GpuVendor, ImageSource};

/// The properties of a cluster that decide its add-ons.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cluster's name in the cloud, usually its id: the load balancers and volumes that add-ons create carry this name.
    pub cluster: String,
    /// Decides the version of each add-on.
    pub kubernetes: KubernetesVersion,
    pub images: ImageSource,
    /// The address range of pods.
    pub pods: Cidr,
    /// The driver of the pod network; `None` if each member has routes to the pods of all others (`pod_network=routes`).
    pub network: Option<NetworkDriver>,
    /// Needed by add-ons that call the cloud.
    pub cloud: Option<Cloud>,
    /// The settings of the cloud controller manager; `None` turns the manager off.
    pub cloud_controller: Option<LoadBalancing>,
    /// The settings of Cinder's CSI driver; `None` turns the driver off.
    pub volumes: Option<Volumes>,
    /// The vendors whose device plugins are installed.
    pub gpus: BTreeSet<GpuVendor>,
    /// The way in which metrics-server verifies kubelets; `None` turns metrics-server off.
    pub metrics: Option<KubeletCertificates>,
}

/// The cloud of a cluster, and the credential with which the cluster calls the cloud.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// Keystone's address: `https://…/v3`.
    pub auth_url: String,
    pub region: String,
    /// The cluster's own application credential.
    pub credential: Credential,
    /// The certificate authorities of the cloud's endpoints, as PEM; `None` means the CAs in the container images.
    pub authorities: Option<String>,
}

/// An application credential. `Debug` does not print its secret.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The number of this credential among the credentials that the cluster has had.
    pub generation: u32,
    pub id: String,
    pub secret: SecretString,
}

/// How load balancers for Services are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancing {
    /// The id of the network of floating IPs. With `None` load balancers have internal addresses only.
    pub floating_network: Option<String>,
    /// The id of the subnet of load balancers and their members; `None` means the subnet of the nodes.
    pub subnet: Option<String>,
    /// Octavia's provider; `None` means the cloud's default provider.
    pub provider: Option<Provider>,
    /// How a load balancer chooses a node.
    pub algorithm: Algorithm,
}

/// How volumes are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volumes {
    /// The StorageClasses of the cluster. At most one is the default.
    pub classes: Vec<StorageClass>,
    /// Whether a volume may be attached to a server of another availability zone.
    pub ignore_zones: bool,
    /// Whether the snapshot sidecar runs. The sidecar does not start without the snapshot CRDs and their controller, which are not
    /// installed here.
    pub snapshots: bool,
}

/// A kind of volumes that claims can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageClass {
    /// The name that claims use.
    pub name: String,
    /// Cinder's volume type; `None` means the cloud's default type.
    pub volume_type: Option<String>,
    /// Whether claims that name no class get this class.
    pub is_default: bool,
}

/// How metrics-server verifies the certificates of kubelets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeletCertificates {
    /// Kubelets sign their own certificates, kubeadm's default. metrics-server does not verify them.
    SelfSigned,
    /// The cluster's certificate authority signs the certificates (`serverTLSBootstrap`).
    Signed,
}

impl Settings {
    /// Refuses settings that contradict each other or contain text that is not permitted.
    pub(crate) fn check(&self) -> Result<(), AddOnError> {
        check_argument_text("cluster", &self.cluster)?;
        self.images.check()?;
        if self.network == Some(NetworkDriver::Calico) {
            return Err(AddOnError::Calico);
        }
        if self.metrics.is_some() && self.kubernetes.minor < 21 {
            return Err(AddOnError::MetricsTooEarly { kubernetes: self.kubernetes });
        }
        if let Some(cloud) = &self.cloud {
            if !["https://", "http://"].iter().any(|it| cloud.auth_url.starts_with(it)) {
                return Err(text("cloud.auth_url", "must begin with https:// or http://"));
            }
            check_argument_text("cloud.auth_url", &cloud.auth_url)?;
            check_argument_text("cloud.region", &cloud.region)?;
            check_argument_text("cloud.credential.id", &cloud.credential.id)?;
        }
        if let Some(balancing) = &self.cloud_controller {
            let ids = [&balancing.floating_network, &balancing.subnet];
            ids.into_iter()
                .flatten()
                .try_for_each(|id| check_argument_text("cloud_controller", id))?;
            balancing
                .provider
                .iter()
                .try_for_each(|it| check_argument_text("cloud_controller", it.as_str()))?;
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
            return Err(text(
                "volumes.classes.name",
                "only lower-case letters, digits, `-` and `.` are permitted",
            ));
        }
        self.volume_type.iter().try_for_each(|it| match it.chars().any(char::is_control) {
            true => Err(text(
                "volumes.classes.volume_type",
                "must be one line without control characters",
            )),
            false => Ok(()),
        })
    }
}

/// Checks a text that becomes part of an argument, of an image's name or of a line of `cloud.conf`.
fn check_argument_text(field: &'static str, value: &str) -> Result<(), AddOnError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:/[]".contains(c);
    match value.is_empty() || !value.chars().all(legal) {
        true => Err(text(field, "only letters, digits and -._:/[] are permitted")),
        false => Ok(()),
    }
}
