//! The reboot of a member for an update of its operating system.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::MemberName;

/// A member that reboots. At most one member of a cluster does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberReboot {
    pub machine: MemberName,
    pub phase: RebootPhase,
    /// When the phase began.
    pub since: Timestamp,
}

/// How far a reboot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RebootPhase {
    /// The pods of the member are evicted.
    Draining,
    /// The member may reboot.
    Permitted,
    /// The member has rebooted, or does not want to any more, and its Kubernetes node is still cordoned.
    Ended,
    /// Pods could not be evicted in time, and the Kubernetes node is still cordoned.
    Failed,
}
