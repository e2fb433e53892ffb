//! What may be in the way, and what that means for the cluster.

use std::time::Duration;

use cluster_core::{Key, MachineRef, Problem};
use cluster_store::StoreError;
use kubernetes::KubernetesError;
use openstack::CloudError;

use crate::handle::KeysError;
use crate::machines::MachinesError;
use crate::tenancy::TenancyError;

/// What is in the way of a look or an action.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The cloud does not do as asked.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// The cluster's project is closed to us.
    #[error(transparent)]
    Tenancy(#[from] TenancyError),
    /// What was done cannot be written down.
    #[error("cannot write to the ledger: {0}")]
    Store(#[from] StoreError),
    /// What the cluster was asked for names something that is not there.
    #[error("{setting}: the cloud has no {given:?} that clusterd may use")]
    NoSuch {
        /// Where it was asked for.
        setting: &'static str,
        /// What was given.
        given: String,
    },
    /// A DNS name leads somewhere already.
    #[error("the name {host} is there already, and not as this cluster's")]
    NameTaken {
        /// The name.
        host: String,
    },
    /// Something that is needed first has gone since it was seen.
    #[error("{0} is needed first and is not there")]
    Lacks(Key),
    /// We are nothing in the cloud that a cluster may be.
    #[error(
        "clusterd's user has none of the roles {roles} in the cluster's project, and a cluster gets no others"
    )]
    Roleless {
        /// Those that would do.
        roles: String,
    },
    /// What makes a machine a node cannot be made.
    #[error(transparent)]
    Machines(#[from] MachinesError),
    /// The cluster's keys cannot be had.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The cluster's Kubernetes does not do as asked.
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
    /// A pod may not go yet.
    #[error("pod {pod} holds machine {machine}: {why} ({more} more)")]
    Held {
        /// The machine that is to go.
        machine: MachineRef,
        /// The pod.
        pod: String,
        /// Why, in Kubernetes' words.
        why: String,
        /// How many more there are.
        more: usize,
    },
    /// An add-on cannot be had.
    #[error("{0}")]
    AddOn(String),
    /// The cluster's Kubernetes does not answer, or not yet.
    #[error("the cluster's API does not answer")]
    Silent,
}

