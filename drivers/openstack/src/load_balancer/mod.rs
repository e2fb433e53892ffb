//! Octavia: load balancers and what they are made of.
//!
//! A load balancer is changed by one request at a time: while it is `PENDING_*`, another one is
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
    /// How far a load balancer, or a part of one, is (Load Balancer API v2, "Provisioning status codes").
    ProvisioningStatus {
        /// As it was asked to be.
        Active = "ACTIVE",
        /// Being made.
        PendingCreate = "PENDING_CREATE",
        /// Being changed.
        PendingUpdate = "PENDING_UPDATE",
        /// Being deleted.
        PendingDelete = "PENDING_DELETE",
        /// Something failed. It can be deleted, and failed over.
        Error = "ERROR",
        /// Gone.
        Deleted = "DELETED",
    }
}
