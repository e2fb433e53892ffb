//! The part of a cloud that the conductor shows to `plan_join`.

use jiff::Timestamp;

use crate::Problem;

/// The part of the cloud that the current state of joining is about.
#[derive(Clone, Debug, PartialEq)]
pub enum CloudSeen {
    /// The cloud did not answer, or refused.
    Failed(Problem),
    /// The compute service of the host, if the cloud knows one.
    Service(Option<ServiceSeen>),
    /// The hypervisor of the host, if it is listed.
    Hypervisor(Option<HypervisorSeen>),
    /// Whether the hypervisor has a resource provider with an inventory.
    Provider(bool),
    Aggregates(Vec<AggregateSeen>),
}

/// A compute service as the cloud shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSeen {
    pub id: String,
    /// Whether the cloud considers the service alive.
    pub up: bool,
    /// Whether the scheduler places servers on the host.
    pub enabled: bool,
    /// When the service last reported, by the cloud's clock.
    pub reported_at: Option<Timestamp>,
}

/// A hypervisor as the cloud shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HypervisorSeen {
    pub id: String,
    /// Whether its compute service is up.
    pub up: bool,
}

/// A host aggregate as the cloud shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateSeen {
    pub id: String,
    /// The name, which is unique in the cloud.
    pub name: String,
    /// The availability zone that the aggregate defines, if any.
    pub zone: Option<String>,
    pub has_host: bool,
}
