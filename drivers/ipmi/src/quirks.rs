//! What single BMCs need.

use std::time::Duration;

/// How long to wait, and how often, for power to be off before it is switched on again.
///
/// virtualbmc refuses some restarts when libvirt does; its machines are off at once, real ones take
/// some seconds.
pub(crate) fn waits_for_power_off() -> impl Iterator<Item = Duration> {
    [100, 200, 400, 800, 1600, 1600, 1600, 1600].into_iter().map(Duration::from_millis)
}
