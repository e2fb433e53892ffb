//! A process of a service, as far as the other processes concern it.

use std::sync::Arc;

use database::conductors::{Conductors, NewConductor};
use jiff::Timestamp;
use reconcile::Watch;
use sealing::Keyring;

use crate::membership::Membership;
use crate::share::ShareKey;

/// A process of a service that shares its work with others.
pub trait Participant: Send + Sync + 'static {
    /// The keys of the resources that have turns.
    type Key: ShareKey;

    /// The share of this process.
    fn membership(&self) -> &Membership<Self::Key>;

    /// The table of the conductors.
    fn conductors(&self) -> Conductors;

    /// Told whether the database answers.
    fn watch(&self) -> &Watch;

    /// The keys that seal secrets in the database; `None` if nothing is sealed.
    fn keyring(&self) -> Option<&Arc<Keyring>>;

    /// The current time.
    fn now(&self) -> Timestamp;

    /// Gives a resource a turn soon, because another process has recorded something for it.
    fn wake(&self, key: Self::Key);

    /// Does a task soon if it belongs to this process, because another process has recorded something for the task.
    fn hear(&self, task: &str);

    /// Conductors came or went, and the share of this process became smaller, or stayed.
    fn share_narrowed(&self);

    /// The share of this process is complete.
    fn share_confirmed(&self);
}

/// A process that asks for a lease.
#[derive(Clone, Debug)]
pub struct Applicant {
    /// The name of the program.
    pub program: &'static str,
    /// The difference to a conductor with another key, and what to do about it; the end of a sentence that begins with the other conductor.
    pub other_key: &'static str,
    /// The row of the process.
    pub new: NewConductor,
}
