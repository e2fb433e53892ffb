//! What is to be done about a lease now, and when to look again.

use jiff::{SignedDuration, Timestamp};

use crate::{Ladder, Lease, Taken, after, before};

/// What is to be done about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This, now.
    Now(Step),
    /// Nothing before that.
    At(Timestamp),
    /// Nothing any more: it is being deleted.
    Nothing,
}

/// One rung of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its owner is told that it ends.
    Warn {
        /// When.
        ends_at: Timestamp,
    },
    /// It is shut off, and its owner told when it is deleted.
    ShutOff {
        /// When it is deleted.
        deleted_at: Timestamp,
    },
    /// A copy of it is made. It stays until there is one.
    KeepCopy,
    /// Its owner is told that it is deleted.
    WarnOfDeletion {
        /// When.
        deleted_at: Timestamp,
    },
    /// It is deleted.
    Delete,
}

impl Ladder {
    /// What is to be done about `lease` at `now`.
    ///
    /// Nothing ends of which no warning was written down at least the notice before, however long nobody watched and
    /// wherever the clock jumped. Warnings that were missed are one warning. Where the clock went back nothing is done, and
    /// what was written down at a time that has not come yet is not believed once it would count.
    pub fn due(&self, lease: &Lease, now: Timestamp) -> Due {
        match lease.taken {
            Taken { deleted_at: Some(_), .. } => Due::Nothing,
            Taken { ended_at: Some(ended_at), .. } => {
                self.due_after_end(&lease.taken, ended_at, now)
            }
            Taken { .. } => self.due_before_end(lease, now),
        }
    }

    /// When `lease` ends, as far as is known at `now`: at its time, or later for who was warned late.
    pub fn ends_at(&self, lease: &Lease, now: Timestamp) -> Timestamp {
        let warned = lease.taken.warned.map(|it| it.first).filter(|first| *first <= now);
        let first = warned.unwrap_or_else(|| self.first_warning(lease).max(now));
        lease.until.max(after(first, self.notice_of(lease)))
    }

    /// When a thing is deleted whose lease ended at `ended_at`, if its owner is warned of it in time.
    pub fn deleted_at(&self, ended_at: Timestamp) -> Timestamp {
        after(ended_at, self.undo_window.as_duration())
    }

    fn due_before_end(&self, lease: &Lease, now: Timestamp) -> Due {
        let ends_at = self.ends_at(lease, now);
        let warn = Due::Now(Step::Warn { ends_at });
        let Some(warned) = lease.taken.warned else {
            let first = self.first_warning(lease);
            return if first <= now { warn } else { Due::At(first) };
        };
        let is_believed = warned.first <= now;
        if is_believed && ends_at <= now {
            return Due::Now(Step::ShutOff { deleted_at: self.deleted_at(now) });
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

    fn due_after_end(&self, taken: &Taken, ended_at: Timestamp, now: Timestamp) -> Due {
        if self.keep_copy && taken.copied_at.is_none() {
            return Due::Now(Step::KeepCopy);
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
                Due::Now(Step::WarnOfDeletion { deleted_at })
            }
            Some(at) => match closes.max(after(at, notice)) {
                deleted_at if deleted_at <= now => Due::Now(Step::Delete),
                deleted_at => Due::At(deleted_at),
            },
        }
    }

    /// The least time between the first warning and the end of `lease`.
    fn notice_of(&self, lease: &Lease) -> SignedDuration {
        let half = lease.until.duration_since(lease.since) / 2;
        self.notice.as_duration().min(half.max(SignedDuration::ZERO))
    }

    /// When warnings are due within the term of `lease`, if it is early enough for its notice.
    fn warnings(&self, lease: &Lease) -> impl Iterator<Item = Timestamp> {
        let (since, until) = (lease.since, lease.until);
        let all = self.warn_before.iter().map(move |it| before(until, it.as_duration()));
        // Who asked for a day a minute ago is not told that it ends within a week.
        all.filter(move |at| since < *at)
    }

    fn first_warning(&self, lease: &Lease) -> Timestamp {
        let latest = before(lease.until, self.notice_of(lease));
        self.warnings(lease).fold(latest, Timestamp::min)
    }
}

#[cfg(test)]
mod tests;
