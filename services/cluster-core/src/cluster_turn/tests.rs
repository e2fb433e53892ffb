use ::lease::{Lease, Length};
use jiff::SignedDuration;
use newtype_uuid::GenericUuid;

use super::*;
use crate::sample::{Sample, at};
use crate::{
    Backup, BackupOrigin, BackupRules, BackupState, ClusterLease, ConditionKind, LeasePower,
    LedgerOwner, LedgerState, LedgerUuid, NodeHealth, conditions,
};

const REPAIR: RepairLimits =
    RepairLimits { not_ready_for: SignedDuration::from_secs(300), ..RepairLimits::DEFAULT };
const PAUSES: TurnPauses =
    TurnPauses { soon: Duration::from_secs(1), look_every: Duration::from_secs(60) };
const BACKUPS: BackupRules = BackupRules {
    every: Some(SignedDuration::from_hours(24)),
    keep: 2,
    keep_for: SignedDuration::from_hours(24 * 30),
};
const LOOK: Requeue = Requeue::After(PAUSES.look_every);

fn day(days: i64) -> Timestamp {
    at(days * 86_400)
}

/// A running cluster with the observation that its conditions come from.
fn running() -> (ClusterRecords, ClusterObservation) {
    let mut sample = Sample::highly_available();
    let seen = sample.complete();
    sample.cluster.conditions = conditions(&sample.spec(), &seen, at(1));
    let Sample { cluster, groups } = sample;
    let line = LedgerEntry {
        id: LedgerUuid::from_untyped_uuid(uuid::Uuid::from_u128(8)),
        of: LedgerOwner::Cluster(cluster.id),
        kind: "network".to_owned(),
        name: "blue-network".to_owned(),
        cloud_id: Some("n".to_owned()),
        state: LedgerState::Present,
        created_at: at(0),
        updated_at: None,
    };
    let cluster = cluster.with_observation(&groups, &seen, at(1));
    let drained = BTreeSet::new();
    (ClusterRecords { cluster, groups, ledger: vec![line], drained }, seen)
}

/// A running cluster that is lent for ten days.
fn lent() -> ClusterRecords {
    let (mut records, _) = running();
    let lease = Lease::new(at(0), Length::from_secs(10 * 86_400).unwrap());
    records.cluster.lending = Some(ClusterLease { lease, notify: None });
    records
}

/// A cluster whose lease ended on the tenth day.
fn ended() -> ClusterRecords {
    let mut records = lent();
    for stage in
        [LeaseStage::Warn { ends_at: day(10) }, LeaseStage::SwitchOff { deleted_at: day(17) }]
    {
        records.cluster = after_lease_stage(&records.cluster, stage, day(10));
    }
    records
}

fn rules(schedule: &LeaseSchedule) -> ClusterRules<'_> {
    let backups = BackupSchedule { rules: None, next_id: BackupUuid::nil() };
    ClusterRules { schedule, repair: &REPAIR, pauses: PAUSES, backups, is_upgraded: true }
}

fn decide(records: &ClusterRecords, project: &ProjectObservation, now: Timestamp) -> Planned {
    let schedule = LeaseSchedule::default().without_snapshot();
    let rules = rules(&schedule);
    plan_cluster(records, project, &rules, now)
}

fn after(records: &ClusterRecords, outcomes: &[ClusterOutcome], now: Timestamp) -> Planned {
    let schedule = LeaseSchedule::default().without_snapshot();
    let rules = rules(&schedule);
    after_cluster_actions(records, outcomes, &rules, now)
}

fn reconciled(seen: &ClusterObservation, next_turn: Requeue) -> ClusterOutcome {
    ClusterOutcome::Reconciled(Box::new(ClusterWork { seen: seen.clone(), next_turn }))
}

fn update(decided: Planned) -> ClusterUpdate {
    match decided.change {
        Some(RecordChange::Write(update)) => update,
        other => panic!("nothing is written: {other:?}"),
    }
}

