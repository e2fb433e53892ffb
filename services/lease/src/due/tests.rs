use super::*;
use crate::{Length, Warned};

/// The moment `hours` hours after the epoch.
fn at(hours: i64) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(hours))
}

fn hours(hours: u64) -> Length {
    Length::from_secs(hours * 3600).unwrap()
}

/// Warnings 48 h and 4 h before the end, 12 h notice, an undo window of 20 h.
fn schedule() -> LeaseSchedule {
    let warn_before = vec![hours(48), hours(4)];
    let (notice, undo_window, undo_gives) = (hours(12), hours(20), hours(24));
    LeaseSchedule { warn_before, notice, undo_window, undo_gives, keep_copy: false }
}

/// A lease from hour 0 to hour 100.
fn lease() -> Lease {
    Lease::new(at(0), hours(100))
}

fn warned(first: i64, last: i64) -> Lease {
    let warned = Some(Warned { first: at(first), last: at(last) });
    Lease { taken: StagesTaken { warned, ..StagesTaken::default() }, ..lease() }
}

fn ended(ended_at: i64) -> Lease {
    let mut lease = warned(52, 96);
    lease.taken.ended_at = Some(at(ended_at));
    lease
}

fn last_warned(ended_at: i64, last: i64) -> Lease {
    let mut lease = ended(ended_at);
    lease.taken.warned_of_deletion_at = Some(at(last));
    lease
}

const fn warn(ends_at: Timestamp) -> Due {
    Due::Now(LeaseStage::Warn { ends_at })
}

fn shut_off(deleted_at: Timestamp) -> Due {
    Due::Now(LeaseStage::SwitchOff { deleted_at })
}

fn last_call(deleted_at: Timestamp) -> Due {
    Due::Now(LeaseStage::WarnOfDeletion { deleted_at })
}

/// Asserts what is due for `lease` at each hour of `rows`.
#[track_caller]
fn check(lease: &Lease, rows: &[(i64, Due)]) {
    for (hour, want) in rows {
        assert_eq!(schedule().due(lease, at(*hour)), *want, "at hour {hour}");
    }
}

#[test]
fn a_missed_first_warning_is_given_before_anything_ends() {
    check(
        &lease(),
        &[
            (0, Due::At(at(52))),
            (51, Due::At(at(52))),
            (52, warn(at(100))),
            (60, warn(at(100))),
            (88, warn(at(100))),
            // From here on less than the notice of 12 h is left before hour 100, so the end is postponed.
            (89, warn(at(101))),
            (100, warn(at(112))),
            (5000, warn(at(5012))),
        ],
    );
}

#[test]
fn the_second_warning_and_the_switch_off_follow_the_first_warning() {
    check(
        &warned(52, 52),
        &[
            (52, Due::At(at(96))),
            (95, Due::At(at(96))),
            (96, warn(at(100))),
            (99, warn(at(100))),
            (100, shut_off(at(120))),
            (300, shut_off(at(320))),
        ],
    );
    check(&warned(52, 97), &[(97, Due::At(at(100))), (100, shut_off(at(120)))]);
}

#[test]
fn a_late_warning_postpones_the_end_by_its_notice() {
    check(&warned(95, 95), &[(95, Due::At(at(96))), (96, warn(at(107)))]);
    check(
        &warned(95, 96),
        &[(96, Due::At(at(107))), (100, Due::At(at(107))), (107, shut_off(at(127)))],
    );
    // The conductor was down until long after the end: the missed warnings are given as one.
    check(&warned(500, 500), &[(501, Due::At(at(512))), (512, shut_off(at(532)))]);
}

