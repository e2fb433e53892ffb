use std::collections::BTreeSet;

use super::*;
use crate::sample::{Sample, at, backup_contents, backup_id as id, labels};
use crate::{
    Action, BackupOrigin, CaRevision, CloudObjectState, KubernetesVersion, LedgerOwner, LedgerUuid,
    members_to_replace, plan,
};

const LIMITS: RepairLimits = RepairLimits::DEFAULT;

fn stored(number: u128, is_tested: bool) -> Backup {
    Backup {
        state: BackupState::Stored,
        has_object: true,
        contents: Some(backup_contents()),
        tested_at: is_tested.then_some(at(9)),
        ..Backup::new(id(number), BackupOrigin::Scheduled, at(number as i64))
    }
}

/// A complete cluster with three stored backups, the last one untested, whose control plane is lost.
fn lost() -> (Sample, ClusterObservation) {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    sample.cluster = sample.cluster.with_observation(&sample.groups, &seen, at(1));
    sample.cluster.backups = vec![stored(1, true), stored(2, true), stored(3, false)];
    let masters: Vec<MemberName> = sample.groups[0].refs().collect();
    for member in &masters {
        seen.objects.remove(&Key::Server(member.clone()));
    }
    for said in seen.machines.values_mut() {
        said.node = NodeHealth::Unknown;
    }
    sample.cluster = sample.cluster.with_observation(&sample.groups, &seen, at(2));
    (sample, seen)
}

/// The state before an upgrade of the control plane.
fn origin(sample: &Sample) -> crate::RollOrigin {
    let Cluster { template, blueprint, labels_compared, .. } = sample.cluster.clone();
    let masters = sample.groups[0].parameters();
    crate::RollOrigin { template, blueprint, labels_compared, masters }
}

fn start(sample: &Sample, backup: Option<BackupUuid>) -> Result<Cluster, Refusal> {
    start_restore(&sample.cluster, &sample.groups, backup, RestoreForce::IfLost, at(20))
}

fn next(sample: &Sample, seen: &ClusterObservation, now: Timestamp) -> Option<RestorePhase> {
    let (cluster, groups) = (&sample.cluster, &sample.groups);
    let next = restore_after(cluster, groups, (seen, &[]), &LIMITS, now).0;
    next.map(|it| it.phase)
}

#[test]
fn a_lost_control_plane_is_restored_from_the_newest_tested_backup_or_a_named_one() {
    let (sample, _) = lost();
    let begun = start(&sample, None).unwrap();
    let restore = begun.restore.clone().unwrap();
    assert_eq!((restore.backup, restore.phase), (id(2), RestorePhase::Clearing));
    assert_eq!((begun.asked_at, begun.is_clearing(), begun.starts_from()), (at(20), true, None));
    let left: BTreeSet<String> = begun.nodes.iter().map(ToString::to_string).collect();
    assert_eq!(Vec::from_iter(left), ["default-worker-0", "default-worker-1"]);
    assert_eq!(start(&sample, Some(id(3))).unwrap().restore.unwrap().backup, id(3));

    let (groups, force) = (&sample.groups, RestoreForce::IfLost);
    let again = |backup| start_restore(&begun, groups, backup, force, at(30)).unwrap();
    assert_eq!(again(None), begun, "the answer was lost, and the request is repeated");
    let other = again(Some(id(1))).restore.unwrap();
    assert_eq!((other.backup, other.since), (id(1), at(30)));
    let later = |now| start_restore(&begun, groups, None, force, now).unwrap();
    assert_eq!(later(at(20 + 1800)), begun);
    assert_eq!(later(at(20 + 1801)).restore.unwrap().since, at(20 + 1801), "it got stuck");
}

#[test]
fn a_restoration_is_refused_with_the_reason() {
    let (sample, _) = lost();
    let refused = |change: &dyn Fn(&mut Sample), want: &str| {
        let (mut changed, _) = lost();
        change(&mut changed);
        let why = start(&changed, None).unwrap_err().to_string();
        assert!(why.contains(want), "{why}");
    };
    refused(&|it| it.cluster.desire = DesiredState::Gone, "is being deleted");
    refused(&|it| it.cluster.completed_at = None, "never complete");
    refused(
        &|it| it.cluster.backups.truncate(0),
        "backup: the cluster has no backup that was tested",
    );
    refused(
        &|it| it.cluster.authorities = CaRevision { revision: 1, settled: 0 },
        "a CA rotation is in progress",
    );
    refused(
        &|it| it.cluster.authorities = CaRevision::default().replaced(),
        "is from before the last CA rotation",
    );
    refused(
        &|it| it.cluster.kubernetes = KubernetesVersion { minor: 33, patch: 9 },
        "which v1.33.9 cannot read",
    );
    refused(
        &|it| {
            // The new members of an upgrade from this version have the next minor one.
            it.cluster.kubernetes.minor += 1;
            let kubernetes = KubernetesVersion { minor: 36, patch: 0 };
            let origin = Some(Box::new(origin(it)));
            it.cluster.roll = Some(crate::Roll { kubernetes, origin, ..it.roll() });
        },
        "which v1.36.0 cannot read",
    );
    refused(
        &|it| it.groups[0].labels = labels(&[("user_data_delivery", "inline")]),
        "do not reach clusterd",
    );
    let why = start(&sample, Some(id(9))).unwrap_err().to_string();
    assert!(why.ends_with(&format!("the cluster has no backup {}", id(9))), "{why}");
    let mut wanted = lost().0;
    wanted.cluster.backups[0].state = BackupState::Wanted;
    let why = start(&wanted, Some(id(1))).unwrap_err().to_string();
    assert!(why.contains("is wanted, and only a stored one can be restored"), "{why}");
}

