//! The errors of observations and actions, and the problem that each means for a cluster.

use std::time::Duration;

use cluster_core::{CallFailure, Key, MemberName, Problem};
use cluster_store::StoreError;
use kubernetes::KubernetesError;
use openstack::CloudError;

use crate::cluster_secrets::KeysError;
use crate::member_configs::MemberConfigError;
use crate::tenancy::TenancyError;

/// A result whose error is a [`CloudWorkError`], unless it says otherwise.
pub(crate) type Result<T, E = CloudWorkError> = std::result::Result<T, E>;

/// Why an observation or an action failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloudWorkError {
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// The cluster's project is not accessible to clusterd.
    #[error(transparent)]
    Tenancy(#[from] TenancyError),
    #[error("cannot write to the ledger: {0}")]
    Store(#[from] StoreError),
    /// A setting of the cluster names an object that does not exist.
    #[error("{setting}: the cloud has no {given:?} that clusterd may use")]
    NoSuch {
        /// The name of the setting.
        setting: &'static str,
        /// The id or name in the setting.
        given: String,
    },
    #[error("the DNS name {host} already exists and does not belong to this cluster")]
    NameTaken { host: String },
    /// An object that the action depends on disappeared after it was observed.
    #[error("{0} is needed first and does not exist")]
    DependencyMissing(Key),
    #[error(
        "clusterd's user has none of the roles {roles} in the cluster's project, and a cluster's credential needs one of them"
    )]
    Roleless {
        /// The roles of which one is needed.
        roles: String,
    },
    /// The config of a server cannot be made.
    #[error(transparent)]
    Machines(#[from] MemberConfigError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
    #[error("pod {pod} blocks the drain of {machine}: {why} ({more} more)")]
    EvictionBlocked {
        /// The member that is drained.
        machine: MemberName,
        pod: String,
        /// Kubernetes' message.
        why: String,
        /// How many other pods are in the same situation.
        more: usize,
    },
    #[error("{0}")]
    AddOn(String),
    #[error("the cluster's API does not answer")]
    Silent,
}

impl CloudWorkError {
    /// Returns the failure of a call; `doing` completes the sentence "cannot …".
    pub(crate) fn failure(&self, doing: &str) -> CallFailure {
        CallFailure {
            problem: self.problem(doing),
            is_transient: self.is_transient(),
            retry_after: self.retry_after(),
            create_failure: self.create_failure(),
        }
    }

    /// Returns when to retry, if the service said so.
    fn retry_after(&self) -> Option<Duration> {
        let (CloudWorkError::Cloud(error)
        | CloudWorkError::Tenancy(TenancyError::KeystoneFailed(error))) = self
        else {
            return None;
        };
        error.retry_after()
    }

