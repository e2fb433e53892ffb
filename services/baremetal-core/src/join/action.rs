//! The calls to the cloud for a machine that joins or leaves it.

/// A call to the cloud. Every call may be repeated without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinAction {
    /// Create a host aggregate, optionally as an availability zone.
    MakeAggregate {
        name: String,
        /// The availability zone that the aggregate defines.
        zone: Option<String>,
    },
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