#[test]
fn a_warning_recorded_in_the_future_is_repeated_at_the_end() {
    let jumped = warned(500, 500);
    check(
        &jumped,
        &[
            (10, Due::At(at(100))),
            (99, Due::At(at(100))),
            (100, warn(at(112))),
            (200, warn(at(212))),
        ],
    );
    let again = jumped.with_stage_taken(&LeaseStage::Warn { ends_at: at(112) }, at(100));
    assert_eq!(again.taken.warned, Some(Warned { first: at(100), last: at(100) }));
    check(&again, &[(101, Due::At(at(112))), (112, shut_off(at(132)))]);
}

#[test]
fn nothing_is_due_after_the_clock_went_back() {
    check(&warned(52, 52), &[(10, Due::At(at(96))), (51, Due::At(at(96)))]);
    check(&ended(100), &[(10, Due::At(at(110))), (99, Due::At(at(110)))]);
    check(&last_warned(100, 110), &[(10, Due::At(at(110))), (109, Due::At(at(110)))]);
}

#[test]
fn the_deletion_waits_for_its_own_warning() {
    // The notice of 12 h is longer than half of the 20 h window, so 10 h of notice apply.
    check(
        &ended(100),
        &[
            (100, Due::At(at(110))),
            (110, last_call(at(120))),
            (115, last_call(at(125))),
            (4000, last_call(at(4010))),
        ],
    );
    check(
        &last_warned(100, 110),
        &[(110, Due::At(at(120))), (119, Due::At(at(120))), (120, Due::Now(LeaseStage::Delete))],
    );
    check(
        &last_warned(100, 4000),
        &[
            (130, last_call(at(140))),
            (4009, Due::At(at(4010))),
            (4010, Due::Now(LeaseStage::Delete)),
        ],
    );
}

#[test]
fn nothing_is_due_once_the_deletion_is_ordered() {
    let mut lease = last_warned(100, 110);
    lease.taken.deleted_at = Some(at(120));
    check(&lease, &[(0, Due::Nothing), (120, Due::Nothing), (5000, Due::Nothing)]);
}

#[test]
fn a_copy_comes_before_the_deletion() {
    let schedule = LeaseSchedule { keep_copy: true, ..schedule() };
    let mut lease = last_warned(100, 110);
    for hour in [100, 110, 120, 500] {
        assert_eq!(schedule.due(&lease, at(hour)), Due::Now(LeaseStage::Snapshot));
    }
    lease = lease.with_stage_taken(&LeaseStage::Snapshot, at(121));
    assert_eq!(schedule.due(&lease, at(121)), Due::Now(LeaseStage::Delete));
    assert_eq!(schedule.clone().without_snapshot().due(&ended(100), at(101)), Due::At(at(110)));
}

#[test]
fn a_short_lease_has_half_of_itself_as_notice() {
    // A lease of 8 h is too short for the warning 48 h before the end; the warning 4 h before fits the notice, which is half of 8 h.
    let lease = Lease::new(at(0), hours(8));
    check(&lease, &[(0, Due::At(at(4))), (4, warn(at(8))), (6, warn(at(10)))]);
    // A lease of 2 h is too short for both configured warnings.
    let lease = Lease::new(at(0), hours(2));
    check(&lease, &[(0, Due::At(at(1))), (1, warn(at(2)))]);
    let warned = lease.with_stage_taken(&LeaseStage::Warn { ends_at: at(2) }, at(1));
    check(&warned, &[(1, Due::At(at(2))), (2, shut_off(at(22)))]);
}

#[test]
fn a_warning_due_at_the_very_start_of_a_term_is_left_out() {
    // The warning 48 h before the end would come at hour 0, so the notice of 12 h counts instead.
    let lease = Lease::new(at(0), hours(48));
    check(&lease, &[(0, Due::At(at(36))), (36, warn(at(48)))]);
}

#[test]
fn without_configured_warnings_one_comes_a_notice_before_the_end() {
    let schedule = LeaseSchedule { warn_before: Vec::new(), ..schedule() };
    assert_eq!(schedule.due(&lease(), at(0)), Due::At(at(88)));
    assert_eq!(schedule.due(&lease(), at(88)), warn(at(100)));
}
