//! The results of calls: what a turn knows afterwards.

use std::time::Duration;

use super::*;
use crate::Problem;

fn problem(reason: &str, is_final: bool) -> Problem {
    let (reason, message) = (reason.to_owned(), "it failed".to_owned());
    Problem { reason, message, next_action: String::new(), is_final }
}

fn failure(reason: &str, is_final: bool) -> CallFailure {
    CallFailure {
        problem: problem(reason, is_final),
        is_transient: !is_final,
        retry_after: None,
        create_failure: None,
    }
}

/// Returns a turn with these calls in flight and one queued.
fn turn(in_flight: &[Action]) -> Situation<Sample> {
    let mut cluster = Situation::new(Sample::smallest());
    cluster.flying(in_flight);
    cluster.calls.queued.push_back(create("network"));
    cluster
}

fn fail(cluster: &mut Situation<Sample>, action: &Action, failure: CallFailure) {
    cluster.calls.finish(action, Err(failure), &mut cluster.seen);
}

#[test]
fn the_observation_includes_the_results() {
    let (object, drain) = (create("subnet"), Action::Drain("w-1".parse().unwrap()));
    let mut cluster = turn(&[object.clone(), drain.clone()]);
    let made = found("s", CloudObjectState::Working);
    let change = ActionChange::Object(Key::Subnet, made.clone());
    cluster.calls.finish(&object, Ok(change), &mut cluster.seen);
    let said = MemberObservation { is_drained: true, ..MemberObservation::default() };
    let change = ActionChange::Member("w-1".parse().unwrap(), said.clone());
    cluster.calls.finish(&drain, Ok(change), &mut cluster.seen);
    assert_eq!(cluster.seen.objects, BTreeMap::from([(Key::Subnet, made)]));
    assert_eq!(cluster.seen.machines, BTreeMap::from([("w-1".parse().unwrap(), said)]));
    assert_eq!(cluster.calls.in_flight, BTreeSet::new());
    assert_eq!(cluster.calls.results, CallResults::default());
}

#[test]
fn the_first_final_problem_is_reported_or_else_the_first() {
    let rows: &[(&[(&str, bool)], &str)] = &[
        (&[("CloudBusy", false), ("InUse", false)], "CloudBusy"),
        (&[("CloudBusy", false), ("QuotaExceeded", true)], "QuotaExceeded"),
        (&[("QuotaExceeded", true), ("CloudBusy", false)], "QuotaExceeded"),
        (&[("QuotaExceeded", true), ("CloudRefused", true)], "QuotaExceeded"),
    ];
    for (failures, want) in rows {
        let mut cluster = turn(&[]);
        for (reason, is_final) in *failures {
            fail(&mut cluster, &create("subnet"), failure(reason, *is_final));
        }
        let results = cluster.calls.results;
        assert_eq!(results.problem.map(|it| it.reason).as_deref(), Some(*want));
        assert_eq!(results.failures.len(), failures.len());
    }
}

#[test]
fn a_failed_creation_is_counted_and_a_refused_request_is_not() {
    let action = create("server/default-master-0");
    let mut cluster = turn(std::slice::from_ref(&action));
    fail(&mut cluster, &action, failure("QuotaExceeded", true));
    assert_eq!(cluster.seen.failures, BTreeMap::new());
    let why = Some("No valid host was found.".to_owned());
    fail(&mut cluster, &action, CallFailure { create_failure: why, ..failure("No", false) });
    let counted = crate::Failure { why: "No valid host was found.".to_owned(), object: None };
    let key = "server/default-master-0".parse().unwrap();
    assert_eq!(cluster.seen.failures, BTreeMap::from([(key, counted)]));
    assert_eq!((cluster.calls.is_paused, cluster.calls.queued.len()), (false, 1));
}

#[test]
fn the_queue_is_dropped_when_a_service_asks_for_a_later_retry() {
    let mut cluster = turn(&[create("subnet"), create("router")]);
    let retry_after = Some(Duration::from_secs(3));
    let busy = CallFailure { retry_after, ..failure("CloudBusy", false) };
    fail(&mut cluster, &create("subnet"), busy);
    assert_eq!((cluster.calls.is_paused, cluster.calls.queued.len()), (true, 0));
    assert_eq!(cluster.calls.in_flight, BTreeSet::from([create("router")]));
}

#[test]
fn a_deletion_of_a_failed_object_is_reported() {
    let mut cluster = turn(&[]);
    let key: Key = "load-balancer/api".parse().unwrap();
    for state in [CloudObjectState::Ready, CloudObjectState::Failed("no amphora".to_owned())] {
        cluster.exist(&["load-balancer/api"], &state);
        let gone = ActionChange::Object(key.clone(), found("b", CloudObjectState::Deleting));
        cluster.calls.finish(&Action::Delete(key.clone()), Ok(gone), &mut cluster.seen);
    }
    assert_eq!(
        cluster.calls.results.given_up,
        ["deleting load-balancer/api, which failed in the cloud: no amphora"]
    );
}

#[test]
fn the_check_of_the_capacity_has_three_results() {
    let rows = [
        (Ok(None), Capacity::Enough, None),
        (Ok(Some(problem("QuotaExceeded", true))), Capacity::Short, Some("QuotaExceeded")),
        (Err(failure("CloudUnreachable", false)), Capacity::Unknown, Some("CloudUnreachable")),
    ];
    for (checked, capacity, reason) in rows {
        let failures = usize::from(checked.is_err());
        let mut calls = TurnCalls::default();
        calls.note_capacity(checked);
        assert_eq!(calls.capacity, capacity);
        assert_eq!(calls.results.problem.map(|it| it.reason).as_deref(), reason);
        assert_eq!(calls.results.failures.len(), failures);
    }
}

#[test]
fn the_kinds_of_the_calls_decide_what_follows() {
    // The state of the ledger's entry, the planned action, and whether the object is gone soon and anything has changed.
    let rows = [
        (LedgerState::Intended, create("subnet"), (false, false)),
        (LedgerState::Present, Action::SetRules(Key::Network), (false, false)),
        (LedgerState::Present, Action::Drain("w-1".parse().unwrap()), (false, true)),
        (LedgerState::Present, Action::Delete(Key::Subnet), (true, true)),
        // The delete was requested before.
        (LedgerState::Deleting, Action::Delete(Key::Subnet), (false, true)),
        // The deletion of a server takes time.
        (LedgerState::Present, Action::Delete("server/w-1".parse().unwrap()), (false, true)),
    ];
    for (state, action, want) in rows {
        let lines = ["subnet", "server/w-1"].map(|kind| line(kind, state, Some("c")));
        let ledger = Ledger::new(owner(), at(10), lines.into());
        let mut calls = TurnCalls::default();
        let planned = vec![action.clone()];
        let next = NextCalls { checks_capacity: false, start: planned.clone(), planned };
        calls.begin(&next, &ledger);
        let results = &calls.results;
        assert_eq!((results.is_gone_soon, results.has_changed), want, "{state:?} {action}");
    }
}
