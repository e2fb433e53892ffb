//! Why the config of a member cannot be made.

use cluster_bootstrap::{BootstrapError, InvalidName, InvalidVersion};
use cluster_core::{Key, KubernetesVersion, LabelsError, MemberName};
use cluster_store::StoreError;
use ignition::{DocumentError, TooLong};
use sealing::SealError;

use crate::causes::chain;
use crate::cluster_secrets::KeysError;

/// A result whose error is a [`MemberConfigError`], unless it says otherwise.
pub(crate) type Result<T, E = MemberConfigError> = std::result::Result<T, E>;

/// Why the config of a member cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MemberConfigError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error("cannot seal or unseal the cluster's bootstrap token: {0}")]
    Seal(#[from] SealError),
    #[error("cannot read {what}: {source}")]
    Kept {
        /// The name of the document, as it reads in the message.
        what: &'static str,
        source: serde_json::Error,
    },
    /// The node group's own config was accepted once and is invalid by today's rules.
    #[error("the node group's own Ignition config is not valid: {0}")]
    OwnConfig(DocumentError),
    #[error("the address of {0} is not known yet")]
    Waits(Key),
    #[error("the cluster has no member {0}")]
    NoMachine(MemberName),
    #[error(
        "clusterd has no source for the programs of Kubernetes {version}: configured are {known}"
    )]
    NoVersion {
        version: KubernetesVersion,
        /// The configured versions.
        known: String,
    },
    #[error("{field}: {why}")]
    Field { field: &'static str, why: String },
    /// A label in the cluster's record is no longer understood.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    #[error(
        "members of this cluster fetch their configs from clusterd, which has no listener for them"
    )]
    NoListener,
    #[error(transparent)]
    TooLong(TooLong),
    #[error(transparent)]
    Name(#[from] InvalidName),
    #[error(transparent)]
    Version(#[from] InvalidVersion),
    /// Settings from which no config can be made.
    #[error("{}", chain(.0))]
    Bootstrap(#[from] BootstrapError),
}

impl MemberConfigError {
    /// Whether a retry soon is likely to succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, MemberConfigError::Store(_) | MemberConfigError::Waits(_))
    }

    /// Returns the reason (one word) and the advice.
    pub(crate) fn reason(&self) -> (&'static str, &'static str) {
        match self {
            MemberConfigError::Store(_) => ("StoreFailed", "check clusterd's database"),
            MemberConfigError::Keys(_)
            | MemberConfigError::Seal(_)
            | MemberConfigError::Kept { .. } => (
                "KeysFailed",
                "restore the file seal.keys that clusterd had when the cluster was created",
            ),
            MemberConfigError::Waits(_) => ("Waiting", ""),
            MemberConfigError::NoMachine(_) => ("NoSuchMachine", ""),
            MemberConfigError::NoVersion { .. } => (
                "NoSuchVersion",
                "add that version to [kubernetes.versions] in clusterd's configuration, or delete the cluster and \
                 create one whose label kube_tag names another",
            ),
            MemberConfigError::Labels(_) => {
                ("LabelRefused", "delete the cluster and create one without that label")
            }
            MemberConfigError::NoListener => (
                "NoNodesListener",
                "add [nodes] to clusterd's configuration, or create a cluster with the label user_data_delivery=inline",
            ),
            MemberConfigError::TooLong(_) => (
                "UserDataTooLong",
                "delete the cluster and create one with the label user_data_delivery=claim",
            ),
            MemberConfigError::OwnConfig(_) => {
                ("OwnConfigRefused", "set another Ignition config for the node group, or remove it")
            }
            MemberConfigError::Field { .. }
            | MemberConfigError::Name(_)
            | MemberConfigError::Version(_)
            | MemberConfigError::Bootstrap(_) => {
                ("SettingsRefused", "delete the cluster and create one with other settings")
            }
        }
    }
}
