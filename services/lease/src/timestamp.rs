//! Sums of times and lengths, limited to the times that a `Timestamp` can hold.

use jiff::{SignedDuration, Timestamp};

/// Returns `at` plus `length`, limited to the latest time that a `Timestamp` can hold.
pub(crate) fn after(at: Timestamp, length: SignedDuration) -> Timestamp {
    at.saturating_add(length).unwrap_or(Timestamp::MAX)
}

/// Returns `at` minus `length`, limited to the earliest time that a `Timestamp` can hold.
pub(crate) fn before(at: Timestamp, length: SignedDuration) -> Timestamp {
    at.saturating_sub(length).unwrap_or(Timestamp::MIN)
}
