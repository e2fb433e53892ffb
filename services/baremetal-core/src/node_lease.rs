//! The lease in a node's record.

use lease::{Lease, MailAddress};
use serde::{Deserialize, Serialize};

use crate::DrainOwner;

/// The lease of a node, beside the `lessee` in its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLease {
    /// The end of the lease and the stages taken so far.
    pub lease: Lease,
    /// The user who lent the node.
    pub by: String,
    /// A mail address that receives notices about the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<MailAddress>,
    /// Whether the lease ends with the instance, because the node was lent for a reservation only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserved: bool,
    /// The drain of the node's compute host that the end of the lease needs. It is recorded before clusterd is asked for the drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<LeaseDrain>,
}

/// The drain of a compute host that the end of a lease needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseDrain {
    /// The name of the compute host in the cloud.
    pub host: String,
    /// The originator of the drain. An operator's drain stays when the lease goes on.
    pub owner: DrainOwner,
}
