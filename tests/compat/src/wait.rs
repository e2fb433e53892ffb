//! Waits for the effect of another process.

use std::thread;
use std::time::{Duration, Instant};

/// The interval between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Calls `look` until it returns a value; panics with `what` after `timeout`.
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
