mod quorum;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use decision::{Decision, Requeue};
use expect_test::{Expect, expect};
use newtype_uuid::GenericUuid;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::sample::{Sample, at};
use crate::{Backoff, RecordChange, TurnPauses};

fn cluster(number: usize) -> ClusterUuid {
    ClusterUuid::from_untyped_uuid(Uuid::from_u128(number as u128))
}

fn machine(number: usize) -> MemberName {
    format!("default-master-{number}").parse().unwrap()
}

fn host(number: usize) -> HostName {
    format!("host-{number}").parse().unwrap()
}

fn member(of: usize, number: usize) -> Member {
    Member { cluster: cluster(of), machine: machine(number) }
}

fn drain() -> Drain {
    let id = DrainUuid::from_untyped_uuid(Uuid::from_u128(5));
    Drain::new((id, host(1)), ("ann".to_owned(), None), BTreeSet::new(), BTreeSet::new(), at(0))
}

fn server(id: &str, carried: ServerOwner, condition: ServerCondition) -> ServerOnHost {
    ServerOnHost { id: id.to_owned(), name: id.to_owned(), carried, condition }
}

fn worker() -> ServerOwner {
    let machine = "default-worker-0".parse().unwrap();
    ServerOwner::Ours {
        what: OwnServer::Member(Member { cluster: cluster(7), machine }),
        is_worker: true,
    }
}

fn vm() -> ServerOwner {
    let id = VmUuid::from_untyped_uuid(Uuid::from_u128(9));
    ServerOwner::Ours { what: OwnServer::Vm(id), is_worker: false }
}

fn seen(
    seconds: i64,
    service: ComputeServiceState,
    servers: Vec<ServerOnHost>,
) -> DrainObservation {
    let (service_id, members) = ("9".to_owned(), BTreeSet::new());
    DrainObservation::Host(HostObservation {
        at: at(seconds),
        service,
        service_id,
        members,
        servers,
    })
}

/// An observation of a host without servers that members of clusters are on.
fn host_with(service: ComputeServiceState, members: BTreeSet<Member>) -> DrainObservation {
    let DrainObservation::Host(host) = seen(1, service, Vec::new()) else { panic!("no host") };
    DrainObservation::Host(HostObservation { members, ..host })
}

const RULES: DrainRules = DrainRules {
    shows_within: DrainRules::SHOWS_WITHIN,
    backoff: Backoff::DEFAULT,
    pauses: TurnPauses { soon: Duration::from_secs(1), look_every: Duration::from_secs(60) },
};

type Decided = Decision<RecordChange<Drain>, DrainAction>;

/// Returns the drain after the change of a decision about `before`.
fn changed(before: &Drain, decided: &Decided) -> Drain {
    match &decided.change {
        Some(RecordChange::Write(drain)) => drain.clone(),
        Some(RecordChange::Delete) | None => before.clone(),
    }
}

#[track_caller]
fn check(before: &Drain, decided: &Decided, want: Expect) {
    let drain = changed(before, decided);
    let fates: Vec<String> =
        drain.left.iter().map(|left| format!("{} {}", left.name, left.fate.as_str())).collect();
    let actions: Vec<String> = decided.actions.iter().map(|action| format!("{action:?}")).collect();
    let Requeue::After(pause) = decided.next_turn else { panic!("{decided:?}") };
    want.assert_eq(&format!(
        "{}: [{}] left [{}], foreign {}, again after {} s",
        drain.phase.as_str(),
        actions.join(", "),
        fates.join(", "),
        drain.foreign,
        pause.as_secs()
    ));
}

