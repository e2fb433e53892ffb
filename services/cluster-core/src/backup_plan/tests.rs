use super::*;
use crate::sample::{Sample, at, backup_contents as contents, backup_id as id};

const DAY: i64 = 86_400;
const RULES: BackupRules = BackupRules {
    every: Some(SignedDuration::from_hours(24)),
    keep: 2,
    keep_for: SignedDuration::from_hours(24 * 30),
};

/// A complete cluster without backups.
fn running() -> Sample {
    let mut sample = Sample::highly_available();
    let seen = sample.complete();
    sample.cluster = sample.cluster.with_observation(&sample.groups, &seen, at(1));
    sample
}

fn member(name: &str) -> MemberName {
    name.parse().unwrap()
}

/// The member that works on a backup now, of all members that ask.
fn worker(sample: &Sample, now: Timestamp) -> Option<(String, BackupTask)> {
    let all = sample.groups.iter().flat_map(NodeGroup::refs);
    let mut tasks = all.filter_map(|it| {
        let task = backup_task(&sample.cluster, &sample.groups, &it, now)?;
        Some((it.to_string(), task))
    });
    let first = tasks.next();
    assert!(tasks.next().is_none(), "two members have the same work");
    first
}

fn ask(sample: &mut Sample, number: u128, now: Timestamp) {
    sample.cluster = request_backup(&sample.cluster, id(number), now).unwrap();
}

/// Has the member that is due take the backup.
fn finish(sample: &mut Sample, result: BackupResult, now: Timestamp) -> String {
    let (name, task) = worker(sample, now).unwrap();
    let name = member(&name);
    if let Some((begun, _)) = begin_backup(&sample.cluster, task, &name, now) {
        sample.cluster = begun;
    }
    let finished = finish_backup(&sample.cluster, task.backup, &name, result, now).unwrap();
    sample.cluster = finished.0;
    format!("{}: {}", finished.1.reason, finished.1.message)
}

#[test]
fn one_ready_control_plane_member_works_on_a_backup_and_another_after_a_failure() {
    let mut sample = running();
    assert_eq!(worker(&sample, at(2)), None);
    ask(&mut sample, 1, at(2));
    let save = BackupTask { backup: id(1), step: BackupStep::Save };
    assert_eq!(worker(&sample, at(2)), Some(("default-master-0".to_owned(), save)));
    sample.cluster.unready.insert(member("default-master-0"));
    assert_eq!(worker(&sample, at(2)), Some(("default-master-1".to_owned(), save)));
    sample.cluster.unready.clear();

    let said = finish(&mut sample, BackupResult::Failed("no space left".to_owned()), at(3));
    let want = format!(
        "BackupFailed: default-master-0 could not take backup {} of etcd: no space left",
        id(1)
    );
    assert_eq!(said, want);
    assert_eq!(worker(&sample, at(3)), Some(("default-master-1".to_owned(), save)));
    let said = finish(&mut sample, BackupResult::Stored(contents()), at(4));
    assert!(said.starts_with("BackupStored: default-master-1 took backup"), "{said}");
    let test = BackupTask { backup: id(1), step: BackupStep::Test };
    assert_eq!(worker(&sample, at(4)), Some(("default-master-0".to_owned(), test)));
    let said = finish(&mut sample, BackupResult::Tested, at(5));
    assert!(said.starts_with("BackupTested: "), "{said}");
    assert_eq!(worker(&sample, at(5)), None);
    let done = &sample.cluster.backups[0];
    assert_eq!((done.is_stored(), done.tested_at), (true, Some(at(5))));
}

