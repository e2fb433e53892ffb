//! A token bucket (as in RFC 2697): allows a burst after a pause, and a fixed rate on average.
//!
//! The crate `governor` (0.10) would replace 25 lines here and does not fit: a permit cannot be returned, and its keyed limiter grows with
//! each new key until somebody calls `retain_recent`, while [`super::recent::RecentMap`] has a bound.

use std::time::{Duration, Instant};

/// A rate with bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    /// The average rate per second.
    pub(crate) per_second: f64,
    /// The largest burst.
    pub(crate) burst: f64,
}

/// The permits that are left of a [`Pace`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    /// A bucket from which nothing has been taken.
    pub(crate) fn full(pace: Pace, now: Instant) -> Self {
        Bucket { left: pace.burst, at: now }
    }

    /// Takes a permit, or returns how long to wait for the next one.
    pub(crate) fn take(&mut self, pace: Pace, now: Instant) -> Result<(), Duration> {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + since * pace.per_second).min(pace.burst);
        self.at = self.at.max(now);
        if self.left >= 1.0 {
            self.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.left) / pace.per_second))
    }

    /// Returns a permit that was taken.
    pub(crate) fn give_back(&mut self) {
        self.left += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_the_average_rate() {
        let (pace, now) = (Pace { per_second: 2.0, burst: 3.0 }, Instant::now());
        let mut bucket = Bucket::full(pace, now);
        for _ in 0..3 {
            assert_eq!(bucket.take(pace, now), Ok(()));
        }
        assert_eq!(bucket.take(pace, now), Err(Duration::from_millis(500)));
        let later = now + Duration::from_millis(500);
        assert_eq!(bucket.take(pace, later), Ok(()));
        assert!(bucket.take(pace, later).is_err());
        bucket.give_back();
        assert_eq!(bucket.take(pace, later), Ok(()));
        let rested = now + Duration::from_secs(3600);
        let taken = (0..100).take_while(|_| bucket.take(pace, rested).is_ok()).count();
        assert_eq!(taken, 3, "a rest is not saved up");
    }
}
