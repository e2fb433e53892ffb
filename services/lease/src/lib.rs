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

/// `length` after `at`, as far as time goes.
fn after(at: Timestamp, length: SignedDuration) -> Timestamp {
    at.saturating_add(length).unwrap_or(Timestamp::MAX)
}

/// `length` before `at`, as far as time goes.
fn before(at: Timestamp, length: SignedDuration) -> Timestamp {
    at.saturating_sub(length).unwrap_or(Timestamp::MIN)
}
