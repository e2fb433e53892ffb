//! A lease: until when something is lent, and what of its end was already done.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Ladder, Length, Step, Terms, after};

/// Until when something is lent, and what of its end was already done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// When it was first lent.
    pub granted_at: Timestamp,
    /// When the term began that ends at `until`: when it was lent or last extended.
    pub since: Timestamp,
    /// When it ends.
    pub until: Timestamp,
    /// Who extended it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended: Option<Extension>,
    /// What of its end was already done.
    #[serde(default)]
    pub taken: Taken,
}

/// Who extended a lease, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// Who; a user's id.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// What of a lease's end was already done; each is written down before it has any effect, but for the copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Taken {
    /// Its owner was warned that it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warned: Option<Warned>,
    /// It ended: the thing is to be off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// A copy of it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied_at: Option<Timestamp>,
    /// Its owner was warned that it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warned_of_deletion_at: Option<Timestamp>,
    /// It is to be deleted; nothing can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

/// When somebody was warned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warned {
    /// The first time: the notice counts from here.
    pub first: Timestamp,
    /// The last time.
    pub last: Timestamp,
}

/// How a thing has to be by its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// As its owner wants it.
    AsAsked,
    /// Shut off.
    Off,
    /// Deleted.
    Gone,
}

/// Why a lease is not extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtendError {
    /// It would end at once.
    #[error("it would end at {until}, which is in the past")]
    InThePast {
        /// What was asked for.
        until: Timestamp,
    },
    /// Nothing is lent for that long.
    #[error("nothing is lent for longer than {longest} from now, which is until {latest}")]
    TooLong {
        /// The longest lease.
        longest: Length,
        /// The latest end that may be asked for now.
        latest: Timestamp,
    },
    /// Nothing is lent for less.
    #[error("nothing is lent for less than {shortest} from now, which is until {earliest}")]
    TooShort {
        /// The shortest lease.
        shortest: Length,
        /// The earliest end that may be asked for now.
        earliest: Timestamp,
    },
    /// It is being deleted.
    #[error("it is being deleted, which cannot be undone")]
    TooLate,
}

/// Why the end of a lease is not undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// It has not ended.
    #[error("its lease has not ended: there is nothing to undo")]
    NotEnded,
    /// It is being deleted.
    #[error("it is being deleted, which cannot be undone")]
    TooLate,
}

impl Lease {
    /// One that begins at `now`.
    pub fn new(now: Timestamp, length: Length) -> Lease {
        let until = after(now, length.as_duration());
        Lease { granted_at: now, since: now, until, extended: None, taken: Taken::default() }
    }

    /// How the thing has to be.
    pub fn wanted(&self) -> Wanted {
        match self.taken {
            Taken { deleted_at: Some(_), .. } => Wanted::Gone,
            Taken { ended_at: Some(_), .. } => Wanted::Off,
            Taken { .. } => Wanted::AsAsked,
        }
    }

    /// It, once `step` was taken at `now`.
    ///
    /// To be written in one transaction with the event and the notices that tell of it; what has to happen to the thing
    /// follows from `wanted`. A copy alone is made first and written down then.
    pub fn taken(&self, step: &Step, now: Timestamp) -> Lease {
        let mut taken = self.taken;
        match step {
            Step::Warn { .. } => {
                let first = taken.warned.map(|it| it.first).filter(|first| *first <= now);
                taken.warned = Some(Warned { first: first.unwrap_or(now), last: now });
            }
            Step::ShutOff { .. } => taken.ended_at = Some(now),
            Step::KeepCopy => taken.copied_at = Some(now),
            Step::WarnOfDeletion { .. } => taken.warned_of_deletion_at = Some(now),
            Step::Delete => taken.deleted_at = Some(now),
        }
        Lease { taken, ..self.clone() }
    }

    /// It, extended at `now` until `until` by the user `by`; as it is if it lasts that long anyway.
    ///
    /// A lease's length is counted from the moment of asking: what somebody still wants can be kept, and what nobody asks
    /// for any more ends within the longest lease. How much may be kept is for quotas to say. Extending after the end and
    /// before the deletion undoes the end.
    pub fn extended(
        &self,
        until: Timestamp,
        by: &str,
        terms: Terms,
        now: Timestamp,
    ) -> Result<Lease, ExtendError> {
        match self.wanted() {
            Wanted::Gone => return Err(ExtendError::TooLate),
            Wanted::AsAsked if until <= self.until => return Ok(self.clone()),
            Wanted::AsAsked | Wanted::Off => {}
        }
        if until <= now {
            return Err(ExtendError::InThePast { until });
        }
        match terms.longest().zip(terms.latest(now)) {
            Some((longest, latest)) if until > latest => {
                Err(ExtendError::TooLong { longest, latest })
            }
            Some(_) | None if until < terms.earliest(now) => Err(ExtendError::TooShort {
                shortest: terms.shortest(),
                earliest: terms.earliest(now),
            }),
            Some(_) | None => Ok(self.lent_again(until, by, now)),
        }
    }

    /// It, with its end undone at `now` by the user `by`: lent again for as long as `ladder` gives, and no longer than
    /// `terms` allow.
    pub fn undone(
        &self,
        by: &str,
        ladder: &Ladder,
        terms: Terms,
        now: Timestamp,
    ) -> Result<Lease, UndoError> {
        match self.wanted() {
            Wanted::AsAsked => Err(UndoError::NotEnded),
            Wanted::Gone => Err(UndoError::TooLate),
            Wanted::Off => {
                let gives = after(now, ladder.undo_gives.as_duration());
                let until = terms.latest(now).map_or(gives, |latest| gives.min(latest));
                // Where the clock went back, the end may be yet to come.
                Ok(self.lent_again(until.max(self.until), by, now))
            }
        }
    }

    fn lent_again(&self, until: Timestamp, by: &str, now: Timestamp) -> Lease {
        let extended = Some(Extension { by: by.to_owned(), at: now });
        let granted_at = self.granted_at;
        Lease { granted_at, since: now, until, extended, taken: Taken::default() }
    }
}

#[cfg(test)]
mod tests;