#[test]
fn each_state_of_a_cluster_leads_to_its_actions() {
    use ClusterAction::{ReconcileObjects, SwitchOff, SwitchOn};

    let (there, _) = running();
    let in_state = |rest, desire| {
        let cluster = Cluster { rest, desire, ..there.cluster.clone() };
        ClusterRecords { cluster, ..there.clone() }
    };
    let waking = Some(LeasePower::Waking { since: at(0) });
    let (exist, gone) = (DesiredState::Exist, DesiredState::Gone);
    let rows = [
        (None, exist, vec![ReconcileObjects]),
        (waking, exist, vec![SwitchOn, ReconcileObjects]),
        (Some(LeasePower::Off), exist, vec![SwitchOff]),
        // A cluster that is being deleted needs no server switched off or on.
        (None, gone, vec![ReconcileObjects]),
        (waking, gone, vec![ReconcileObjects]),
        (Some(LeasePower::Off), gone, vec![ReconcileObjects]),
    ];
    let unknown = ProjectObservation::Unknown("away".to_owned());
    for (rest, desire, actions) in rows {
        for project in [&ProjectObservation::Recorded, &unknown] {
            let decided = decide(&in_state(rest, desire), project, at(2));
            assert_eq!(decided.actions, actions, "{rest:?} {desire:?}");
            assert_eq!((decided.change, decided.next_turn), (None, Requeue::OnChange));
        }
    }
    let over = ClusterRecords { ledger: Vec::new(), ..in_state(None, gone) };
    let decided = decide(&over, &ProjectObservation::Recorded, at(2));
    assert_eq!((decided.change, decided.actions), (Some(RecordChange::Delete), vec![]));
    let new = ClusterRecords { ledger: Vec::new(), ..in_state(None, exist) };
    let decided = decide(&new, &ProjectObservation::Recorded, at(2));
    assert_eq!((decided.change, decided.actions), (None, vec![ReconcileObjects]));
}

#[test]
fn the_project_is_recorded_before_anything_is_created_in_it() {
    let (there, _) = running();
    let decided = decide(&there, &ProjectObservation::New("p-1".to_owned()), at(2));
    assert_eq!(decided.actions, [ClusterAction::ReconcileObjects]);
    assert_eq!(decided.log.len(), 1);
    let update = update(decided);
    let placed = Cluster { cloud_project: Some("p-1".to_owned()), ..there.cluster };
    assert_eq!(update, ClusterUpdate::of(placed));
}

#[test]
fn a_cluster_without_a_cloud_says_so_once() {
    let (mut records, _) = running();
    let decided = decide(&records, &ProjectObservation::NoCloud, at(2));
    assert_eq!((decided.actions.len(), decided.next_turn), (0, LOOK));
    let update = update(decided);
    let is_said = |it: &Condition| it.reason == "NoCloud" && !it.is_final;
    assert!(update.cluster.conditions.iter().any(is_said), "{update:?}");
    assert!(!update.events.is_empty());
    records.cluster = update.cluster;
    let again = decide(&records, &ProjectObservation::NoCloud, at(3));
    assert_eq!((again.change, again.next_turn), (None, LOOK));
}

#[test]
fn a_stage_of_a_lease_is_recorded_with_its_event_and_notice_before_anything_is_done() {
    let due = lease_due(&lent().cluster, &LeaseSchedule::default(), day(0));
    let Due::At(warned_at) = due else { panic!("{due:?}") };
    let deleted = "LeaseDeleted";
    let rows = [
        (lent(), warned_at, "LeaseEnds", (None, DesiredState::Exist)),
        (ended(), day(18), "DeletionNear", (Some(LeasePower::Off), DesiredState::Exist)),
    ];
    for (records, now, reason, state) in rows {
        for project in [ProjectObservation::Recorded, ProjectObservation::NoCloud] {
            let decided = decide(&records, &project, now);
            assert_eq!((decided.actions.len(), decided.next_turn), (0, Requeue::Now));
            let update = update(decided);
            assert_eq!((update.cluster.rest, update.cluster.desire), state);
            assert_eq!(update.events.len(), 1);
            assert_eq!(update.events[0].reason, reason);
            assert_eq!(update.notice.unwrap().reason, reason);
        }
    }
    // The stages follow each other, and the last one deletes the cluster.
    let (mut records, mut reasons) = (ended(), Vec::new());
    for days in 11..40 {
        let decided = decide(&records, &ProjectObservation::Recorded, day(days));
        let Some(RecordChange::Write(update)) = decided.change else { continue };
        reasons.extend(update.events.iter().map(|event| event.reason.clone()));
        records.cluster = update.cluster;
    }
    assert_eq!(reasons.last().map(String::as_str), Some(deleted), "{reasons:?}");
    assert_eq!(records.cluster.desire, DesiredState::Gone);
}

