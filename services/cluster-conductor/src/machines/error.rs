//! Why a machine cannot be told what it is to become.

use cluster_bootstrap::{BootstrapError, InvalidName, InvalidVersion};
use cluster_core::{Key, KubernetesVersion, LabelsError, MachineRef};
use cluster_store::StoreError;
use ignition::{DocumentError, TooLong};
use sealing::SealError;

use crate::handle::KeysError;

/// Why a machine cannot be told what it is to become.
#[derive(Debug, thiserror::Error)]
pub enum MachinesError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cluster's keys cannot be had.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// What is kept sealed cannot be sealed or opened.
    #[error("what the cluster's machines join by cannot be sealed or opened: {0}")]
    Seal(#[from] SealError),
    /// What is kept cannot be read.
    #[error("{what} cannot be read: {source}")]
    Kept {
        /// What.
        what: &'static str,
        /// Why not.
        source: serde_json::Error,
    },
    /// Somebody's own config that was taken once, and is not any more.
    #[error("the node group's own config: {0}")]
    OwnConfig(DocumentError),
    /// An address has to be known first.
    #[error("the address of {0} is not known yet")]
    Waits(Key),
    /// The cluster has no such machine any more.
    #[error("the cluster has no machine {0}")]
    NoMachine(MachineRef),
    /// Nobody has said where this version comes from.
    #[error("this clusterd has no programs of Kubernetes {version}: it has {known}")]
    NoVersion {
        /// What was asked for.
        version: KubernetesVersion,
        /// What there is.
        known: String,
    },
    /// A setting of the cluster's cannot be followed.
    #[error("{field}: {why}")]
    Field {
        /// Which.
        field: &'static str,
        /// Why not.
        why: String,
    },
    /// A label of the cluster's record means nothing today.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// There is nowhere to redeem a claim.
    #[error(
        "machines of this cluster are to fetch their configs, and this clusterd does not listen for them"
    )]
    NoListener,
    /// The config does not fit into user data.
    #[error(transparent)]
    TooLong(TooLong),
    /// Names or versions that the bootstrap does not take.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// As above.
    #[error(transparent)]
    Version(#[from] InvalidVersion),
    /// The settings make no machine.
    #[error("{}", chain(.0))]
    Bootstrap(#[from] BootstrapError),
}

impl MachinesError {
    /// Whether it passes by itself, and soon.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, MachinesError::Store(_) | MachinesError::Waits(_))
    }

    /// One word, and what to do.
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

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut chain = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        chain = format!("{chain}: {cause}");
        source = cause.source();
    }
    chain
}
