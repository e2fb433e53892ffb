//! Waiting for something another process does.

use std::thread;
use std::time::{Duration, Instant};

/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks until `look` finds something, and panics with `what` was awaited when it has not after `timeout`.
#[track_caller]
pub fn wait_for<T>(what: &str, timeout: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < timeout, "waited {timeout:?} for {what}");
        thread::sleep(LOOK_EVERY);
    }
}
