use lease::Length;

use super::*;
use crate::sample::{Sample, at, labels};
use crate::{
    ConditionStatus, Key, NodeHealth, RepairLimits, conditions, members_to_replace,
    servers_to_recreate, status,
};

fn schedule() -> LeaseSchedule {
    LeaseSchedule::default().without_snapshot()
}

fn days(days: u64) -> Length {
    Length::from_secs(days * 86_400).unwrap()
}

/// Returns the time after this many days.
fn day(days: i64) -> Timestamp {
    at(days * 86_400)
}

/// A cluster that runs, lent for ten days.
fn lent() -> Sample {
    let mut sample = Sample::highly_available();
    let seen = sample.complete();
    sample.cluster.conditions = conditions(&sample.spec(), &seen, at(0));
    let lending = ClusterLease { lease: Lease::new(at(0), days(10)), notify: None };
    sample.cluster.lending = Some(lending);
    sample
}

fn ended() -> Sample {
    let mut sample = lent();
    let warned = after_lease_stage(&sample.cluster, LeaseStage::Warn { ends_at: day(10) }, day(3));
    sample.cluster =
        after_lease_stage(&warned, LeaseStage::SwitchOff { deleted_at: day(17) }, day(10));
    sample
}

#[test]
fn the_stages_of_a_lease_switch_off_and_then_delete_the_cluster() {
    let Sample { cluster, .. } = lent();
    assert_eq!(lease_due(&cluster, &schedule(), day(1)), Due::At(day(3)));
    let Sample { cluster, .. } = ended();
    assert!(cluster.is_off());
    let gone = after_lease_stage(&cluster, LeaseStage::Delete, day(17));
    assert_eq!((gone.desire, gone.asked_at), (DesiredState::Gone, day(17)));
    assert!(!gone.is_off());
    assert_eq!(lease_due(&gone, &schedule(), day(18)), Due::Nothing);
}

#[test]
fn a_cluster_deleted_by_request_is_not_ruled_by_its_lease() {
    let cluster = Cluster { desire: DesiredState::Gone, ..ended().cluster };
    assert!(!cluster.is_off());
    assert_eq!(lease_due(&cluster, &schedule(), day(30)), Due::Nothing);
    let refused = extend_lease(&cluster, day(40), "u", Terms::default(), day(30)).unwrap_err();
    assert!(matches!(refused, LeaseChangeRefused::Going { .. }));
}

#[test]
fn a_cluster_that_is_off_or_starting_again_is_not_repaired() {
    let mut sample = ended();
    let mut seen = sample.complete();
    let worker = sample.groups[1].refs().next().unwrap();
    seen.machines.get_mut(&worker).unwrap().node = NodeHealth::NotReady { since: at(0) };
    seen.objects.remove(&Key::Server(sample.groups[1].refs().nth(1).unwrap()));
    let limits = RepairLimits::DEFAULT;
    let replaced =
        |sample: &Sample, now| members_to_replace(&sample.spec(), &seen, &limits, now).len();
    assert_eq!(replaced(&sample, day(11)), 0);
    let again = undo_lease(&sample.cluster, "u", &schedule(), Terms::default(), day(11)).unwrap();
    assert_eq!(again.waking_since(), Some(day(11)));
    sample.cluster = again;
    assert_eq!(replaced(&sample, day(11)), 0);
    assert_eq!(servers_to_recreate(&sample.spec(), &seen, &limits, day(11)), []);
    // The time to start is over: members that are not nodes are replaced as usual.
    let later = day(11) + SignedDuration::from_mins(16);
    sample.cluster = sample.cluster.with_observation(&sample.groups, &seen, later);
    assert_eq!(sample.cluster.rest, None);
    assert!(replaced(&sample, later) > 0);
}

#[test]
fn a_cluster_has_started_again_once_every_condition_is_true() {
    let mut sample = ended();
    let seen = sample.complete();
    let off = sample.cluster.clone();
    sample.cluster = extend_lease(&off, day(20), "u", Terms::default(), day(11)).unwrap();
    let concluded = sample.cluster.with_observation(&sample.groups, &seen, day(11));
    assert_eq!(concluded.rest, None);
    assert_eq!(concluded.lending.unwrap().lease.until, day(20));
}

#[test]
fn a_cluster_is_starting_until_all_is_well_or_its_time_is_over() {
    let since = day(11);
    let waking = Some(LeasePower::Waking { since });
    let limit = since + START_TIMEOUT;
    let second = SignedDuration::from_secs(1);
    let rows = [
        (waking, false, since, waking),
        (waking, true, since, None),
        (waking, false, limit, waking),
        (waking, false, limit + second, None),
        (Some(LeasePower::Off), true, limit + second, Some(LeasePower::Off)),
        (None, false, since, None),
    ];
    for (rest, all_is_well, now, want) in rows {
        let cluster = Cluster { rest, ..lent().cluster };
        assert_eq!(rest_after(&cluster, all_is_well, now), want, "{rest:?} {all_is_well} {now}");
    }
}

#[test]
fn a_cluster_that_is_off_says_so() {
    let mut sample = ended();
    let problem = Some(off_problem(&sample.cluster, &schedule(), 2));
    let seen = crate::ClusterObservation { problem, ..crate::ClusterObservation::default() };
    let concluded = sample.cluster.with_observation(&sample.groups, &seen, day(10));
    assert!(concluded.conditions.iter().all(|it| it.status == ConditionStatus::False));
    assert!(concluded.conditions.iter().all(|it| it.reason == "LeaseEnded"));
    let said = &concluded.conditions[0].message;
    assert!(said.starts_with("the lease has ended: 2 of the members are still on, and"), "{said}");
    sample.cluster = concluded;
    assert!(!status(&sample.cluster, day(10)).as_str().ends_with("FAILED"));
}

#[test]
fn a_cluster_without_a_lease_is_never_switched_off() {
    let Sample { cluster, .. } = Sample::smallest();
    assert_eq!(lease_due(&cluster, &schedule(), day(900)), Due::Nothing);
    let refused = undo_lease(&cluster, "u", &schedule(), Terms::default(), day(1)).unwrap_err();
    assert_eq!(refused.to_string(), "cluster blue has no lease to extend or undo");
}

#[test]
fn labels_ask_for_a_lease_within_the_terms() {
    let terms = |longest| Terms::default().limited_to(longest);
    let granted = |pairs: &[(&str, &str)], terms| {
        let granted = grant_lease(labels(pairs).settings(), terms, at(0));
        granted.map_err(|why| why.to_string())
    };
    assert_eq!(granted(&[], terms(None)), Ok(None));
    let (lease, contact) = (("lease", "10d"), ("lease_contact", "a@example.org"));
    let notify = Some("a@example.org".parse().unwrap());
    let lent = ClusterLease { lease: Lease::new(at(0), days(10)), notify };
    assert_eq!(granted(&[lease, contact], terms(None)), Ok(Some(lent)));
    let why = granted(&[contact], terms(None)).unwrap_err();
    assert!(why.starts_with("labels/lease_contact: needs the label lease"), "{why}");
    let why = granted(&[lease], terms(Some(days(9)))).unwrap_err();
    assert!(why.starts_with("labels/lease: "), "{why}");
}