impl Trouble {
    /// When to try again, where that is known.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let (Trouble::Cloud(error) | Trouble::Tenancy(TenancyError::Away(error))) = self else {
            return None;
        };
        error.retry_after()
    }

    /// Whether it passes by itself, and soon.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            // What else has to go first may be on its way.
            Trouble::Cloud(error) => {
                error.is_transient() || error.is_conflict() || error.is_not_found()
            }
            Trouble::Tenancy(TenancyError::Away(error)) => error.is_transient(),
            Trouble::Store(_) | Trouble::Lacks(_) | Trouble::Keys(_) | Trouble::Silent => true,
            Trouble::Machines(error) => error.is_transient(),
            Trouble::Kubernetes(_) | Trouble::Held { .. } => true,
            Trouble::AddOn(_) => false,
            Trouble::Tenancy(
                TenancyError::Roleless { .. } | TenancyError::Bound { .. } | TenancyError::Nowhere,
            ) => false,
            Trouble::NoSuch { .. } | Trouble::NameTaken { .. } | Trouble::Roleless { .. } => false,
        }
    }

    /// What the cloud said where it failed at what it was asked to make, so that asking again at once is no use.
    pub(crate) fn setback(&self) -> Option<String> {
        let Trouble::Cloud(error) = self else { return None };
        if let CloudError::Failed(_) = error {
            return Some(error.to_string());
        }
        // Nova says it of a server in ERROR, or at once.
        let (CloudError::Refused(answer) | CloudError::Conflict(answer)) = error else {
            return None;
        };
        answer.message.contains("No valid host").then(|| answer.message.clone())
    }

    /// The same for people; `doing` completes the sentence "cannot …".
    pub(crate) fn problem(&self, doing: &str) -> Problem {
        let (reason, next_action) = match self {
            Trouble::Cloud(error) | Trouble::Tenancy(TenancyError::Away(error)) => of_cloud(error),
            Trouble::Tenancy(TenancyError::Roleless { .. }) => (
                "NoRole",
                "let an administrator of the cloud give clusterd's user that role; it is looked at again. Where the project is no more: \
                 delete the cluster, and have an administrator forget what it owns, by DELETE /bedplate/v1/clusters/ID/ledger",
            ),
            Trouble::Tenancy(TenancyError::Bound { .. } | TenancyError::Nowhere) => (
                "OtherProject",
                "put a user with a password, and a project, into clusterd's clouds.yaml",
            ),
            Trouble::Store(_) => ("StoreFailed", "look at clusterd's database"),
            Trouble::NoSuch { .. } => (
                "NoSuchObject",
                "make it, or delete the cluster and ask for one that names what is there",
            ),
            Trouble::NameTaken { .. } => {
                ("NameTaken", "delete that name, or delete the cluster and give it another one")
            }
            Trouble::Roleless { .. } => {
                ("NoRole", "let an administrator of the cloud grant one of them")
            }
            Trouble::Lacks(_) => ("Waiting", ""),
            Trouble::Machines(error) => error.reason(),
            Trouble::Keys(_) => ("KeysFailed", "look at clusterd's database, and its seal.keys"),
            Trouble::Kubernetes(_) => {
                ("KubernetesRefused", "look at the cluster's own API; it is tried again")
            }
            Trouble::Held { .. } => {
                ("DrainHeld", "let the pod go: raise its PodDisruptionBudget, or delete it")
            }
            Trouble::AddOn(_) => {
                ("AddOnRefused", "ask for a cluster without it, or change what it needs")
            }
            Trouble::Silent => ("ApiSilent", "see whether clusterd reaches the cluster's API"),
        };
        Problem {
            reason: reason.to_owned(),
            message: format!("cannot {doing}: {self}"),
            next_action: next_action.to_owned(),
            is_final: !self.is_transient() && !self.may_end(),
        }
    }

    /// Whether it may pass by itself, though not soon.
    fn may_end(&self) -> bool {
        matches!(self, Trouble::Cloud(CloudError::Malformed { .. }))
    }
}

/// One word, and what to do.
fn of_cloud(error: &CloudError) -> (&'static str, &'static str) {
    match error {
        CloudError::Unreachable { .. } => {
            ("CloudUnreachable", "see whether clusterd reaches that service; it keeps trying")
        }
        CloudError::Untrusted { .. } => {
            ("CloudUntrusted", "name the authority of its certificate as cacert in clouds.yaml")
        }
        CloudError::Busy { .. } => ("CloudBusy", ""),
        CloudError::Failed(_) => {
            ("CloudFailed", "look for the request id in that service's logs; it is tried again")
        }
        CloudError::Unauthorized(_) => {
            ("CloudCredentialsRefused", "put credentials that are valid into clouds.yaml")
        }
        CloudError::Forbidden(_) => {
            ("CloudForbids", "give clusterd's user the role that this takes")
        }
        CloudError::NotFound(_) => ("NotThere", ""),
        CloudError::Conflict(_) => {
            ("InUse", "delete what else uses it, if that does not go by itself")
        }
        CloudError::QuotaExceeded(_) => {
            ("QuotaExceeded", "raise the project's quota, or delete or resize the cluster")
        }
        CloudError::Refused(_) | CloudError::InvalidId { .. } => {
            ("CloudRefused", "delete the cluster and ask for one that suits this cloud")
        }
        CloudError::Malformed { .. } => {
            ("CloudUnreadable", "look whether a proxy answers in place of that service")
        }
        CloudError::NoEndpoint { .. } => {
            ("NoService", "install that service, or ask for a cluster that needs none of it")
        }
    }
}
