#![doc = include_str!("../README.md")]

mod clock;
mod exchange;
mod fence;
mod key_answers;
mod key_exchange;
mod last_renewals;
mod membership;
mod participant;
mod replica;
mod share;

pub use clock::now;
pub use database::conductors::{ConductorRow, Conductors, DrainOutcome, NewConductor};
pub use fence::{Fence, LeasePassed};
pub use key_exchange::rotate_key;
pub use membership::{Membership, TurnGuard};
pub use participant::{Applicant, Participant};
pub use replica::{LeaseRefused, run};
pub use share::{ConductorState, LivingConductor, LivingConductors, ShareKey};
