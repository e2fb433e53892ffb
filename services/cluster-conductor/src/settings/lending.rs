//! The settings of clusters' leases.

use lease::LeaseSchedule;
use notices::ReceiverKinds;

/// The stages at the end of leases, and the receivers of notices.
#[derive(Clone, Debug)]
pub struct LendingSettings {
    pub schedule: LeaseSchedule,
    /// The possible receivers of notices.
    pub addressees: ReceiverKinds,
}

impl Default for LendingSettings {
    fn default() -> Self {
        let schedule = LeaseSchedule::default().without_snapshot();
        LendingSettings { schedule, addressees: ReceiverKinds::default() }
    }
}
