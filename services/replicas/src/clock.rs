//! The time by the clock that all conductors share: PostgreSQL's.
//!
//! The clock of a computer may be set. For one conductor, the deadlines in the records would then have passed, or be an hour away. So a process
//! with a lease takes the time that PostgreSQL told at the last renewal. It adds the time since then by the monotonic clock.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A smaller difference between two renewals is the time that an answer takes. The clock does not jump for it.
const TOLERATED: SignedDuration = SignedDuration::from_secs(1);

/// The time in an answer that takes longer is too old.
pub(crate) const PROMPT: Duration = Duration::from_secs(1);

/// A larger difference means that a clock was set. Deadlines must not count it.
const SET: SignedDuration = SignedDuration::from_secs(5);

/// The clock of this process. A process has one conductor of a shared database.
static CLOCK: SharedClock = SharedClock(Mutex::new(None));

/// Whether the time has changed by more than the time that went by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockChange {
    Steady,
    Set,
}

struct SharedClock(Mutex<Option<ToldTime>>);

/// A time, and when it was told.
#[derive(Clone, Copy)]
struct ToldTime {
    time: Timestamp,
    at: Instant,
}

/// The current time: by the clock of PostgreSQL in a process that has had a lease, and otherwise by the clock of this computer.
pub fn now() -> Timestamp {
    CLOCK.now(Instant::now()).unwrap_or_else(Timestamp::now)
}

/// Takes note of the time that PostgreSQL has just told. Before the first time, the clock of the process shows `own`.
pub(crate) fn follow(time: Timestamp, own: Timestamp) -> ClockChange {
    CLOCK.follow(time, Instant::now(), own)
}

impl SharedClock {
    fn now(&self, at: Instant) -> Option<Timestamp> {
        self.told().map(|told| told.now(at))
    }

    /// Takes note of a time that is told at `at`.
    fn follow(&self, time: Timestamp, at: Instant, own: Timestamp) -> ClockChange {
        let mut told = self.told();
        let expected = told.map_or(own, |told| told.now(at));
        let difference = time.duration_since(expected).abs();
        if told.is_none() || difference > TOLERATED {
            *told = Some(ToldTime { time, at });
        }
        if difference > SET { ClockChange::Set } else { ClockChange::Steady }
    }

    fn told(&self) -> MutexGuard<'_, Option<ToldTime>> {
        // A panic while the lock is held leaves the time intact, so the poisoned lock can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToldTime {
    fn now(self, at: Instant) -> Timestamp {
        let since: Duration = at.saturating_duration_since(self.at);
        self.time.saturating_add(since).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_clock_of_this_computer_that_was_set_changes_nothing() {
        let (clock, begin) = (SharedClock(Mutex::default()), Instant::now());
        let later = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(clock.now(begin), None);
        assert_eq!(clock.follow(at(1000), begin, at(1000)), ClockChange::Steady);
        assert_eq!(clock.now(later(10)), Some(at(1010)));
        assert_eq!(clock.follow(at(1020), later(20), at(4620)), ClockChange::Steady);
        assert_eq!(clock.now(later(20)), Some(at(1020)));
    }

    #[test]
    fn a_late_answer_sets_no_clock_back() {
        let (clock, begin) = (SharedClock(Mutex::default()), Instant::now());
        clock.follow(at(1000), begin, at(1000));
        let later = begin + Duration::from_millis(10_900);
        assert_eq!(clock.follow(at(1010), later, at(1010)), ClockChange::Steady);
        assert_eq!(clock.now(later), at(1010).checked_add(Duration::from_millis(900)).ok());
    }

    #[test]
    fn the_clock_of_the_database_is_followed() {
        let (clock, begin) = (SharedClock(Mutex::default()), Instant::now());
        assert_eq!(clock.follow(at(5000), begin, at(1000)), ClockChange::Set, "differs at first");
        for time in [8600, 1000] {
            assert_eq!(clock.follow(at(time), begin, at(1000)), ClockChange::Set);
            assert_eq!(clock.now(begin), Some(at(time)));
        }
    }
}
