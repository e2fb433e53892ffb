//! The settings of clusters' leases.

use lease::LeaseSchedule;
use notices::ReceiverKinds;

/// The stages at the end of leases, and the receivers of notices.
#[derive(Clone, Debug)]
pub struct LendingSettings {
    pub ladder: LeaseSchedule,
    /// The possible receivers of notices.
    pub addressees: ReceiverKinds,
}

impl Default for LendingSettings {
    fn default() -> Self {
        let ladder = LeaseSchedule::default().without_snapshot();
        LendingSettings { ladder, addressees: ReceiverKinds::default() }
    }
}
