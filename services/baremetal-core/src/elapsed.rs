//! The time between two readings of the clock, which may have been set back in between.

use std::time::Duration;

use jiff::Timestamp;

/// Returns the time from `since` until `now`: zero if `now` is earlier. If the sign were dropped, a clock set back by an hour would expire
/// every shorter timeout.
pub fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_has_elapsed_on_a_clock_that_was_set_back() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(elapsed(at(10), at(12)), Duration::from_secs(2));
        assert_eq!(elapsed(at(3600), at(0)), Duration::ZERO);
    }
}
