//! Why the config of a member cannot be made.

use cluster_bootstrap::{BootstrapError, InvalidName, InvalidVersion};
use cluster_core::{Key, KubernetesVersion, LabelsError, MachineRef};
use cluster_store::StoreError;
use ignition::{DocumentError, TooLong};
use sealing::SealError;

use crate::handle::KeysError;

/// Why the config of a member cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MachinesError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error("what the cluster's machines join by cannot be sealed or opened: {0}")]
    Seal(#[from] SealError),
    /// A stored document cannot be read.
    #[error("{what} cannot be read: {source}")]
    Kept {
        /// The name of the document, as it reads in the message.
        what: &'static str,
        source: serde_json::Error,
    },
    /// The node group's own config was accepted once and is invalid by today's rules.
    #[error("the node group's own config: {0}")]
    OwnConfig(DocumentError),
    /// An address must be known first.
    #[error("the address of {0} is not known yet")]
    Waits(Key),
    /// The cluster no longer has this member.
    #[error("the cluster has no machine {0}")]
    NoMachine(MachineRef),
    /// The administrator configured no source for this version.
    #[error("this clusterd has no programs of Kubernetes {version}: it has {known}")]
    NoVersion {
        version: KubernetesVersion,
        /// The configured versions.
        known: String,
    },
    /// A setting of the cluster cannot be used.
    #[error("{field}: {why}")]
    Field { field: &'static str, why: String },
    /// A label in the cluster's record is no longer understood.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// Claims are needed, but clusterd has no listener for them.
    #[error(
        "machines of this cluster are to fetch their configs, and this clusterd does not listen for them"
    )]
    NoListener,
    /// The config is larger than user-data may be.
    #[error(transparent)]
    TooLong(TooLong),
    /// A name that the bootstrap refuses.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A version that the bootstrap refuses.
    #[error(transparent)]
    Version(#[from] InvalidVersion),
    /// Settings from which no config can be made.
    #[error("{}", chain(.0))]
    Bootstrap(#[from] BootstrapError),
}

impl MachinesError {
    /// Whether a retry soon is likely to succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, MachinesError::Store(_) | MachinesError::Waits(_))
    }

    /// Returns the reason (one word) and the advice.
    pub(crate) fn reason(&self) -> (&'static str, &'static str) {
        match self {
            MachinesError::Store(_) => ("StoreFailed", "look at clusterd's database"),
            MachinesError::Keys(_) | MachinesError::Seal(_) | MachinesError::Kept { .. } => (
                "KeysFailed",
                "put the file seal.keys back that clusterd had when the cluster was made",
            ),
            MachinesError::Waits(_) => ("Waiting", ""),
            MachinesError::NoMachine(_) => ("NoSuchMachine", ""),
            MachinesError::NoVersion { .. } => (
                "NoSuchVersion",
                "add that version to [kubernetes.versions] of clusterd's configuration, or delete the cluster and ask for one \
                 whose label kube_tag names another",
            ),
            MachinesError::Labels(_) => {
                ("LabelRefused", "delete the cluster and ask for one without that label")
            }
            MachinesError::NoListener => (
                "NoNodesListener",
                "add [nodes] to clusterd's configuration, or ask for a cluster with the label user_data_delivery=inline",
            ),
            MachinesError::TooLong(_) => (
                "UserDataTooLong",
                "delete the cluster and ask for one with the label user_data_delivery=claim",
            ),
            MachinesError::OwnConfig(_) => {
                ("OwnConfigRefused", "give the node group another config, or none")
            }
            MachinesError::Field { .. }
            | MachinesError::Name(_)
            | MachinesError::Version(_)
            | MachinesError::Bootstrap(_) => {
                ("SettingsRefused", "delete the cluster and ask for one with other settings")
            }
        }
    }
}

/// Formats an error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut chain = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        chain = format!("{chain}: {cause}");
        source = cause.source();
    }
    chain
}