#[test]
fn a_host_is_disabled_before_the_first_server_migrates() {
    let servers = vec![server("a", vm(), ServerCondition::Runs)];
    let decided = plan_drain(&drain(), &seen(1, ComputeServiceState::Enabled, servers), &RULES);
    check(
        &drain(),
        &decided,
        expect![[
            r#"draining: [Disable { service: "9" }, Migrate("a")] left [a moves], foreign 0, again after 1 s"#
        ]],
    );
    // When the host cannot be disabled, no server leaves it in this turn.
    assert!(DrainOutcome::Failed(decided.actions[0].clone()).skips_rest());
    assert!(!DrainOutcome::Failed(decided.actions[1].clone()).skips_rest());
    assert!(!DrainOutcome::Done.skips_rest());
}

#[test]
fn a_second_request_for_a_host_starts_an_ended_drain_again() {
    use DrainPhase::{Drained, Draining, Ending, Stuck};

    let attempt = MigrationAttempts { at: at(1), is_open: true, failed: 2, why: String::new() };
    for (phase, then) in
        [(Draining, Draining), (Drained, Drained), (Stuck, Stuck), (Ending, Draining)]
    {
        let first = Drain {
            phase,
            forced: [cluster(1), cluster(2)].into(),
            takes: [member(1, 0)].into(),
            attempts: [("a".to_owned(), attempt.clone())].into(),
            ..drain()
        };
        let second = Drain {
            forced: [cluster(2), cluster(3)].into(),
            takes: [member(3, 0)].into(),
            ..drain()
        };
        let want = Drain {
            phase: then,
            forced: [cluster(1), cluster(2), cluster(3)].into(),
            takes: second.takes.clone(),
            ..first.clone()
        };
        assert_eq!(first.asked_again(&second), want);
    }
}

#[test]
fn a_host_is_drained_once_it_is_disabled_and_no_server_moves() {
    use ComputeServiceState::{DisabledByOthers, DisabledByUs, Enabled};

    let moving = || vec![server("a", vm(), ServerCondition::Moves)];
    let rows = [
        (Enabled, vec![], DrainPhase::Draining),
        (DisabledByUs, moving(), DrainPhase::Draining),
        (DisabledByUs, vec![], DrainPhase::Drained),
        (DisabledByOthers, vec![], DrainPhase::Drained),
    ];
    for (service, servers, phase) in rows {
        let decided = plan_drain(&drain(), &seen(1, service, servers), &RULES);
        assert_eq!(changed(&drain(), &decided).phase, phase, "{service:?}");
    }
}

/// Plans a turn for a drain that requested the migration of server `a` in second 10. `others` servers migrate already, and server `b` runs.
fn while_a_runs(attempt: &MigrationAttempts, others: usize, seconds: i64) -> (Drain, Decided) {
    let before = Drain { attempts: [("a".to_owned(), attempt.clone())].into(), ..drain() };
    let moving =
        (0..others).map(|n| server(&format!("m{n}"), ServerOwner::Foreign, ServerCondition::Moves));
    let running = ["a", "b"].map(|id| server(id, vm(), ServerCondition::Runs));
    let seen = seen(seconds, ComputeServiceState::DisabledByUs, moving.chain(running).collect());
    let decided = plan_drain(&before, &seen, &RULES);
    (changed(&before, &decided), decided)
}

#[test]
fn a_requested_migration_counts_as_one_until_it_should_show() {
    let asked = MigrationAttempts { at: at(10), is_open: true, failed: 0, why: String::new() };
    let (after, decided) = while_a_runs(&asked, 3, 11);
    check(
        &after,
        &decided,
        expect!["draining: [] left [a moves, b waits], foreign 3, again after 1 s"],
    );
    assert_eq!(after.attempts["a"], asked);
    let (after, decided) = while_a_runs(&asked, 2, 11);
    check(
        &after,
        &decided,
        expect![[
            r#"draining: [Migrate("b")] left [a moves, b moves], foreign 2, again after 1 s"#
        ]],
    );
    // After two seconds the request has failed, and the next one is due.
    let (after, decided) = while_a_runs(&asked, 3, 12);
    check(
        &after,
        &decided,
        expect![[
            r#"draining: [Migrate("a")] left [a moves, b waits], foreign 3, again after 1 s"#
        ]],
    );
    assert_eq!((after.attempts["a"].failed, after.attempts["a"].at), (1, at(12)));
}

