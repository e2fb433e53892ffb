//! The speed of the waits in firmware and boot loaders.

use std::time::Duration;

/// How many times faster than a real machine an emulated one tests itself, and sleeps in a script.
///
/// Network traffic is not affected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

/// From power-on to the first boot attempt; real servers take minutes.
const SELF_TEST: Duration = Duration::from_secs(3);
/// From the kernel's start to the agent's start.
const KERNEL: Duration = Duration::from_secs(2);
/// The duration of a clean or deploy step without its downloads; a real erase takes from seconds to hours.
const STEP: Duration = Duration::from_secs(1);
/// PXE 2.1 §2.2.1 begins with 4 seconds.
const FIRST_DHCP_TIMEOUT: Duration = Duration::from_secs(4);
/// The minimum, because a busy computer may need this long to answer.
const LEAST_TIMEOUT: Duration = Duration::from_millis(500);

impl Speed {
    /// Makes a pace; a `speed` that is not a positive number counts as 1.
    pub fn times(speed: f64) -> Speed {
        Speed(if speed.is_finite() && speed > 0.0 { speed } else { 1.0 })
    }

    pub(crate) fn of(self, real: Duration) -> Duration {
        real.div_f64(self.0)
    }

    pub(crate) fn self_test(self) -> Duration {
        self.of(SELF_TEST)
    }

    pub(crate) fn kernel(self) -> Duration {
        self.of(KERNEL)
    }

    pub(crate) fn step(self) -> Duration {
        self.of(STEP)
    }

    pub(crate) fn dhcp_timeout(self) -> Duration {
        self.of(FIRST_DHCP_TIMEOUT).max(LEAST_TIMEOUT)
    }
}

impl Default for Speed {
    fn default() -> Self {
        Speed(1.0)
    }
}
