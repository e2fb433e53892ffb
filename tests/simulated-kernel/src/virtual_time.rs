//! The virtual time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The virtual time in nanoseconds.
static NOW: AtomicU64 = AtomicU64::new(0);

/// How far each look at a clock moves it, so that a program that waits for a time by looking at the clock goes on, and no two times are the
/// same.
const TICK: u64 = 1000;

pub(crate) fn now() -> u64 {
    NOW.load(Ordering::Relaxed)
}

pub(crate) fn set(now: u64) {
    NOW.store(now, Ordering::Relaxed);
}

/// Returns the time, which passes a little.
pub(crate) fn tick() -> u64 {
    NOW.fetch_add(TICK, Ordering::Relaxed)
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}