#[test]
fn a_failed_migration_is_requested_again_once_its_waiting_time_is_over() {
    let failed = MigrationAttempts { at: at(10), is_open: false, failed: 1, why: "no".to_owned() };
    let (after, decided) = while_a_runs(&failed, 3, 11);
    check(
        &after,
        &decided,
        expect![[
            r#"draining: [Migrate("b")] left [a waits, b moves], foreign 3, again after 1 s"#
        ]],
    );
    let (after, decided) = while_a_runs(&failed, 3, 12);
    check(
        &after,
        &decided,
        expect![[
            r#"draining: [Migrate("a")] left [a moves, b waits], foreign 3, again after 1 s"#
        ]],
    );
}

#[test]
fn a_few_servers_migrate_at_once_and_others_wait() {
    let moving =
        (0..3).map(|n| server(&format!("m{n}"), ServerOwner::Foreign, ServerCondition::Moves));
    let more = ["a", "b"].map(|id| server(id, vm(), ServerCondition::Runs));
    let servers = moving.chain(more).collect();
    let decided =
        plan_drain(&drain(), &seen(1, ComputeServiceState::DisabledByOthers, servers), &RULES);
    check(
        &drain(),
        &decided,
        expect![[
            r#"draining: [Migrate("a")] left [a moves, b waits], foreign 3, again after 1 s"#
        ]],
    );
}

#[test]
fn a_server_that_is_off_stays_and_the_host_counts_as_drained() {
    let servers = vec![server("a", vm(), ServerCondition::Off)];
    let decided =
        plan_drain(&drain(), &seen(1, ComputeServiceState::DisabledByUs, servers), &RULES);
    check(&drain(), &decided, expect!["drained: [] left [a off], foreign 0, again after 60 s"]);
}

/// Requests the migration of a server that never moves, until nothing changes any more.
fn in_vain(carried: &ServerOwner) -> (Drain, Decided) {
    let mut turned = (drain(), Decision::rest(Requeue::OnChange));
    for seconds in (0..=15).step_by(3) {
        let servers = vec![server("a", carried.clone(), ServerCondition::Runs)];
        let seen = seen(seconds, ComputeServiceState::DisabledByUs, servers);
        let decided = plan_drain(&turned.0, &seen, &RULES);
        turned = (changed(&turned.0, &decided), decided);
    }
    turned
}

#[test]
fn a_server_that_fails_to_migrate_three_times_is_reported_to_stay() {
    let (drain, decided) = in_vain(&vm());
    // The server is tried again later.
    check(&drain, &decided, expect!["stuck: [] left [a stays], foreign 0, again after 2 s"]);
    assert_eq!(drain.attempts["a"].failed, 3);
}

#[test]
fn the_pods_of_a_worker_that_fails_to_migrate_are_evicted() {
    let (drain, decided) = in_vain(&worker());
    let Some(DrainAction::Evict(member)) = decided.actions.first().cloned() else {
        panic!("{decided:?}")
    };
    assert_eq!(drain.phase, DrainPhase::Draining);
    let emptied = after_drain_actions(&drain, &[DrainOutcome::Emptied(member.clone())], &RULES);
    let drain = changed(&drain, &emptied);
    let servers = vec![server("a", worker(), ServerCondition::Runs)];
    let decided = plan_drain(&drain, &seen(61, ComputeServiceState::DisabledByUs, servers), &RULES);
    check(&drain, &decided, expect!["drained: [] left [a emptied], foreign 0, again after 60 s"]);
    let ending = Drain { phase: DrainPhase::Ending, ..drain };
    let decided =
        plan_drain(&ending, &seen(62, ComputeServiceState::DisabledByUs, Vec::new()), &RULES);
    let enable = DrainAction::Enable { service: "9".to_owned() };
    assert_eq!(decided.actions, [enable, DrainAction::Uncordon(member)]);
    assert_eq!(decided.change, None, "the record stays until all is undone");
}

