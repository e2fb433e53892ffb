use jiff::SignedDuration;

use super::*;

/// The moment `days` days after the epoch.
fn at(days: i64) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(days * 24))
}

fn terms(longest: Option<u32>) -> Terms {
    Terms::new(None, longest.map(Length::days)).unwrap()
}

/// A lease from day 0 to day 10.
fn lease() -> Lease {
    Lease::new(at(0), Length::days(10))
}

fn ended() -> Lease {
    let warned = lease().with_stage_taken(&LeaseStage::Warn { ends_at: at(10) }, at(3));
    warned.with_stage_taken(&LeaseStage::SwitchOff { deleted_at: at(17) }, at(10))
}

#[test]
fn the_required_state_follows_from_the_stages_taken() {
    assert_eq!(lease().required_state(), RequiredState::AsRequested);
    assert_eq!(
        lease().with_stage_taken(&LeaseStage::Warn { ends_at: at(10) }, at(3)).required_state(),
        RequiredState::AsRequested
    );
    assert_eq!(ended().required_state(), RequiredState::Off);
    assert_eq!(
        ended().with_stage_taken(&LeaseStage::Snapshot, at(10)).required_state(),
        RequiredState::Off
    );
    assert_eq!(
        ended().with_stage_taken(&LeaseStage::Delete, at(17)).required_state(),
        RequiredState::Deleted
    );
}

#[test]
fn the_first_warning_stays_the_first() {
    let warn = LeaseStage::Warn { ends_at: at(10) };
    let twice = lease().with_stage_taken(&warn, at(3)).with_stage_taken(&warn, at(9));
    assert_eq!(twice.taken.warned, Some(Warned { first: at(3), last: at(9) }));
}

#[test]
fn an_extension_starts_a_new_term() {
    let warned = lease().with_stage_taken(&LeaseStage::Warn { ends_at: at(10) }, at(3));
    let extended = warned.extended(at(20), "alice", terms(None), at(4)).unwrap();
    let by_alice = Some(Extension { by: "alice".to_owned(), at: at(4) });
    let want = Lease { since: at(4), until: at(20), extended: by_alice, ..lease() };
    assert_eq!(extended, want);
}

#[test]
fn a_shorter_extension_changes_nothing() {
    let warned = lease().with_stage_taken(&LeaseStage::Warn { ends_at: at(10) }, at(3));
    for until in [at(-5), at(4), at(9), at(10)] {
        assert_eq!(warned.extended(until, "alice", terms(Some(1)), at(4)), Ok(warned.clone()));
    }
}

#[test]
fn the_longest_lease_counts_from_the_time_of_the_request() {
    let longest = terms(Some(10));
    assert!(lease().extended(at(19), "alice", longest, at(9)).is_ok());
    let refused = lease().extended(at(20), "alice", longest, at(9)).unwrap_err();
    assert_eq!(refused, ExtendError::TooLong { longest: Length::days(10), latest: at(19) });
    assert_eq!(
        refused.to_string(),
        "a lease lasts at most 10d from now; request an end no later than 1970-01-20T00:00:00Z"
    );
}

#[test]
fn an_extension_after_the_end_undoes_it() {
    let again = ended().extended(at(20), "alice", terms(None), at(12)).unwrap();
    assert_eq!((again.required_state(), again.until), (RequiredState::AsRequested, at(20)));
    assert_eq!(again.taken, StagesTaken::default());
    let refused = ended().extended(at(11), "alice", terms(None), at(12)).unwrap_err();
    assert_eq!(refused, ExtendError::InThePast { until: at(11) });
    let gone = ended().with_stage_taken(&LeaseStage::Delete, at(17));
    assert_eq!(gone.extended(at(20), "alice", terms(None), at(17)), Err(ExtendError::TooLate));
}

#[test]
fn nothing_is_extended_by_less_than_the_shortest_lease() {
    let minutes = |minutes| after(at(12), SignedDuration::from_mins(minutes));
    let refused = ended().extended(minutes(59), "alice", terms(None), at(12)).unwrap_err();
    let said =
        "a lease lasts at least 1h from now; request an end no earlier than 1970-01-13T01:00:00Z";
    assert_eq!(refused.to_string(), said);
    assert!(ended().extended(minutes(60), "alice", terms(None), at(12)).is_ok());
}

#[test]
fn an_end_is_undone_until_the_deletion() {
    let schedule = LeaseSchedule::default();
    let again = ended().undone("alice", &schedule, terms(None), at(12)).unwrap();
    assert_eq!((again.required_state(), again.until), (RequiredState::AsRequested, at(13)));
    assert_eq!(lease().undone("alice", &schedule, terms(None), at(1)), Err(UndoError::NotEnded));
    let gone = ended().with_stage_taken(&LeaseStage::Delete, at(17));
    assert_eq!(gone.undone("alice", &schedule, terms(None), at(17)), Err(UndoError::TooLate));
}

#[test]
fn undoing_gives_no_more_than_the_longest_lease() {
    let schedule: LeaseSchedule = toml::from_str("undo_gives = '5d'").unwrap();
    let again = ended().undone("alice", &schedule, terms(Some(2)), at(12)).unwrap();
    assert_eq!(again.until, at(14));
}

#[test]
fn a_lease_is_read_as_it_was_written() {
    let extended = ended().extended(at(20), "alice", terms(None), at(12)).unwrap();
    for lease in [lease(), ended(), extended, ended().with_stage_taken(&LeaseStage::Delete, at(17))]
    {
        let written = serde_json::to_string(&lease).unwrap();
        assert_eq!(serde_json::from_str::<Lease>(&written).unwrap(), lease);
    }
}
