//! The time since when a process has been able to see events: timeouts count only time in which the database answered.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// A shorter outage of the database changes no timeout. Otherwise a machine that never comes up would never be given up if the database
/// failed now and then.
const SHORTEST_OUTAGE: SignedDuration = SignedDuration::from_secs(5);

/// The time since when no event was missed: the start of this process, or the end of the last outage of the database.
pub struct Watch(Mutex<Watched>);

struct Watched {
    since: Timestamp,
    answered_at: Timestamp,
    /// The database has failed since its last answer.
    has_failed: bool,
}

impl Watch {
    /// A process that starts now.
    pub fn begin(now: Timestamp) -> Watch {
        Watch(Mutex::new(Watched { since: now, answered_at: now, has_failed: false }))
    }

    /// Returns the earliest time that timeouts count from.
    pub fn since(&self) -> Timestamp {
        self.watched().since
    }

    /// Notes that the database answered.
    pub fn answered(&self, now: Timestamp) {
        let mut watched = self.watched();
        let outage = now.duration_since(watched.answered_at);
        if watched.has_failed && outage >= SHORTEST_OUTAGE {
            watched.since = now;
        }
        watched.answered_at = now;
        watched.has_failed = false;
    }

    /// Notes that the clock was set, and shows `now`: the time before does not count.
    pub fn clock_was_set(&self, now: Timestamp) {
        *self.watched() = Watched { since: now, answered_at: now, has_failed: false };
    }

    /// Notes that the database did not answer.
    pub fn failed(&self) {
        self.watched().has_failed = true;
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        // A panic while the lock is held leaves the times intact, so the poisoned lock can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn time_in_which_the_database_did_not_answer_does_not_count() {
        let watch = Watch::begin(at(0));
        watch.answered(at(10));
        assert_eq!(watch.since(), at(0));
        watch.failed();
        watch.failed();
        watch.answered(at(300));
        assert_eq!(watch.since(), at(300));
        // A database that was not asked for a long time has not failed.
        watch.answered(at(3000));
        assert_eq!(watch.since(), at(300));
    }

    #[test]
    fn time_before_the_clock_was_set_does_not_count() {
        let watch = Watch::begin(at(4000));
        watch.clock_was_set(at(400));
        assert_eq!(watch.since(), at(400));
        watch.answered(at(410));
        assert_eq!(watch.since(), at(400));
    }

    #[test]
    fn a_single_failure_counts_as_no_outage() {
        let watch = Watch::begin(at(0));
        for second in 1..1000 {
            watch.failed();
            watch.answered(at(second));
        }
        assert_eq!(watch.since(), at(0));
    }
}
