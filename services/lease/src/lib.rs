#![doc = include_str!("../README.md")]

mod contact;
mod due;
mod ladder;
mod length;
mod record;
mod terms;

pub use contact::{InvalidAddress, MailAddress};
pub use due::{Due, Step};
pub use ladder::{Ladder, LadderError};
pub use length::{InvalidLength, Length};
pub use record::{ExtendError, Extension, Lease, Taken, UndoError, Wanted, Warned};
pub use terms::{TermError, Terms, TermsError};

use jiff::{SignedDuration, Timestamp};

/// Returns `at` plus `length`, limited to the latest time that a `Timestamp` can hold.
fn after(at: Timestamp, length: SignedDuration) -> Timestamp {
    at.saturating_add(length).unwrap_or(Timestamp::MAX)
}

/// Returns `at` minus `length`, limited to the earliest time that a `Timestamp` can hold.
fn before(at: Timestamp, length: SignedDuration) -> Timestamp {
    at.saturating_sub(length).unwrap_or(Timestamp::MIN)
}
