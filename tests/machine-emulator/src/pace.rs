//! The speed of the waits in firmware, boot loaders and agents.

use std::time::Duration;

/// How fast an emulated machine tests itself, starts its kernel, sleeps in a script and writes its disk.
///
/// Network traffic is not affected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// How many times faster than a real machine the waits are.
    times: f64,
    /// From power-on to the first boot attempt.
    self_test: Duration,
    /// From the kernel's start to the agent's start.
    kernel: Duration,
    /// The bytes that a disk writes in a second; `None` writes without delay.
    disk_rate: Option<u64>,
}

/// Real servers take minutes.
const SHORT_SELF_TEST: Duration = Duration::from_secs(3);
const SHORT_KERNEL: Duration = Duration::from_secs(2);
/// The self-test of a server with little memory.
const REAL_SELF_TEST: Duration = Duration::from_secs(60);
const REAL_KERNEL: Duration = Duration::from_secs(10);
/// A SATA SSD.
const REAL_DISK_RATE: u64 = 500_000_000;
/// The length of a small image of a server, for which a shorter image stands.
const REAL_IMAGE: u64 = 2 << 30;
/// The duration of a clean or deploy step without its downloads; a real erase takes from seconds to hours.
const STEP: Duration = Duration::from_secs(1);
/// PXE 2.1 §2.2.1 begins with 4 seconds.
const FIRST_DHCP_TIMEOUT: Duration = Duration::from_secs(4);
/// The minimum, because a busy computer may need this long to answer.
const LEAST_TIMEOUT: Duration = Duration::from_millis(500);

impl Speed {
    /// Makes a pace that is `speed` times as fast as an impatient machine's; a `speed` that is not a positive number counts as 1.
    pub fn times(speed: f64) -> Speed {
        let times = if speed.is_finite() && speed > 0.0 { speed } else { 1.0 };
        Speed { times, self_test: SHORT_SELF_TEST, kernel: SHORT_KERNEL, disk_rate: None }
    }

    /// Makes the pace of a real server: a self-test of 60 s, 10 s from the kernel to the agent, a disk that writes 500 MB/s. An image takes as
    /// long as one of 2 GiB, even if it is shorter.
    pub fn real() -> Speed {
        Speed {
            times: 1.0,
            self_test: REAL_SELF_TEST,
            kernel: REAL_KERNEL,
            disk_rate: Some(REAL_DISK_RATE),
        }
    }

    pub(crate) fn of(self, real: Duration) -> Duration {
        real.div_f64(self.times)
    }

    pub(crate) fn self_test(self) -> Duration {
        self.of(self.self_test)
    }

    pub(crate) fn kernel(self) -> Duration {
        self.of(self.kernel)
    }

    pub(crate) fn step(self) -> Duration {
        self.of(STEP)
    }

    /// How long a disk needs to write an image of this length.
    pub(crate) fn image_write(self, bytes: u64) -> Duration {
        let seconds =
            |rate: u64| Duration::from_secs_f64(bytes.max(REAL_IMAGE) as f64 / rate as f64);
        self.disk_rate.map_or(Duration::ZERO, seconds)
    }

    pub(crate) fn dhcp_timeout(self) -> Duration {
        self.of(FIRST_DHCP_TIMEOUT).max(LEAST_TIMEOUT)
    }
}

impl Default for Speed {
    fn default() -> Self {
        Speed::times(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_machine_takes_its_time() {
        let real = Speed::real();
        assert_eq!(real.self_test(), Duration::from_secs(60));
        assert_eq!(real.image_write(1), real.image_write(REAL_IMAGE));
        assert_eq!(real.image_write(10_000_000_000), Duration::from_secs(20));
        assert_eq!(Speed::times(100.0).self_test(), Duration::from_millis(30));
        assert_eq!(Speed::times(100.0).image_write(10_000_000_000), Duration::ZERO);
    }
}
