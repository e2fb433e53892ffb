//! Octavia: load balancers and their parts.
//!
//! Octavia makes one change to a load balancer at a time: while its status is `PENDING_*`, a further request gets
//! [`CloudError::Busy`](crate::CloudError::Busy).

pub mod flavors;
pub mod listeners;
pub mod load_balancers;
pub mod monitors;
pub mod pools;
pub mod quotas;

use crate::lenient;
use crate::service::Service;

const SERVICE: Service = Service::LoadBalancer;

lenient::words! {
    /// The status of a load balancer or a part of one (Load Balancer API v2, "Provisioning status codes").
    ProvisioningStatus {
        /// The object is as requested.
        Active = "ACTIVE",
        PendingCreate = "PENDING_CREATE",
        PendingUpdate = "PENDING_UPDATE",
        PendingDelete = "PENDING_DELETE",
        /// An operation failed. The object can be deleted, and a load balancer can be failed over.
        Error = "ERROR",
        Deleted = "DELETED",
    }
}
