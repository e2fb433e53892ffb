//! The next step for a machine that joins or leaves a cloud.

use jiff::Timestamp;

use crate::{Failure, Hypervisor};

/// A call to the cloud. Every call may be repeated without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinAction {
    /// Create a host aggregate, optionally as an availability zone.
    MakeAggregate {
        name: String,
        /// The availability zone that the aggregate defines.
        zone: Option<String>,
    },
    /// Add the host to an aggregate.
    AddHost {
        /// The aggregate's id in the cloud.
        aggregate: String,
    },
    /// Enable the compute service.
    Enable {
        /// The service's id in the cloud.
        service: String,
    },
    /// Delete the compute service. Nova then also removes the host from its aggregates, and its resource provider.
    Forget {
        /// The service's id in the cloud.
        service: String,
    },
}

/// The next step for a machine that joins or leaves a cloud.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinStep {
    /// Nothing to do: joining has ended, has failed, or has not begun.
    Rest,
    /// Look again later.
    Wait {
        /// When joining fails at the latest.
        until: Timestamp,
    },
    /// Record this progress and continue.
    Record(Box<Hypervisor>),
    /// Make this call to the cloud.
    Act(JoinAction),
    /// Joining fails.
    GiveUp(Failure),
    /// Record that the cloud has removed the host.
    Gone,
}
