//! The time from now until a turn is due.

use std::time::Duration;

use jiff::Timestamp;

/// Returns the time from `now` until `due`: zero if `due` has passed. If the sign were dropped, a turn that is overdue would wait as long
/// as it is late already.
pub fn time_left(due: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(due.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_left_once_a_turn_is_due() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(time_left(at(12), at(10)), Duration::from_secs(2));
        assert_eq!(time_left(at(0), at(3600)), Duration::ZERO);
    }
}