#[test]
fn a_member_gets_the_same_work_again_until_it_is_late() {
    let mut sample = running();
    ask(&mut sample, 1, at(2));
    let (first, task) = worker(&sample, at(2)).unwrap();
    sample.cluster = begin_backup(&sample.cluster, task, &member(&first), at(2)).unwrap().0;
    let lasts = BACKUP_WORK_LASTS.as_secs();
    let again = worker(&sample, at(2 + lasts)).unwrap();
    assert_eq!(again, (first.clone(), task));
    assert_eq!(begin_backup(&sample.cluster, task, &member(&first), at(2 + lasts)), None);
    let (second, task) = worker(&sample, at(3 + lasts)).unwrap();
    assert_ne!(first, second);
    let (begun, events) =
        begin_backup(&sample.cluster, task, &member(&second), at(3 + lasts)).unwrap();
    let said =
        format!("{first} could not take backup {} of etcd: it did not finish in time", id(1));
    assert_eq!((events.len(), &events[0].message), (1, &said));
    sample.cluster = begun;
    let late = BackupResult::Stored(contents());
    assert_eq!(finish_backup(&sample.cluster, id(1), &member(&first), late, at(4 + lasts)), None);
}

#[test]
fn a_backup_that_no_member_finishes_is_given_up_and_holds_up_no_other() {
    let mut sample = running();
    let schedule = |number| BackupSchedule { rules: Some(RULES), next_id: id(number) };
    ask(&mut sample, 1, at(2));
    let (mut now, mut failed) = (2, 0);
    let is_given_up = |it: &Backup| it.id == id(1) && it.state == BackupState::Failed;
    // Each member that is due asks for the work, and then falls silent.
    while !sample.cluster.backups.iter().any(is_given_up) {
        let (name, task) = worker(&sample, at(now)).unwrap();
        let (begun, events) = begin_backup(&sample.cluster, task, &member(&name), at(now)).unwrap();
        failed += events.len();
        sample.cluster = begun.with_scheduled_backups(&schedule(2), at(now)).0;
        now += 1 + BACKUP_WORK_LASTS.as_secs();
        assert!(now < DAY, "it never ends");
    }
    assert_eq!(failed, 4);
    let scheduled = sample.cluster.backups.iter().any(|it| it.id == id(2));
    assert!(scheduled, "{:?}", sample.cluster.backups);
}

#[test]
fn a_backup_whose_member_is_lost_is_given_up_when_no_other_member_asks() {
    let mut sample = running();
    ask(&mut sample, 1, at(2));
    let (name, task) = worker(&sample, at(2)).unwrap();
    sample.cluster = begin_backup(&sample.cluster, task, &member(&name), at(2)).unwrap().0;
    let never = BackupRules { every: None, ..RULES };
    let schedule = BackupSchedule { rules: Some(never), next_id: id(2) };
    let waits = |sample: &Sample, seconds| {
        let turn = sample.cluster.clone().with_scheduled_backups(&schedule, at(seconds));
        turn.1.into_iter().map(|event| event.message).collect::<Vec<_>>()
    };
    let late = 2 + BACKUP_WORK_LASTS.as_secs();
    assert_eq!(waits(&sample, late + 3600), [""; 0]);
    let said = waits(&sample, late + 3601);
    assert!(
        said[0].contains("for an hour no control-plane member has asked for it again"),
        "{said:?}"
    );
    // After a failure another member has an hour too.
    let result = BackupResult::Failed("no space left".to_owned());
    let failed = finish_backup(&sample.cluster, id(1), &member(&name), result, at(3000)).unwrap();
    sample.cluster = failed.0;
    assert_eq!(waits(&sample, 6600), [""; 0]);
    assert_eq!(waits(&sample, 6601).len(), 1);
}

#[test]
fn a_snapshot_may_be_sent_until_another_member_could_get_the_work() {
    let mut sample = running();
    ask(&mut sample, 1, at(2));
    assert_eq!(transfer_time(&sample.cluster.backups[0], at(2)), None, "nobody was asked for it");
    let (name, task) = worker(&sample, at(2)).unwrap();
    sample.cluster = begin_backup(&sample.cluster, task, &member(&name), at(2)).unwrap().0;
    let left = |seconds| transfer_time(&sample.cluster.backups[0], at(seconds));
    assert_eq!(left(2), Some(SignedDuration::from_mins(29)));
    assert_eq!(left(2 + 29 * 60 - 1), Some(SignedDuration::from_secs(1)));
    assert_eq!(left(2 + 29 * 60), None);
}

