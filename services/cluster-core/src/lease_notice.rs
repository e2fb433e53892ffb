//! The texts of the stages of a lease.

use jiff::Timestamp;
use lease::LeaseStage;

use crate::Severity;

/// The texts of a lease stage: for events, for notices and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseNotice {
    /// The reason of the event: `LeaseEnds`.
    pub reason: &'static str,
    /// The event of the notice: `lease.ends`.
    pub event: &'static str,
    pub severity: Severity,
    pub message: String,
    /// When the announced switch-off or deletion happens.
    pub happens_at: Option<Timestamp>,
}

/// Returns the texts of a lease stage. The texts speak of the cluster's servers and of everything in the cluster.
pub fn lease_notice(step: LeaseStage) -> LeaseNotice {
    let reported = |reason, event, severity, happens_at, message| LeaseNotice {
        reason,
        event,
        severity,
        message,
        happens_at,
    };
    match step {
        LeaseStage::Warn { ends_at } => reported(
            "LeaseEnds",
            "lease.ends",
            Severity::Warning,
            Some(ends_at),
            format!(
                "the lease ends at {}: the members are switched off then; extend the lease to keep them running",
                second(ends_at)
            ),
        ),
        LeaseStage::SwitchOff { deleted_at } => reported(
            "LeaseEnded",
            "lease.ended",
            Severity::Warning,
            Some(deleted_at),
            format!(
                "the lease has ended: the members are switched off, and deleted at {}; extend the lease or undo its end \
                 to keep the cluster",
                second(deleted_at)
            ),
        ),
        LeaseStage::Snapshot => reported(
            "CopyKept",
            "lease.copy_kept",
            Severity::Info,
            None,
            "the lease has ended: a snapshot was made".to_owned(),
        ),
        LeaseStage::WarnOfDeletion { deleted_at } => reported(
            "DeletionNear",
            "lease.deletion_near",
            Severity::Warning,
            Some(deleted_at),
            format!(
                "the lease has ended: the cluster is deleted at {} with everything in it; extend the lease or undo its \
                 end to keep the cluster",
                second(deleted_at)
            ),
        ),
        LeaseStage::Delete => reported(
            "LeaseDeleted",
            "lease.deleted",
            Severity::Warning,
            None,
            "the lease has ended, and the undo window is over: the cluster is deleted".to_owned(),
        ),
    }
}

/// Rounds to the second, because fractions only make a time hard to read.
pub(crate) fn second(at: Timestamp) -> Timestamp {
    at.round(jiff::Unit::Second).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_in_a_notice_are_whole_seconds() {
        let at: Timestamp = "2026-03-01T12:00:00.6Z".parse().unwrap();
        let stages = [
            LeaseStage::Warn { ends_at: at },
            LeaseStage::SwitchOff { deleted_at: at },
            LeaseStage::WarnOfDeletion { deleted_at: at },
        ];
        for stage in stages {
            let notice = lease_notice(stage);
            assert!(notice.message.contains(" at 2026-03-01T12:00:01Z"), "{}", notice.message);
            assert_eq!(notice.happens_at, Some(at));
        }
    }
}
