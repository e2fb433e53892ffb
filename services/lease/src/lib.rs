#![doc = include_str!("../README.md")]

mod contact;
mod due;
mod ladder;
mod length;
mod record;
mod stage;
mod terms;
mod timestamp;

pub use contact::{InvalidAddress, MailAddress};
pub use due::Due;
pub use ladder::{Ladder, LadderError};
pub use length::{InvalidLength, Length};
pub use record::{ExtendError, Extension, Lease, Taken, UndoError, Wanted, Warned};
pub use stage::Step;
pub use terms::{TermError, Terms, TermsError};