#[test]
fn an_observation_that_shows_nothing_new_is_not_written() {
    let (records, seen) = running();
    let decided = after(&records, &[reconciled(&seen, LOOK)], at(2));
    assert_eq!((decided.change, decided.next_turn), (None, LOOK));
    let decided = after(&records, &[reconciled(&seen, Requeue::Now)], at(2));
    assert_eq!((decided.change, decided.next_turn), (None, Requeue::Now));
}

#[test]
fn a_member_is_replaced_with_its_event_unless_a_drain_takes_it_out() {
    let (records, mut seen) = running();
    let worker: MemberName = "default-worker-0".parse().unwrap();
    seen.machines.get_mut(&worker).unwrap().node = NodeHealth::NotReady { since: at(0) };
    let outcomes = [ClusterOutcome::SwitchedOn, reconciled(&seen, LOOK)];
    let decided = after(&records, &outcomes, at(301));
    assert_eq!((decided.next_turn, decided.log.len()), (Requeue::Now, 1));
    let update = update(decided);
    let group = &update.groups[0];
    assert_eq!((group.name.to_string().as_str(), update.groups.len()), ("default-worker", 1));
    assert!(!group.machines.contains(&0));
    assert!(update.events.iter().any(|it| it.reason == "MachineReplaced"), "{update:?}");

    let drained = ClusterRecords { drained: BTreeSet::from([worker]), ..records };
    let decided = after(&drained, &[reconciled(&seen, LOOK)], at(301));
    assert_eq!(decided.log, []);
    if let Some(RecordChange::Write(update)) = decided.change {
        assert_eq!(update.groups, []);
    }
}

#[test]
fn switched_off_servers_are_looked_at_until_all_are_off() {
    let records = ended();
    let message = |decided: &Planned| match &decided.change {
        Some(RecordChange::Write(update)) => update.cluster.conditions[0].message.clone(),
        Some(RecordChange::Delete) | None => String::new(),
    };
    let rows = [
        (ClusterOutcome::SwitchedOff { still_on: 0 }, "the members are switched off", LOOK),
        (
            ClusterOutcome::SwitchedOff { still_on: 2 },
            "2 of the members are still on",
            Requeue::After(SWITCHING_EVERY),
        ),
        (ClusterOutcome::SwitchOffFailed("it is away".to_owned()), "it is away", LOOK),
    ];
    for (outcome, want, next_turn) in rows {
        let decided = after(&records, std::slice::from_ref(&outcome), day(11));
        assert!(message(&decided).contains(want), "{outcome:?}: {}", message(&decided));
        assert_eq!(decided.next_turn, next_turn, "{outcome:?}");
    }
}

#[test]
fn the_next_turn_is_due_at_the_next_stage_and_soon_while_servers_start() {
    let (running, seen) = running();
    let mut waking = running.clone();
    waking.cluster.rest = Some(LeasePower::Waking { since: at(1) });
    let mut warned = lent();
    let stage = LeaseStage::Warn { ends_at: day(10) };
    warned.cluster = after_lease_stage(&warned.cluster, stage, day(3));
    let due = lease_due(&warned.cluster, &LeaseSchedule::default(), day(3));
    let Due::At(due) = due else { panic!("{due:?}") };
    let seconds = SignedDuration::from_secs;
    let rows = [
        (&running, at(2), LOOK, LOOK),
        (&running, at(2), Requeue::Now, Requeue::Now),
        (&waking, at(2), LOOK, Requeue::After(SWITCHING_EVERY)),
        (&warned, due - seconds(7), LOOK, Requeue::After(Duration::from_secs(7))),
        (&warned, due + seconds(7), LOOK, Requeue::After(Duration::ZERO)),
    ];
    for (records, now, next_turn, want) in rows {
        let decided = after(records, &[reconciled(&seen, next_turn)], now);
        assert_eq!(decided.next_turn, want, "{now}");
    }
    let changed = after(&running, &[ClusterOutcome::Changed], at(2));
    let want = (None, Requeue::After(AFTER_CHANGE));
    assert_eq!((changed.change, changed.next_turn), want, "the record is read again");
}

