//! Limits how often the same event of a claim is recorded.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cluster_core::ClaimUuid;
use jiff::{SignedDuration, Timestamp};

/// How long the same event is suppressed.
const QUIET: SignedDuration = SignedDuration::from_mins(1);
/// How many events are remembered at most.
const MOST: usize = 10_000;

/// The recent events of each claim.
#[derive(Default)]
pub(crate) struct EventLimiter(Mutex<HashMap<(ClaimUuid, &'static str), Timestamp>>);

impl EventLimiter {
    /// Whether the event may be recorded now.
    pub(crate) fn lets(&self, of: ClaimUuid, what: &'static str, now: Timestamp) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() >= MOST {
            said.retain(|_, at| now.duration_since(*at) < QUIET);
        }
        let is_quiet = said.get(&(of, what)).is_some_and(|at| now.duration_since(*at) < QUIET);
        if is_quiet || said.len() >= MOST {
            return false;
        }
        said.insert((of, what), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_event_is_recorded_once_a_minute() {
        let (limiter, claim) = (EventLimiter::default(), ClaimUuid::new_v4());
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        assert!(limiter.lets(claim, "a", at(0)));
        assert!(!limiter.lets(claim, "a", at(59)));
        assert!(limiter.lets(claim, "b", at(59)));
        assert!(limiter.lets(ClaimUuid::new_v4(), "a", at(59)));
        assert!(limiter.lets(claim, "a", at(60)));
    }
}
