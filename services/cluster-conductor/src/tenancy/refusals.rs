//! Remembers projects that recently refused clusterd. Each attempt makes Keystone hash a password, and a user who keeps creating clusters
//! in a project without the role must not cause that load.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a refusal is remembered. A role that is granted takes effect after this time at the latest.
const REMEMBERED: Duration = Duration::from_secs(5);
/// How many refusals are remembered at most.
const MOST: usize = 1024;

/// Projects that recently refused clusterd.
#[derive(Default)]
pub(super) struct Refusals(Mutex<BTreeMap<String, Instant>>);

impl Refusals {
    /// Whether the project refused clusterd shortly before `now`.
    pub(super) fn knows(&self, project: &str, now: Instant) -> bool {
        self.map().get(project).is_some_and(|at| is_fresh(*at, now))
    }

    /// Records that the project refused clusterd at `now`.
    pub(super) fn note(&self, project: &str, now: Instant) {
        let mut map = self.map();
        if map.len() >= MOST {
            map.retain(|_, at| is_fresh(*at, now));
        }
        if map.len() < MOST {
            map.insert(project.to_owned(), now);
        }
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) < REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_remembered_for_a_moment() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        assert!(!refusals.knows("p", now));
        refusals.note("p", now);
        assert!(refusals.knows("p", now + REMEMBERED - Duration::from_millis(1)));
        assert!(!refusals.knows("p", now + REMEMBERED) && !refusals.knows("q", now));
        refusals.note("p", now + REMEMBERED);
        assert!(refusals.knows("p", now + REMEMBERED));
    }

    #[test]
    fn the_number_of_remembered_refusals_is_limited() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        for number in 0..=MOST {
            refusals.note(&number.to_string(), now);
        }
        assert_eq!(refusals.map().len(), MOST);
        refusals.note("late", now + REMEMBERED);
        assert_eq!(refusals.map().len(), 1);
    }
}