#[test]
fn a_worker_that_migrated_after_all_is_uncordoned() {
    let (drain, decided) = in_vain(&worker());
    let Some(DrainAction::Evict(member)) = decided.actions.first().cloned() else {
        panic!("{decided:?}")
    };
    let decided =
        plan_drain(&drain, &seen(61, ComputeServiceState::DisabledByUs, Vec::new()), &RULES);
    assert_eq!(decided.actions, [DrainAction::Uncordon(member.clone())]);
    let drain = changed(&drain, &decided);
    let refilled = after_drain_actions(&drain, &[DrainOutcome::Refilled(member)], &RULES);
    assert!(changed(&drain, &refilled).cordoned.is_empty());
}

#[test]
fn a_host_that_others_disabled_stays_disabled() {
    let ending = Drain { phase: DrainPhase::Ending, ..drain() };
    let decided =
        plan_drain(&ending, &seen(1, ComputeServiceState::DisabledByOthers, Vec::new()), &RULES);
    assert_eq!((decided.actions, decided.change), (vec![], Some(RecordChange::Delete)));
}

#[test]
fn the_record_of_a_drain_is_deleted_once_all_is_undone() {
    let ending = Drain { phase: DrainPhase::Ending, ..drain() };
    let enable = DrainAction::Enable { service: "9".to_owned() };
    let after =
        |outcomes: &[DrainOutcome]| -> Decided { after_drain_actions(&ending, outcomes, &RULES) };
    let over = after(&[DrainOutcome::Done]);
    assert_eq!(over.change, Some(RecordChange::Delete));
    assert_eq!((over.next_turn, over.log.len()), (Requeue::OnChange, 1));
    let failed = after(&[DrainOutcome::Failed(enable), DrainOutcome::Done]);
    let soon = Requeue::After(RULES.pauses.soon);
    assert_eq!((failed.change, failed.next_turn), (None, soon));
}

#[test]
fn a_drain_that_ends_still_records_the_members_on_its_host() {
    let ending = Drain { phase: DrainPhase::Ending, takes: [member(7, 0)].into(), ..drain() };
    let on_host = |members: BTreeSet<Member>| {
        plan_drain(&ending, &host_with(ComputeServiceState::DisabledByUs, members), &RULES)
    };
    let moved = BTreeSet::from([member(7, 1)]);
    let written = Drain { takes: moved.clone(), ..ending.clone() };
    let enable = vec![DrainAction::Enable { service: "9".to_owned() }];
    for (members, change) in
        [(moved, Some(RecordChange::Write(written))), (ending.takes.clone(), None)]
    {
        let decided = on_host(members);
        assert_eq!((decided.change, &decided.actions), (change, &enable));
    }
}

#[test]
fn the_quorum_is_checked_in_every_turn_while_members_are_on_a_drained_host() {
    let drained = Drain { phase: DrainPhase::Drained, ..drain() };
    let host = |members| host_with(ComputeServiceState::DisabledByUs, members);
    assert_eq!(plan_drain(&drained, &host(BTreeSet::new()), &RULES).change, None);
    let takes = BTreeSet::from([member(7, 0)]);
    let with_members = Drain { takes: takes.clone(), ..drained.clone() };
    let write = Some(RecordChange::Write(with_members.clone()));
    assert_eq!(plan_drain(&drained, &host(takes.clone()), &RULES).change, write);
    assert_eq!(plan_drain(&with_members, &host(takes), &RULES).change, write);
}

