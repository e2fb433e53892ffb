//! Decides which stage of a lease is due now, and when to look again.

use jiff::{SignedDuration, Timestamp};

use crate::timestamp::{after, before};
use crate::{Lease, LeaseSchedule, LeaseStage, StagesTaken};

/// The result of looking at a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Now(LeaseStage),
    /// No stage is due before this time.
    At(Timestamp),
    /// No stage is left: the resource is being deleted.
    Nothing,
}

impl LeaseSchedule {
    /// Decides which stage of `lease` is due at `now`.
    ///
    /// No lease ends, and no resource is deleted, before a warning was recorded at least one notice earlier, however long the conductor was
    /// down and wherever the clock jumped. Several missed warnings are given as one. If the clock went back, no stage is due before its
    /// time comes again, and a record with a time in the future is ignored as soon as its stage would count: the warning is then repeated.
    pub fn due(&self, lease: &Lease, now: Timestamp) -> Due {
        match lease.taken {
            StagesTaken { deleted_at: Some(_), .. } => Due::Nothing,
            StagesTaken { ended_at: Some(ended_at), .. } => {
                self.due_after_end(&lease.taken, ended_at, now)
            }
            StagesTaken { .. } => self.due_before_end(lease, now),
        }
    }

    /// Returns when `lease` ends, as far as known at `now`: at `until`, or one notice after the first warning if that warning came late.
    pub fn ends_at(&self, lease: &Lease, now: Timestamp) -> Timestamp {
        let warned = lease.taken.warned.map(|it| it.first).filter(|first| *first <= now);
        let first = warned.unwrap_or_else(|| self.first_warning(lease).max(now));
        lease.until.max(after(first, self.notice_of(lease)))
    }

    /// Returns when a resource is deleted whose lease ended at `ended_at`, provided that the warning of the deletion comes in time.
    pub fn deleted_at(&self, ended_at: Timestamp) -> Timestamp {
        after(ended_at, self.undo_window.as_duration())
    }

    fn due_before_end(&self, lease: &Lease, now: Timestamp) -> Due {
        let ends_at = self.ends_at(lease, now);
        let warn = Due::Now(LeaseStage::Warn { ends_at });
        let Some(warned) = lease.taken.warned else {
            let first = self.first_warning(lease);
            return if first <= now { warn } else { Due::At(first) };
        };
        let is_believed = warned.first <= now;
        if is_believed && ends_at <= now {
            return Due::Now(LeaseStage::SwitchOff { deleted_at: self.deleted_at(now) });
        }
        if !is_believed && lease.until <= now {
            return warn;
        }
        let mut untold = self.warnings(lease).filter(|at| warned.last < *at);
        if untold.any(|at| at <= now) {
            return warn;
        }
        let untold = self.warnings(lease).filter(|at| warned.last < *at);
        let end = if is_believed { ends_at } else { lease.until };
        Due::At(untold.fold(end, Timestamp::min))
    }

    fn due_after_end(&self, taken: &StagesTaken, ended_at: Timestamp, now: Timestamp) -> Due {
        if self.keep_copy && taken.copied_at.is_none() {
            return Due::Now(LeaseStage::Snapshot);
        }
        let notice = self.notice.as_duration().min(self.undo_window.as_duration() / 2);
        let closes = self.deleted_at(ended_at);
        let warning = before(closes, notice);
        if now < warning {
            return Due::At(warning);
        }
        match taken.warned_of_deletion_at.filter(|at| *at <= now) {
            None => {
                let deleted_at = closes.max(after(now, notice));
                Due::Now(LeaseStage::WarnOfDeletion { deleted_at })
            }
            Some(at) => match closes.max(after(at, notice)) {
                deleted_at if deleted_at <= now => Due::Now(LeaseStage::Delete),
                deleted_at => Due::At(deleted_at),
            },
        }
    }

    /// Returns the least time between the first warning and the end of `lease`.
    fn notice_of(&self, lease: &Lease) -> SignedDuration {
        let half = lease.until.duration_since(lease.since) / 2;
        self.notice.as_duration().min(half.max(SignedDuration::ZERO))
    }

    /// Returns when the configured warnings are due within the current term of `lease`.
    fn warnings(&self, lease: &Lease) -> impl Iterator<Item = Timestamp> {
        let (since, until) = (lease.since, lease.until);
        let all = self.warn_before.iter().map(move |it| before(until, it.as_duration()));
        // A warning before the beginning of the term makes no sense: a lessee who asked for one day a minute ago needs no "ends within 7
        // days".
        all.filter(move |at| since < *at)
    }

    fn first_warning(&self, lease: &Lease) -> Timestamp {
        let latest = before(lease.until, self.notice_of(lease));
        self.warnings(lease).fold(latest, Timestamp::min)
    }
}

#[cfg(test)]
mod tests;
