//! The API's questions about the cloud's projects in which clusters are created.

use cluster_core::Cluster;

use crate::Conductor;
use crate::tenancy::{CloudAccess, Tenancy, TenancyError};

impl Conductor {
    /// Checks whether clusters can be created for the project with this id; `name` is used in the message.
    ///
    /// # Errors
    ///
    /// When clusterd's user lacks the role in the project, or Keystone does not answer.
    pub async fn admit(&self, project: &str, name: &str) -> Result<(), TenancyError> {
        match &self.context.cloud {
            Some(cloud_access) => cloud_access.admit(project, name).await,
            None => Ok(()),
        }
    }

    /// Whether clusterd cannot reach the cloud objects of the cluster at all: it has no role in their project, which may be deleted, or no
    /// cloud.
    ///
    /// # Errors
    ///
    /// When Keystone does not answer.
    pub async fn has_no_access(&self, cluster: &Cluster) -> Result<bool, TenancyError> {
        let Some(cloud_access) = &self.context.cloud else { return Ok(true) };
        match cloud_access.of(cluster, true).await {
            Ok(_) => Ok(false),
            Err(TenancyError::Roleless { .. } | TenancyError::Bound { .. }) => Ok(true),
            Err(unknown @ (TenancyError::Nowhere | TenancyError::KeystoneFailed(_))) => {
                Err(unknown)
            }
        }
    }

    /// Returns in which of the cloud's projects clusters are created.
    pub fn tenancy(&self) -> Tenancy {
        self.context.cloud.as_ref().map_or(Tenancy::Shared, CloudAccess::tenancy)
    }
}
