use super::*;
use crate::{Length, Warned};

/// Hours after the beginning.
fn at(hours: i64) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(hours))
}

fn hours(hours: u64) -> Length {
    Length::from_secs(hours * 3600).unwrap()
}

/// Warned 48 h and 4 h before, 12 h notice, 20 h to undo.
fn ladder() -> Ladder {
    let warn_before = vec![hours(48), hours(4)];
    let (notice, undo_window, undo_gives) = (hours(12), hours(20), hours(24));
    Ladder { warn_before, notice, undo_window, undo_gives, keep_copy: false }
}

/// From hour 0 to hour 100.
fn lease() -> Lease {
    Lease::new(at(0), hours(100))
}

fn warned(first: i64, last: i64) -> Lease {
    let warned = Some(Warned { first: at(first), last: at(last) });
    Lease { taken: Taken { warned, ..Taken::default() }, ..lease() }
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
    Due::Now(Step::Warn { ends_at })
}

fn shut_off(deleted_at: Timestamp) -> Due {
    Due::Now(Step::ShutOff { deleted_at })
}

fn last_call(deleted_at: Timestamp) -> Due {
    Due::Now(Step::WarnOfDeletion { deleted_at })
}

/// At which hour each is due.
#[track_caller]
fn check(lease: &Lease, rows: &[(i64, Due)]) {
    for (hour, want) in rows {
        assert_eq!(ladder().due(lease, at(*hour)), *want, "at hour {hour}");
    }
}

#[test]
fn who_was_not_warned_is_warned_first_however_late_it_is() {
    check(
        &lease(),
        &[
            (0, Due::At(at(52))),
            (51, Due::At(at(52))),
            (52, warn(at(100))),
            (60, warn(at(100))),
            (88, warn(at(100))),
            // Later than that and the end is put off.
            (89, warn(at(101))),
            (100, warn(at(112))),
            (5000, warn(at(5012))),
        ],
    );
}

#[test]
fn who_was_warned_is_warned_again_and_then_shut_off() {
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
fn who_was_warned_late_has_the_notice_first() {
    check(&warned(95, 95), &[(95, Due::At(at(96))), (96, warn(at(107)))]);
    check(
        &warned(95, 96),
        &[(96, Due::At(at(107))), (100, Due::At(at(107))), (107, shut_off(at(127)))],
    );
    // Nobody watched until long after the end: one warning for all.
    check(&warned(500, 500), &[(501, Due::At(at(512))), (512, shut_off(at(532)))]);
}

#[test]
fn a_warning_from_a_time_to_come_is_not_believed_at_the_end() {
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
    let again = jumped.taken(&Step::Warn { ends_at: at(112) }, at(100));
    assert_eq!(again.taken.warned, Some(Warned { first: at(100), last: at(100) }));
    check(&again, &[(101, Due::At(at(112))), (112, shut_off(at(132)))]);
}

#[test]
fn a_clock_that_goes_back_has_nothing_done() {
    check(&warned(52, 52), &[(10, Due::At(at(96))), (51, Due::At(at(96)))]);
    check(&ended(100), &[(10, Due::At(at(110))), (99, Due::At(at(110)))]);
    check(&last_warned(100, 110), &[(10, Due::At(at(110))), (109, Due::At(at(110)))]);
}

#[test]
fn what_is_shut_off_is_deleted_once_its_owner_was_warned_of_that() {
    // The window is 20 h, and its notice half of it.
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
        &[(110, Due::At(at(120))), (119, Due::At(at(120))), (120, Due::Now(Step::Delete))],
    );
    check(
        &last_warned(100, 4000),
        &[(130, last_call(at(140))), (4009, Due::At(at(4010))), (4010, Due::Now(Step::Delete))],
    );
}

#[test]
fn what_is_being_deleted_is_nobodys_concern() {
    let mut lease = last_warned(100, 110);
    lease.taken.deleted_at = Some(at(120));
    check(&lease, &[(0, Due::Nothing), (120, Due::Nothing), (5000, Due::Nothing)]);
}

#[test]
fn a_copy_comes_before_the_deletion() {
    let ladder = Ladder { keep_copy: true, ..ladder() };
    let mut lease = last_warned(100, 110);
    for hour in [100, 110, 120, 500] {
        assert_eq!(ladder.due(&lease, at(hour)), Due::Now(Step::KeepCopy));
    }
    lease = lease.taken(&Step::KeepCopy, at(121));
    assert_eq!(ladder.due(&lease, at(121)), Due::Now(Step::Delete));
    assert_eq!(ladder.clone().without_copy().due(&ended(100), at(101)), Due::At(at(110)));
}

#[test]
fn a_short_lease_has_half_of_itself_as_notice() {
    // 8 h: too short for the warning 48 h before; the one 4 h before is in time for half of it.
    let lease = Lease::new(at(0), hours(8));
    check(&lease, &[(0, Due::At(at(4))), (4, warn(at(8))), (6, warn(at(10)))]);
    // 2 h: too short for both.
    let lease = Lease::new(at(0), hours(2));
    check(&lease, &[(0, Due::At(at(1))), (1, warn(at(2)))]);
    let warned = lease.taken(&Step::Warn { ends_at: at(2) }, at(1));
    check(&warned, &[(1, Due::At(at(2))), (2, shut_off(at(22)))]);
}

#[test]
fn a_ladder_without_times_warns_as_its_notice_wants_it() {
    let ladder = Ladder { warn_before: Vec::new(), ..ladder() };
    assert_eq!(ladder.due(&lease(), at(0)), Due::At(at(88)));
    assert_eq!(ladder.due(&lease(), at(88)), warn(at(100)));
}