#[test]
fn only_a_condition_with_another_status_or_reason_is_an_event() {
    let (ClusterRecords { cluster: mut before, .. }, _) = running();
    // Each condition is compared with the one of its kind, so the reasons differ.
    before.conditions[0].reason = "First".to_owned();
    let changed = |change: fn(&mut Condition)| {
        let mut after = before.clone();
        change(&mut after.conditions[1]);
        let reported = events(&before, &after, &[], at(9));
        reported.into_iter().map(|event| (event.reason, event.message)).collect::<Vec<_>>()
    };
    let kind = before.conditions[1].kind.as_str();
    assert_eq!(changed(|_| ()), []);
    assert_eq!(changed(|one| one.message = "in other words".to_owned()), []);
    let reason = "Other".to_owned();
    assert_eq!(
        changed(|one| one.reason = "Other".to_owned()),
        [(reason, format!("{kind} is true"))]
    );
    let lost = changed(|one| {
        one.status = ConditionStatus::False;
        one.message = "it is lost".to_owned();
    });
    let reason = before.conditions[1].reason.clone();
    assert_eq!(lost, [(reason, format!("{kind}: it is lost"))]);
}

/// A backup whose object the store may have.
fn backup(state: BackupState) -> Backup {
    let new = Backup::new(BackupUuid::nil(), BackupOrigin::Requested, at(0));
    Backup { state, has_object: true, ..new }
}

#[test]
fn objects_of_backups_are_deleted_before_a_cluster_is_forgotten() {
    let (mut records, _) = running();
    records.ledger.clear();
    records.cluster.desire = DesiredState::Gone;
    records.cluster.backups = vec![backup(BackupState::Stored)];
    let decided = decide(&records, &ProjectObservation::Recorded, at(2));
    assert_eq!((decided.actions, decided.change), (vec![ClusterAction::DeleteBackups], None));

    let none = after(&records, &[ClusterOutcome::BackupsDeleted(Vec::new())], at(2));
    assert_eq!((none.change, none.next_turn), (None, LOOK), "the store does not answer");
    let decided =
        after(&records, &[ClusterOutcome::BackupsDeleted(vec![BackupUuid::nil()])], at(2));
    assert_eq!(decided.next_turn, Requeue::Now);
    records.cluster = update(decided).cluster;
    assert_eq!(records.cluster.backups, []);
    let decided = decide(&records, &ProjectObservation::Recorded, at(2));
    assert_eq!(decided.change, Some(RecordChange::Delete));
}

#[test]
fn a_deleted_backup_leaves_the_record_when_the_store_has_no_object_of_it() {
    let (mut records, seen) = running();
    records.cluster.backups = vec![backup(BackupState::Deleting), backup(BackupState::Stored)];
    records.cluster.backups[1].id = BackupUuid::from_untyped_uuid(uuid::Uuid::from_u128(1));
    let decided = decide(&records, &ProjectObservation::Recorded, at(2));
    let actions = [ClusterAction::DeleteBackups, ClusterAction::ReconcileObjects];
    assert_eq!(decided.actions, actions);

    let gone = |ids| [ClusterOutcome::BackupsDeleted(ids), reconciled(&seen, LOOK)];
    let silent = after(&records, &gone(Vec::new()), at(2));
    assert_eq!(silent.change, None);
    let decided = after(&records, &gone(vec![BackupUuid::nil()]), at(2));
    let left = update(decided).cluster.backups;
    assert_eq!(left, records.cluster.backups[1..]);
}

#[test]
fn a_turn_writes_the_backup_that_is_due() {
    let (records, seen) = running();
    let schedule = LeaseSchedule::default().without_snapshot();
    let next_id = BackupUuid::from_untyped_uuid(uuid::Uuid::from_u128(5));
    let backups = BackupSchedule { rules: Some(BACKUPS), next_id };
    let rules = ClusterRules { backups, ..rules(&schedule) };
    let decided: Planned =
        after_cluster_actions(&records, &[reconciled(&seen, LOOK)], &rules, at(2));
    let made = update(decided).cluster.backups;
    assert_eq!(made, [Backup::new(next_id, BackupOrigin::Scheduled, at(2))]);
}

#[test]
fn a_condition_that_an_older_program_cannot_read_is_not_written_beside_it() {
    let (mut records, seen) = running();
    records.cluster.conditions.clear();
    let schedule = LeaseSchedule::default().without_snapshot();
    for is_upgraded in [false, true] {
        let rules = ClusterRules { is_upgraded, ..rules(&schedule) };
        let decided: Planned =
            after_cluster_actions(&records, &[reconciled(&seen, LOOK)], &rules, at(2));
        let written = update(decided).cluster.conditions;
        let is_newer = |it: &Condition| it.kind == ConditionKind::CertificatesValid;
        assert_eq!((written.iter().any(is_newer), written.len() > 1), (is_upgraded, true));
    }
}