#[test]
fn a_result_of_other_work_than_was_handed_out_changes_nothing() {
    let mut sample = running();
    ask(&mut sample, 1, at(2));
    let (name, task) = worker(&sample, at(2)).unwrap();
    let name = member(&name);
    sample.cluster = begin_backup(&sample.cluster, task, &name, at(2)).unwrap().0;
    let finish =
        |sample: &Sample, result| finish_backup(&sample.cluster, id(1), &name, result, at(4));
    assert_eq!(finish(&sample, BackupResult::Tested), None);
    sample.cluster = finish(&sample, BackupResult::Stored(contents())).unwrap().0;
    let (_, task) = worker(&sample, at(5)).unwrap();
    sample.cluster = begin_backup(&sample.cluster, task, &name, at(5)).unwrap().0;
    assert_eq!(finish(&sample, BackupResult::Stored(contents())), None);
}

#[test]
fn a_request_is_refused_while_no_member_could_take_the_backup() {
    let sample = running();
    let refused =
        |cluster: &Cluster| request_backup(cluster, id(1), at(2)).unwrap_err().to_string();
    let gone = Cluster { desire: DesiredState::Gone, ..sample.cluster.clone() };
    assert!(refused(&gone).contains("is being deleted"));
    let new = Cluster { completed_at: None, ..sample.cluster.clone() };
    assert!(refused(&new).contains("is being created"));
    let mut full = sample.cluster.clone();
    for number in 0..MOST_REQUESTED {
        full = request_backup(&full, id(number as u128), at(2)).unwrap();
    }
    assert!(refused(&full).contains("20 is the limit"), "{}", refused(&full));
}

#[test]
fn the_first_backup_is_due_at_once_and_the_next_one_by_the_schedule() {
    let mut sample = running();
    let mut made = Vec::new();
    for hour in 0..60 {
        let now = at(2 + hour * 3600);
        let schedule = BackupSchedule { rules: Some(RULES), next_id: id(hour as u128 + 1) };
        sample.cluster = sample.cluster.clone().with_scheduled_backups(&schedule, now).0;
        if let Some(wanted) = sample.cluster.backups.iter().find(|it| it.step().is_some()) {
            made.push((hour, wanted.id));
            finish(&mut sample, BackupResult::Stored(contents()), now);
            finish(&mut sample, BackupResult::Tested, now);
        }
    }
    assert_eq!(made, [(0, id(1)), (24, id(25)), (48, id(49))]);
}

#[test]
fn nothing_is_scheduled_without_rules_or_before_the_cluster_is_complete() {
    let sample = running();
    let without = BackupSchedule { rules: None, next_id: id(1) };
    let unchanged = sample.cluster.clone().with_scheduled_backups(&without, at(2));
    assert_eq!(unchanged, (sample.cluster.clone(), Vec::new()));
    let never = BackupRules { every: None, ..RULES };
    let rows = [
        (never, sample.cluster.clone()),
        (RULES, Cluster { completed_at: None, ..sample.cluster.clone() }),
        (RULES, Cluster { desire: DesiredState::Gone, ..sample.cluster.clone() }),
    ];
    for (rules, cluster) in rows {
        let schedule = BackupSchedule { rules: Some(rules), next_id: id(1) };
        assert_eq!(cluster.with_scheduled_backups(&schedule, at(2)).0.backups, []);
    }
}

/// A stored backup of this day.
fn stored(day: i64, origin: BackupOrigin, is_tested: bool) -> Backup {
    Backup {
        state: BackupState::Stored,
        has_object: true,
        contents: Some(contents()),
        tested_at: is_tested.then_some(at(day * DAY)),
        ..Backup::new(id(day as u128), origin, at(day * DAY))
    }
}

/// The days of the backups that are kept.
fn kept(backups: Vec<Backup>, today: i64) -> Vec<i64> {
    let mut sample = running();
    sample.cluster.backups = backups;
    let never = BackupRules { every: None, ..RULES };
    let schedule = BackupSchedule { rules: Some(never), next_id: id(0) };
    let kept = sample.cluster.with_scheduled_backups(&schedule, at(today * DAY)).0;
    let stays = kept.backups.iter().filter(|it| it.state != BackupState::Deleting);
    stays.map(|it| (it.requested_at.as_second() - at(0).as_second()) / DAY).collect()
}

