//! The lease record: until when a resource is lent, and which stages of the end have been taken.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::timestamp::after;
use crate::{LeaseSchedule, LeaseStage, Length, TermError, Terms};

/// The lease of one resource: until when the resource is lent, and which stages of the end have been taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// When the resource was first lent. Extensions do not change this time.
    pub granted_at: Timestamp,
    /// When the current term began: when the resource was lent or last extended.
    pub since: Timestamp,
    /// When the current term ends.
    pub until: Timestamp,
    /// The last extension, if there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended: Option<Extension>,
    /// The stages of the end that have been taken in the current term.
    #[serde(default)]
    pub taken: StagesTaken,
}

/// One extension of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// The id of the user who extended the lease.
    pub by: String,
    pub at: Timestamp,
}

/// The stages of a lease's end that have been taken. Every stage is recorded before its effect, except the snapshot, which is recorded
/// afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StagesTaken {
    /// The warnings that the lease ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warned: Option<Warned>,
    /// When the lease ended. From then on the resource has to be off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When the snapshot was found complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied_at: Option<Timestamp>,
    /// When the lessee was warned that the resource will be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warned_of_deletion_at: Option<Timestamp>,
    /// When the deletion was ordered. From then on nothing can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

/// When the lessee was warned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warned {
    /// The first warning. The notice counts from here.
    pub first: Timestamp,
    pub last: Timestamp,
}

/// The state that a lease requires of its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredState {
    /// The lease does not interfere: the resource is in the state that its lessee asks for.
    AsRequested,
    Off,
    Deleted,
}

/// Why a lease cannot be extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtendError {
    #[error("the new end {until} is in the past")]
    InThePast {
        /// The end that the caller asked for.
        until: Timestamp,
    },
    #[error("a lease lasts at most {longest} from now; request an end no later than {latest}")]
    TooLong {
        longest: Length,
        /// The latest end that a caller can ask for now.
        latest: Timestamp,
    },
    #[error(
        "a lease lasts at least {shortest} from now; request an end no earlier than {earliest}"
    )]
    TooShort {
        shortest: Length,
        /// The earliest end that a caller can ask for now.
        earliest: Timestamp,
    },
    #[error("the resource is being deleted, which cannot be undone")]
    TooLate,
}

/// Why the end of a lease cannot be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    #[error("the lease has not ended: there is nothing to undo")]
    NotEnded,
    #[error("the resource is being deleted, which cannot be undone")]
    TooLate,
}

impl Lease {
    /// Starts a lease of `length` at `now`.
    pub fn new(now: Timestamp, length: Length) -> Lease {
        let until = after(now, length.as_duration());
        Lease { granted_at: now, since: now, until, extended: None, taken: StagesTaken::default() }
    }

    /// Returns the state that the lease requires of its resource, computed from the stages taken.
    pub fn required_state(&self) -> RequiredState {
        match self.taken {
            StagesTaken { deleted_at: Some(_), .. } => RequiredState::Deleted,
            StagesTaken { ended_at: Some(_), .. } => RequiredState::Off,
            StagesTaken { .. } => RequiredState::AsRequested,
        }
    }

    /// Returns the lease with `step` recorded as taken at `now`.
    ///
    /// The caller writes the returned lease in one transaction with the event and the notices about `step`, then brings the resource into
    /// the state that `wanted` returns. Only the snapshot is made first and recorded afterwards.
    pub fn with_stage_taken(&self, step: &LeaseStage, now: Timestamp) -> Lease {
        let mut taken = self.taken;
        match step {
            LeaseStage::Warn { .. } => {
                let first = taken.warned.map(|it| it.first).filter(|first| *first <= now);
                taken.warned = Some(Warned { first: first.unwrap_or(now), last: now });
            }
            LeaseStage::SwitchOff { .. } => taken.ended_at = Some(now),
            LeaseStage::Snapshot => taken.copied_at = Some(now),
            LeaseStage::WarnOfDeletion { .. } => taken.warned_of_deletion_at = Some(now),
            LeaseStage::Delete => taken.deleted_at = Some(now),
        }
        Lease { taken, ..self.clone() }
    }

    /// Returns the lease extended at `now` until `until` by the user `by`. A lease that already lasts that long is returned unchanged.
    ///
    /// The longest lease is counted from `now`, not from the first loan: a lessee who keeps asking can keep a resource for ever, and a
    /// resource nobody asks for ends within the longest lease. Limiting how much one lessee keeps is the task of quotas. An extension
    /// between the end and the deletion undoes the end.
    pub fn extended(
        &self,
        until: Timestamp,
        by: &str,
        terms: Terms,
        now: Timestamp,
    ) -> Result<Lease, ExtendError> {
        match self.required_state() {
            RequiredState::Deleted => return Err(ExtendError::TooLate),
            RequiredState::AsRequested if until <= self.until => return Ok(self.clone()),
            RequiredState::AsRequested | RequiredState::Off => {}
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

    /// Returns the lease with its end undone at `now` by the user `by`: the resource is lent again for `undo_gives` of `schedule`, and no
    /// longer than `terms` allow.
    pub fn undone(
        &self,
        by: &str,
        schedule: &LeaseSchedule,
        terms: Terms,
        now: Timestamp,
    ) -> Result<Lease, UndoError> {
        match self.required_state() {
            RequiredState::AsRequested => Err(UndoError::NotEnded),
            RequiredState::Deleted => Err(UndoError::TooLate),
            RequiredState::Off => {
                let gives = after(now, schedule.undo_gives.as_duration());
                let until = terms.latest(now).map_or(gives, |latest| gives.min(latest));
                // If the clock went back after the switch-off, `self.until` can be later than the new end; keep the later one.
                Ok(self.lent_again(until.max(self.until), by, now))
            }
        }
    }

    fn lent_again(&self, until: Timestamp, by: &str, now: Timestamp) -> Lease {
        let extended = Some(Extension { by: by.to_owned(), at: now });
        let granted_at = self.granted_at;
        Lease { granted_at, since: now, until, extended, taken: StagesTaken::default() }
    }
}

impl Terms {
    /// Grants a lease at `now` to a caller who asked for `asked`; `None` means that the resource is lent without end.
    ///
    /// A caller who names no length gets the default, or the longest lease if there is no default.
    pub fn grant(self, asked: Option<Length>, now: Timestamp) -> Result<Option<Lease>, TermError> {
        Ok(self.length(asked)?.map(|length| Lease::new(now, length)))
    }
}

#[cfg(test)]
mod tests;
