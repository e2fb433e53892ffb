//! Property tests: no lease ends without a warning, whatever the clock does and whenever nobody looks.

#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use jiff::{SignedDuration, Timestamp};
use lease::{Due, Lease, LeaseSchedule, LeaseStage, Length, RequiredState, Terms};
use proptest::prelude::*;

fn hours(hours: u64) -> Length {
    Length::from_secs(hours * 3600).unwrap()
}

/// Any valid configuration of the stages.
fn schedules() -> impl Strategy<Value = LeaseSchedule> {
    let warnings = proptest::collection::vec(1_u64..300, 0..4);
    (warnings, 1_u64..100, 1_u64..200, any::<bool>()).prop_filter_map(
        "the earliest warning is too late",
        |(warnings, notice, undo, keep_copy)| {
            let warn_before: Vec<String> = warnings.iter().map(|it| format!("{it}h")).collect();
            let raw = serde_json::json!({
                "warn_before": warn_before,
                "notice": format!("{notice}h"),
                "undo_window": format!("{undo}h"),
                "keep_copy": keep_copy,
            });
            serde_json::from_value(raw).ok()
        },
    )
}

/// One thing that happens between two looks at a lease.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// The clock moves by this many minutes, also backwards.
    Clock(i64),
    /// Time passes until the next stage is due.
    WaitForDue,
    /// The lessee extends to this many hours from now.
    Extend(u64),
    /// The lessee undoes the end.
    Undo,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => (0_i64..6000).prop_map(Move::Clock),
        1 => (-20_000_i64..60_000).prop_map(Move::Clock),
        6 => Just(Move::WaitForDue),
        1 => (1_u64..400).prop_map(Move::Extend),
        1 => Just(Move::Undo),
    ];
    proptest::collection::vec(one, 1..80)
}

/// A lease that is looked at repeatedly, with the stages taken so far.
struct WatchedLease {
    schedule: LeaseSchedule,
    lease: Lease,
    now: Timestamp,
    /// Every stage taken since the last extension or undo, with the time when it was taken.
    log: Vec<(Timestamp, LeaseStage)>,
}

impl WatchedLease {
    /// Looks once and takes the stage that is due, if any.
    fn look(&mut self) -> Result<(), TestCaseError> {
        let Due::Now(step) = self.schedule.due(&self.lease, self.now) else { return Ok(()) };
        let (now, log) = (self.now, &self.log);
        let reported = |what: fn(&LeaseStage) -> Option<Timestamp>| {
            log.iter().filter_map(move |(at, step)| what(step).map(|promised| (*at, promised)))
        };
        let of_end = |step: &LeaseStage| match step {
            LeaseStage::Warn { ends_at } => Some(*ends_at),
            LeaseStage::SwitchOff { .. }
            | LeaseStage::Snapshot
            | LeaseStage::WarnOfDeletion { .. }
            | LeaseStage::Delete => None,
        };
        let of_deletion = |step: &LeaseStage| match step {
            LeaseStage::WarnOfDeletion { deleted_at } => Some(*deleted_at),
            LeaseStage::Warn { .. }
            | LeaseStage::SwitchOff { .. }
            | LeaseStage::Snapshot
            | LeaseStage::Delete => None,
        };
        match step {
            LeaseStage::Warn { ends_at } => {
                prop_assert!(ends_at >= self.lease.until);
                prop_assert!(ends_at > now, "who is warned has time left");
            }
            LeaseStage::SwitchOff { deleted_at } => {
                prop_assert!(now >= self.lease.until, "nothing ends early");
                // No sooner than the end that the last warning announced.
                let last = reported(of_end).next_back();
                prop_assert!(last.is_some_and(|(_, ends_at)| ends_at <= now));
                prop_assert!(deleted_at > now);
            }
            LeaseStage::Snapshot => {
                prop_assert_eq!(self.lease.required_state(), RequiredState::Off)
            }
            LeaseStage::WarnOfDeletion { deleted_at } => {
                prop_assert_eq!(self.lease.required_state(), RequiredState::Off);
                prop_assert!(deleted_at > now);
            }
            LeaseStage::Delete => {
                let last = reported(of_deletion).next_back();
                prop_assert!(last.is_some_and(|(_, deleted_at)| deleted_at <= now));
                let ended =
                    log.iter().find(|(_, step)| matches!(step, LeaseStage::SwitchOff { .. }));
                let ended = ended.map(|(at, _)| *at);
                let window = self.schedule.undo_window().as_duration();
                prop_assert!(ended.is_some_and(|at| now.duration_since(at) >= window));
            }
        }
        self.lease = self.lease.with_stage_taken(&step, now);
        self.log.push((now, step));
        // A stage that was just taken is not due again.
        prop_assert_ne!(self.schedule.due(&self.lease, now), Due::Now(step));
        Ok(())
    }
}

proptest! {
    #[test]
    fn nothing_ends_unwarned(schedule in schedules(), length in 1_u64..500, moves in moves()) {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let lease = Lease::new(now, hours(length));
        let mut watched = WatchedLease { schedule, lease, now, log: Vec::new() };
        for one in moves {
            match one {
                Move::Clock(minutes) => watched.now += SignedDuration::from_mins(minutes),
                Move::WaitForDue => match watched.schedule.due(&watched.lease, watched.now) {
                    Due::At(at) => {
                        prop_assert!(at > watched.now, "who is told to wait is told for how long");
                        watched.now = at;
                    }
                    Due::Now(_) | Due::Nothing => {}
                },
                Move::Extend(more) => {
                    let until = watched.now + hours(more).as_duration();
                    let extended = watched.lease.extended(until, "u", Terms::default(), watched.now);
                    prop_assert_eq!(extended.is_err(), watched.lease.required_state() == RequiredState::Deleted);
                    let Ok(extended) = extended else { continue };
                    prop_assert!(extended.until >= until.min(watched.lease.until));
                    if extended != watched.lease {
                        watched.log.clear();
                    }
                    watched.lease = extended;
                }
                Move::Undo => {
                    let undone = watched.lease.undone("u", &watched.schedule, Terms::default(), watched.now);
                    prop_assert_eq!(undone.is_ok(), watched.lease.required_state() == RequiredState::Off);
                    if let Ok(undone) = undone {
                        watched.lease = undone;
                        watched.log.clear();
                    }
                }
            }
            watched.look()?;
        }
    }

    #[test]
    fn looking_at_every_due_time_ends_and_deletes_on_time(schedule in schedules(), length in 1_u64..500) {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let lease = Lease::new(now, hours(length));
        let until = lease.until;
        let undo_window = schedule.undo_window().as_duration();
        let mut watched = WatchedLease { schedule, lease, now, log: Vec::new() };
        for _ in 0..40 {
            watched.look()?;
            if let Due::At(at) = watched.schedule.due(&watched.lease, watched.now) {
                watched.now = at;
            }
        }
        prop_assert_eq!(watched.lease.required_state(), RequiredState::Deleted);
        // A conductor that looks at every due time is never late.
        prop_assert_eq!(watched.lease.taken.ended_at, Some(until));
        prop_assert_eq!(watched.lease.taken.deleted_at, Some(until + undo_window));
    }
}
