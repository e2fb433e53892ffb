//! Why add-ons cannot be made from settings.

use cluster_core::KubernetesVersion;

/// Why add-ons cannot be made from settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddOnError {
    /// This crate has no documents for Calico.
    #[error(
        "network_driver: clusterd does not install calico; choose flannel, or set the label pod_network=routes"
    )]
    Calico,
    /// An `APIService` cannot be applied before Kubernetes 1.21, which corrected kubernetes issue 89264.
    #[error(
        "metrics_server_enabled: clusterd cannot install metrics-server on Kubernetes {kubernetes}; choose v1.21 or \
         later, or remove the label"
    )]
    MetricsTooEarly { kubernetes: KubernetesVersion },
    /// An add-on calls the cloud, and the settings contain no cloud.
    #[error("cannot install {add_on}: the cluster has no cloud credential yet")]
    NoCloud { add_on: &'static str },
    /// A text contains characters that are not permitted.
    #[error("{field}: {why}")]
    InvalidText {
        field: &'static str,
        /// The permitted characters. The message does not repeat the value, because the value may be secret.
        why: &'static str,
    },
}

pub(crate) fn text(field: &'static str, why: &'static str) -> AddOnError {
    AddOnError::InvalidText { field, why }
}