#[test]
fn scheduled_backups_are_kept_by_number_and_age_and_requested_ones_until_deleted() {
    use BackupOrigin::{Requested, Scheduled};
    let all = |days: &[i64], origin| -> Vec<Backup> {
        days.iter().map(|day| stored(*day, origin, true)).collect()
    };
    assert_eq!(kept(all(&[1, 2, 3, 4], Scheduled), 5), [3, 4]);
    assert_eq!(kept(all(&[1, 2, 3, 4], Requested), 5), [1, 2, 3, 4]);
    assert_eq!(kept(all(&[1, 2], Scheduled), 40), [2], "the newest is kept in any case");
    // The newest one that was tested is kept, whatever came after it.
    let untested = [2, 3, 4].map(|day| stored(day, Scheduled, false));
    let backups = [vec![stored(1, Scheduled, true)], untested.to_vec()].concat();
    assert_eq!(kept(backups, 5), [1, 3, 4]);
}

#[test]
fn a_failed_backup_is_kept_until_a_newer_one_is_made() {
    let failed = |day: i64, origin| Backup {
        state: BackupState::Failed,
        has_object: false,
        ..Backup::new(id(day as u128), origin, at(day * DAY))
    };
    use BackupOrigin::{Requested, Scheduled};
    assert_eq!(kept(vec![failed(1, Scheduled)], 2), [1]);
    assert_eq!(kept(vec![failed(1, Scheduled), failed(2, Scheduled)], 3), [2]);
    assert_eq!(kept(vec![failed(1, Requested), failed(2, Requested)], 3), [1, 2]);
    assert_eq!(kept(vec![failed(1, Requested), stored(2, Scheduled, true)], 3), [2]);
}

#[test]
fn a_backup_for_which_no_member_asks_is_given_up_with_a_reason() {
    let mut sample = running();
    ask(&mut sample, 1, at(2));
    let schedule = BackupSchedule { rules: Some(RULES), next_id: id(2) };
    let waits = |seconds| sample.cluster.clone().with_scheduled_backups(&schedule, at(seconds));
    assert_eq!(waits(3602).1, []);
    let (cluster, events) = waits(3603);
    assert_eq!(cluster.backups[0].state, BackupState::Failed);
    assert!(events[0].message.contains("no control-plane member asked for it"), "{events:?}");
}

#[test]
fn an_object_that_a_member_may_still_send_is_not_deleted() {
    let mut sample = running();
    ask(&mut sample, 1, at(2));
    let (name, task) = worker(&sample, at(2)).unwrap();
    sample.cluster = begin_backup(&sample.cluster, task, &member(&name), at(2)).unwrap().0;
    sample.cluster = delete_backup(&sample.cluster, id(1)).unwrap().unwrap();
    assert_eq!(backups_to_delete(&sample.cluster, at(3)), []);
    let late = at(3 + BACKUP_WORK_LASTS.as_secs());
    assert_eq!(backups_to_delete(&sample.cluster, late), [id(1)]);
    let result = BackupResult::Stored(contents());
    let (stopped, event) =
        finish_backup(&sample.cluster, id(1), &member(&name), result, at(4)).unwrap();
    assert_eq!(event.reason, "BackupStopped");
    assert_eq!(backups_to_delete(&stopped, at(4)), [id(1)]);
    let result = BackupResult::Failed("the store did not answer".to_owned());
    let (failed, _) = finish_backup(&sample.cluster, id(1), &member(&name), result, at(4)).unwrap();
    assert_eq!(backups_to_delete(&failed, at(64)), [], "it may still arrive");
    assert_eq!(backups_to_delete(&failed, at(65)), [id(1)]);
    assert_eq!(delete_backup(&stopped, id(7)), Ok(None));
    assert_eq!(stopped.without_objects(&[id(1)]).backups, []);
}