#[test]
fn an_available_control_plane_is_replaced_only_by_force() {
    let (mut sample, _) = lost();
    let available = sample
        .cluster
        .conditions
        .iter_mut()
        .find(|it| it.kind == ConditionKind::ControlPlaneAvailable);
    available.unwrap().status = ConditionStatus::True;
    let why = start(&sample, None).unwrap_err().to_string();
    assert!(why.contains("repeat the request with force"), "{why}");
    let (cluster, groups) = (&sample.cluster, &sample.groups);
    assert!(start_restore(cluster, groups, None, RestoreForce::Always, at(20)).is_ok());
}

#[test]
fn no_new_server_is_created_before_every_old_one_is_gone() {
    let (mut sample, mut seen) = lost();
    sample.cluster = start(&sample, None).unwrap();
    let old = Key::Server("default-master-1".parse().unwrap());
    let worker = seen.objects[&Key::Server("default-worker-0".parse().unwrap())].clone();
    seen.objects.insert(old.clone(), worker);
    assert_eq!(plan(&sample.spec(), &seen), [Action::Delete(old.clone())]);
    assert_eq!(next(&sample, &seen, at(21)), Some(RestorePhase::Clearing));
    seen.objects.get_mut(&old).unwrap().state = CloudObjectState::Deleting;
    assert_eq!(plan(&sample.spec(), &seen), []);
    assert_eq!(next(&sample, &seen, at(22)), Some(RestorePhase::Clearing));
    seen.objects.remove(&old);
    assert_eq!(plan(&sample.spec(), &seen), []);
    assert_eq!(next(&sample, &seen, at(23)), Some(RestorePhase::Starting));

    let restore = sample.cluster.restore.take().unwrap();
    sample.cluster.restore = Some(Restore { phase: RestorePhase::Starting, ..restore });
    assert_eq!(sample.cluster.starts_from(), Some(id(2)));
    for member in sample.groups[0].refs() {
        seen.machines.get_mut(&member).unwrap().bootstrap = crate::Bootstrap::Silent;
    }
    let created: Vec<String> =
        plan(&sample.spec(), &seen).iter().map(ToString::to_string).collect();
    let want = [0, 1, 2].map(|number| format!("create server/default-master-{number}"));
    assert_eq!(created, want);
}

#[test]
fn a_server_whose_create_request_got_no_answer_is_waited_for() {
    let (mut sample, seen) = lost();
    sample.cluster = start(&sample, None).unwrap();
    let asked = LedgerEntry {
        id: LedgerUuid::nil(),
        of: LedgerOwner::Cluster(sample.cluster.id),
        kind: "server/default-master-0".to_owned(),
        name: "blue-master-0".to_owned(),
        cloud_id: None,
        state: LedgerState::Intended,
        created_at: at(10),
        updated_at: None,
    };
    let phase = |entry: &LedgerEntry, now| {
        let ledger = std::slice::from_ref(entry);
        let (cluster, groups) = (&sample.cluster, &sample.groups);
        restore_after(cluster, groups, (&seen, ledger), &LIMITS, now).0.unwrap().phase
    };
    assert_eq!(phase(&asked, at(70)), RestorePhase::Clearing);
    assert_eq!(phase(&asked, at(71)), RestorePhase::Starting);
    let known = LedgerEntry { cloud_id: Some("s".to_owned()), ..asked.clone() };
    assert_eq!(phase(&known, at(11)), RestorePhase::Starting);
    let twin = LedgerEntry { kind: "twin/server/default-master-0".to_owned(), ..asked.clone() };
    assert_eq!(phase(&twin, at(70)), RestorePhase::Clearing);
    let worker = LedgerEntry { kind: "server/default-worker-0".to_owned(), ..asked };
    assert_eq!(phase(&worker, at(11)), RestorePhase::Starting);
}

#[test]
fn a_restoration_is_over_when_all_are_ready_or_a_quorum_after_a_while() {
    let (mut sample, mut seen) = lost();
    sample.cluster = start(&sample, None).unwrap();
    let restore = sample.cluster.restore.take().unwrap();
    let phase = RestorePhase::Starting;
    sample.cluster.restore = Some(Restore { phase, since: at(30), ..restore });
    let masters: Vec<MemberName> = sample.groups[0].refs().collect();
    let late = at(31 + LIMITS.become_node_within.as_secs());
    for (ready, early, later) in [
        (1, Some(RestorePhase::Starting), Some(RestorePhase::Starting)),
        (2, Some(RestorePhase::Starting), None),
        (3, None, None),
    ] {
        for member in &masters[..ready] {
            seen.machines.get_mut(member).unwrap().node = NodeHealth::Ready;
        }
        assert_eq!(next(&sample, &seen, at(40)), early, "{ready}");
        assert_eq!(next(&sample, &seen, late), later, "{ready}");
    }
}

#[test]
fn nothing_is_repaired_during_a_restoration() {
    let (mut sample, mut seen) = lost();
    for said in seen.machines.values_mut() {
        said.node = NodeHealth::NotReady { since: at(0) };
    }
    let replaced = |sample: &Sample| members_to_replace(&sample.spec(), &seen, &LIMITS, at(1000));
    assert!(!replaced(&sample).is_empty());
    sample.cluster = start(&sample, None).unwrap();
    assert_eq!(replaced(&sample), []);
}