#[test]
fn a_control_plane_member_that_comes_later_moves_only_after_the_quorum_check() {
    let what = OwnServer::Member(member(7, 0));
    let master = || ServerOwner::Ours { what: what.clone(), is_worker: false };
    let host = || {
        let servers = vec![server("a", master(), ServerCondition::Runs)];
        let DrainObservation::Host(host) = seen(1, ComputeServiceState::DisabledByUs, servers)
        else {
            panic!("no host")
        };
        DrainObservation::Host(HostObservation { members: [member(7, 0)].into(), ..host })
    };
    let decided = plan_drain(&drain(), &host(), &RULES);
    check(&drain(), &decided, expect!["draining: [] left [a waits], foreign 0, again after 1 s"]);
    let counted = changed(&drain(), &decided);
    assert_eq!(counted.takes, [member(7, 0)].into());

    let problem = "it has no other member";
    let held =
        Drain { held: counted.takes.clone(), problem: Some(problem.to_owned()), ..counted.clone() };
    let decided = plan_drain(&held, &host(), &RULES);
    check(&held, &decided, expect!["stuck: [] left [a stays], foreign 0, again after 60 s"]);
    let stuck = changed(&held, &decided);
    assert_eq!(stuck.left[0].why, problem);
    assert!(plan_drain(&stuck, &host(), &RULES).change.is_some(), "the check is repeated");

    let decided = plan_drain(&counted, &host(), &RULES);
    check(
        &counted,
        &decided,
        expect![[r#"draining: [Migrate("a")] left [a moves], foreign 0, again after 1 s"#]],
    );
}

#[test]
fn the_drain_of_a_host_that_is_gone_ends_when_nothing_is_left_to_move() {
    use DrainPhase::{Drained, Draining, Ending, Stuck};

    let rest = Requeue::After(RULES.pauses.look_every);
    for (phase, is_over) in [(Draining, false), (Stuck, false), (Drained, true), (Ending, true)] {
        let drain = Drain { phase, ..drain() };
        let gone = plan_drain(&drain, &DrainObservation::NoHost("gone".to_owned()), &RULES);
        let want = match is_over {
            true => (Some(RecordChange::Delete), Requeue::OnChange),
            false => (None, rest),
        };
        assert_eq!((gone.change, gone.next_turn), want, "{phase:?}");
        let unknown = plan_drain(&drain, &DrainObservation::Unknown("away".to_owned()), &RULES);
        assert_eq!((unknown.change, unknown.next_turn), (None, rest), "{phase:?}");
    }
}

#[test]
fn a_refused_migration_is_a_failed_attempt() {
    let servers = vec![server("a", vm(), ServerCondition::Runs)];
    let decided =
        plan_drain(&drain(), &seen(1, ComputeServiceState::DisabledByUs, servers), &RULES);
    let drain = changed(&drain(), &decided);
    let refused = DrainOutcome::Refused("a".to_owned(), "no".to_owned());
    let after = changed(&drain, &after_drain_actions(&drain, &[refused], &RULES));
    let attempt = &after.attempts["a"];
    assert_eq!((attempt.is_open, attempt.failed, attempt.why.as_str()), (false, 1, "no"));
    // A call without a result changes nothing.
    let after: Decided = after_drain_actions(&drain, &[DrainOutcome::Done], &RULES);
    assert_eq!((after.change, after.next_turn), (None, Requeue::OnChange));
}

#[test]
fn a_drain_is_kept_as_it_was_written() {
    let mut drain = in_vain(&worker()).0;
    drain.takes.clear();
    let text = serde_json::to_string(&drain).unwrap();
    assert_eq!(serde_json::from_str::<Drain>(&text).unwrap(), drain);
}

#[test]
fn a_host_name_follows_novas_schema() {
    let longest = "h".repeat(255);
    for good in ["r1u07.example_1", ".a", &longest] {
        assert_eq!(good.parse::<HostName>().unwrap().as_str(), good);
    }
    for bad in ["", "a b", "a/b", "ü", ".", "..", &"h".repeat(256)] {
        assert!(bad.parse::<HostName>().is_err(), "{bad:?} passed");
    }
}
