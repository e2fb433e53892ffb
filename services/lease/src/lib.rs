#![doc = include_str!("../README.md")]

mod due;
mod length;
mod mail_address;
mod record;
mod schedule;
mod stage;
mod terms;
mod timestamp;

pub use due::Due;
pub use length::{InvalidLength, Length};
pub use mail_address::{InvalidAddress, MailAddress};
pub use record::{ExtendError, Extension, Lease, RequiredState, StagesTaken, UndoError, Warned};
pub use schedule::{LeaseSchedule, ScheduleError};
pub use stage::LeaseStage;
pub use terms::{TermError, Terms, TermsError};
