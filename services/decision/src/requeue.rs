//! When the next turn is due.

use std::time::Duration;

use jiff::Timestamp;

/// The next time a key gets a turn, as decided by the turn that just ended. The earlier of two is the lesser one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requeue {
    /// Immediately, behind the keys that are already waiting.
    Now,
    /// After this pause, or earlier when somebody wakes the key.
    After(Duration),
    /// Only when somebody wakes the key.
    OnChange,
}

impl Requeue {
    /// A turn is due at `due`, which the decision at `now` has planned; `None` means only when somebody wakes the key.
    pub fn at(due: Option<Timestamp>, now: Timestamp) -> Requeue {
        due.map_or(Requeue::OnChange, |due| Requeue::After(time_left(due, now)))
    }
}

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
        assert_eq!(Requeue::at(Some(at(0)), at(3600)), Requeue::After(Duration::ZERO));
        assert_eq!(Requeue::at(None, at(0)), Requeue::OnChange);
    }

    #[test]
    fn the_earlier_of_two_turns_is_the_lesser_one() {
        let (soon, late) = (Requeue::After(Duration::ZERO), Requeue::After(Duration::MAX));
        let mut all = [Requeue::OnChange, late, Requeue::Now, soon];
        all.sort_unstable();
        assert_eq!(all, [Requeue::Now, soon, late, Requeue::OnChange]);
    }
}