    /// Whether a retry soon is likely to succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            // A dependency may be in the middle of its creation or deletion.
            CloudWorkError::Cloud(error) => {
                error.is_transient() || error.is_conflict() || error.is_not_found()
            }
            CloudWorkError::Tenancy(TenancyError::KeystoneFailed(error)) => error.is_transient(),
            CloudWorkError::Store(_)
            | CloudWorkError::DependencyMissing(_)
            | CloudWorkError::Keys(_)
            | CloudWorkError::Silent => true,
            CloudWorkError::Machines(error) => error.is_transient(),
            CloudWorkError::Kubernetes(_) | CloudWorkError::EvictionBlocked { .. } => true,
            CloudWorkError::AddOn(_) => false,
            CloudWorkError::Tenancy(
                TenancyError::Roleless { .. } | TenancyError::Bound { .. } | TenancyError::Nowhere,
            ) => false,
            CloudWorkError::NoSuch { .. }
            | CloudWorkError::NameTaken { .. }
            | CloudWorkError::Roleless { .. } => false,
        }
    }

    /// Returns the cloud's message when it failed to create an object, so that an immediate retry makes no sense.
    fn create_failure(&self) -> Option<String> {
        let CloudWorkError::Cloud(error) = self else { return None };
        if let CloudError::Failed(_) = error {
            return Some(error.to_string());
        }
        // Nova reports this for a server in ERROR, or in its answer.
        let (CloudError::Refused(answer) | CloudError::Conflict(answer)) = error else {
            return None;
        };
        answer.message.contains("No valid host").then(|| answer.message.clone())
    }

    /// Returns the problem for people; `doing` completes the sentence "cannot …".
    pub(crate) fn problem(&self, doing: &str) -> Problem {
        let (reason, next_action) = match self {
            CloudWorkError::Cloud(error)
            | CloudWorkError::Tenancy(TenancyError::KeystoneFailed(error)) => of_cloud(error),
            CloudWorkError::Tenancy(TenancyError::Roleless { .. }) => (
                "NoRole",
                "let an administrator of the cloud give clusterd's user that role; clusterd keeps trying. If the \
                 project was deleted: delete the cluster, and let an administrator remove its ledger with DELETE \
                 /bedplate/v1/clusters/ID/ledger",
            ),
            CloudWorkError::Tenancy(TenancyError::Bound { .. } | TenancyError::Nowhere) => (
                "OtherProject",
                "configure a user with a password, and a project, in clusterd's clouds.yaml",
            ),
            CloudWorkError::Store(_) => ("StoreFailed", "check clusterd's database"),
            CloudWorkError::NoSuch { .. } => (
                "NoSuchObject",
                "create it, or delete the cluster and create one that names an existing object",
            ),
            CloudWorkError::NameTaken { .. } => (
                "NameTaken",
                "delete that DNS name, or delete the cluster and create one with another name",
            ),
            CloudWorkError::Roleless { .. } => {
                ("NoRole", "let an administrator of the cloud grant one of them")
            }
            CloudWorkError::DependencyMissing(_) => ("Waiting", ""),
            CloudWorkError::Machines(error) => error.reason(),
            CloudWorkError::Keys(_) => {
                ("KeysFailed", "check clusterd's database and its seal.keys")
            }
            CloudWorkError::Kubernetes(_) => {
                ("KubernetesRefused", "check the cluster's API; clusterd keeps trying")
            }
            CloudWorkError::EvictionBlocked { .. } => {
                ("DrainHeld", "raise its PodDisruptionBudget, or delete the pod")
            }
            CloudWorkError::AddOn(_) => (
                "AddOnRefused",
                "create the cluster without the add-on, or change the settings that it needs",
            ),
            CloudWorkError::Silent => {
                ("ApiSilent", "check whether clusterd can reach the cluster's API")
            }
        };
        Problem {
            reason: reason.to_owned(),
            message: format!("cannot {doing}: {self}"),
            next_action: next_action.to_owned(),
            is_final: !self.is_transient() && !self.may_end(),
        }
    }

    /// Whether the failure can disappear by itself, though not soon.
    fn may_end(&self) -> bool {
        matches!(self, CloudWorkError::Cloud(CloudError::Malformed { .. }))
    }
}

/// Returns the reason (one word) and the advice for an error of the cloud.
fn of_cloud(error: &CloudError) -> (&'static str, &'static str) {
    match error {
        CloudError::Unreachable { .. } => (
            "CloudUnreachable",
            "check whether clusterd can reach that service; clusterd keeps trying",
        ),
        CloudError::Untrusted { .. } => {
            ("CloudUntrusted", "set cacert in clouds.yaml to the CA of its certificate")
        }
        CloudError::Busy { .. } => ("CloudBusy", ""),
        CloudError::Failed(_) => {
            ("CloudFailed", "look for the request id in that service's logs; clusterd keeps trying")
        }
        CloudError::Unauthorized(_) => {
            ("CloudCredentialsRefused", "put valid credentials into clouds.yaml")
        }
        CloudError::Forbidden(_) => {
            ("CloudForbids", "grant clusterd's user the role that the request needs")
        }
        CloudError::NotFound(_) => ("NotThere", ""),
        CloudError::Conflict(_) => {
            ("InUse", "delete the object that uses it, if it does not disappear by itself")
        }
        CloudError::QuotaExceeded(_) => {
            ("QuotaExceeded", "raise the project's quota, or delete or resize the cluster")
        }
        CloudError::Refused(_) | CloudError::InvalidId { .. } => (
            "CloudRefused",
            "delete the cluster and create one with settings that this cloud supports",
        ),
        CloudError::Malformed { .. } => {
            ("CloudUnreadable", "check whether a proxy answers instead of that service")
        }
        CloudError::NoEndpoint { .. } => {
            ("NoService", "install that service, or create a cluster that does not need it")
        }
    }
}

#[cfg(test)]
mod tests;
