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

fn quorum(number: usize, members: usize) -> EtcdQuorum {
    EtcdQuorum {
        cluster: cluster(number),
        name: format!("c{number}"),
        members: (0..members).map(machine).collect(),
        away: BTreeSet::new(),
        is_rotating: false,
    }
}

fn member(of: usize, number: usize) -> Member {
    Member { cluster: cluster(of), machine: machine(number) }
}

type Granted = BTreeMap<HostName, BTreeSet<Member>>;

fn ask(
    number: usize,
    takes: &[Member],
    granted: &Granted,
    quorum: &EtcdQuorum,
) -> Result<(), String> {
    let takes = takes.iter().cloned().collect();
    let asked =
        admit_drain(&host(number), &takes, &BTreeSet::new(), granted, std::slice::from_ref(quorum));
    asked.map_err(|why| why.to_string())
}

#[test]
fn two_of_three_members_are_never_taken_whichever_is_asked_for_first() {
    let quorum = quorum(7, 3);
    for (first, second) in [(0, 1), (1, 0)] {
        let takes = [member(7, first)];
        assert_eq!(ask(first, &takes, &Granted::new(), &quorum), Ok(()));
        let granted = Granted::from([(host(first), takes.into())]);
        let refused = ask(second, &[member(7, second)], &granted, &quorum).unwrap_err();
        assert!(refused.contains(&format!("the drain of host-{first} moves")), "{refused}");
    }
}

/// Two of five members may be out, in any order of requests, and whether a drain takes them or they are not ready.
#[test]
fn two_of_five_members_may_be_taken_and_no_third() {
    let orders = [[0, 1, 2], [2, 0, 4], [4, 3, 1]];
    for [first, second, third] in orders {
        let all = quorum(7, 5);
        let mut granted = Granted::new();
        for number in [first, second] {
            assert_eq!(ask(number, &[member(7, number)], &granted, &all), Ok(()), "{number}");
            granted.insert(host(number), [member(7, number)].into());
        }
        let refused = ask(third, &[member(7, third)], &granted, &all).unwrap_err();
        assert!(refused.contains("would have 2 of its 5 etcd members and needs 3"), "{refused}");

        let one_away = EtcdQuorum { away: [machine(first)].into(), ..quorum(7, 5) };
        assert_eq!(ask(second, &[member(7, second)], &Granted::new(), &one_away), Ok(()));
        let two_away =
            EtcdQuorum { away: [machine(first), machine(second)].into(), ..quorum(7, 5) };
        assert!(ask(third, &[member(7, third)], &Granted::new(), &two_away).is_err());
        // Two members on the same host count as two.
        let both = [member(7, first), member(7, second)];
        assert_eq!(ask(first, &both, &Granted::new(), &quorum(7, 5)), Ok(()));
        assert!(ask(first, &both, &Granted::new(), &one_away_of(third)).is_err());
    }
}

fn one_away_of(number: usize) -> EtcdQuorum {
    EtcdQuorum { away: [machine(number)].into(), ..quorum(7, 5) }
}

#[test]
fn a_refusal_names_the_cluster_its_members_and_every_reason() {
    let quorum = EtcdQuorum { away: [machine(2)].into(), ..quorum(7, 5) };
    let granted = Granted::from([(host(1), [member(7, 1)].into())]);
    let refused = ask(0, &[member(7, 0)], &granted, &quorum).unwrap_err();
    expect![[r#"host host-0 cannot be drained now: cluster c7 (00000000-0000-0000-0000-000000000007) would have 2 of its 5 etcd members and needs 3: on this host: default-master-0; the drain of host-1 moves default-master-1; not ready: default-master-2; wait, or name in force each cluster that may lose its quorum"#]]
        .assert_eq(&refused);
}

#[test]
fn a_cluster_without_a_spare_member_is_drained_only_by_force() {
    for members in [1, 2] {
        let quorum = quorum(7, members);
        assert!(ask(0, &[member(7, 0)], &Granted::new(), &quorum).is_err());
        let (takes, forced) = ([member(7, 0)].into(), [cluster(7)].into());
        let quorums = std::slice::from_ref(&quorum);
        assert_eq!(admit_drain(&host(0), &takes, &forced, &Granted::new(), quorums), Ok(()));
    }
}

#[test]
fn while_a_member_is_out_or_a_ca_rotation_runs_no_other_is_taken() {
    let out = EtcdQuorum { away: [machine(1)].into(), ..quorum(7, 3) };
    assert!(ask(0, &[member(7, 0)], &Granted::new(), &out).is_err());
    assert_eq!(ask(0, &[member(7, 1)], &Granted::new(), &out), Ok(()), "it is out anyway");
    let rotating = EtcdQuorum { is_rotating: true, ..quorum(7, 3) };
    assert!(ask(0, &[member(7, 0)], &Granted::new(), &rotating).is_err());
}

#[test]
fn members_are_the_nodes_of_the_control_plane() {
    let mut sample = Sample::highly_available();
    sample.cluster.nodes =
        sample.groups.iter().flat_map(crate::NodeGroup::refs).collect::<BTreeSet<_>>();
    sample.cluster.unready = [machine(1)].into();
    let quorum = EtcdQuorum::of(&sample.cluster, &sample.groups);
    assert_eq!(quorum.members, (0..3).map(machine).collect());
    assert_eq!(quorum.away, [machine(1)].into());
    // A replaced member counts as a member until it has left etcd.
    sample.groups[0].replace_machine(0);
    let quorum = EtcdQuorum::of(&sample.cluster, &sample.groups);
    assert_eq!((quorum.members.len(), quorum.away.contains(&machine(0))), (3, true));
    // Members restart during a CA rotation.
    assert!(!quorum.is_rotating);
    sample.cluster.authorities.revision = 1;
    assert!(EtcdQuorum::of(&sample.cluster, &sample.groups).is_rotating);
    sample.cluster.desire = crate::DesiredState::Gone;
    assert_eq!(EtcdQuorum::of(&sample.cluster, &sample.groups).members, BTreeSet::new());
}

#[test]
fn a_drained_host_whose_admission_is_refused_later_is_stuck() {
    use DrainPhase::{Drained, Draining, Ending, Stuck};

    let takes = [member(7, 0)].into();
    let refused = admit_drain(&host(1), &takes, &BTreeSet::new(), &Granted::new(), &[quorum(7, 1)]);
    let why = refused.clone().unwrap_err().to_string();
    for (phase, then) in [(Draining, Draining), (Drained, Stuck), (Stuck, Stuck), (Ending, Ending)]
    {
        let before = Drain { phase, problem: Some("old".to_owned()), ..drain() };
        let with = |phase, problem| Drain { phase, problem, ..drain() };
        assert_eq!(before.with_admission(refused.clone()), with(then, Some(why.clone())));
        assert_eq!(before.with_admission(Ok(())), with(phase, None));
    }
}

prop_compose! {
    /// Clusters of 1, 3 or 5 members, each member on one of six hosts, and an order in which the hosts are requested.
    fn world()(sizes in prop::collection::vec(prop::sample::select(vec![1_usize, 3, 5]), 1..5))(
        homes in prop::collection::vec(prop::collection::vec(0_usize..6, 5), sizes.len()),
        away in prop::collection::vec(prop::option::of(0_usize..5), sizes.len()),
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
        sizes in Just(sizes),
    ) -> (Vec<EtcdQuorum>, Vec<BTreeSet<Member>>, Vec<usize>) {
        let mut hosts = vec![BTreeSet::new(); 6];
        let mut quorums = Vec::new();
        for (of, size) in sizes.iter().enumerate() {
            let out = away[of].filter(|out| out < size).map(machine);
            quorums.push(EtcdQuorum { away: out.into_iter().collect(), ..quorum(of, *size) });
            for number in 0..*size {
                hosts[homes[of][number]].insert(member(of, number));
            }
        }
        (quorums, hosts, order)
    }
}

fn left(quorum: &EtcdQuorum, granted: &Granted) -> usize {
    let is_taken = |machine: &&MemberName| {
        let member = Member { cluster: quorum.cluster, machine: (*machine).clone() };
        granted.values().any(|takes| takes.contains(&member)) || quorum.away.contains(*machine)
    };
    quorum.members.iter().filter(|machine| !is_taken(machine)).count()
}

proptest! {
    #[test]
    fn no_set_of_drains_in_any_order_takes_a_quorum((quorums, hosts, order) in world()) {
        let mut granted = Granted::new();
        for number in order {
            let takes = &hosts[number];
            let asked = admit_drain(&host(number), takes, &BTreeSet::new(), &granted, &quorums);
            let mut with = granted.clone();
            with.insert(host(number), takes.clone());
            let breaks = |quorum: &&EtcdQuorum| {
                let is_here = takes.iter().any(|member| member.cluster == quorum.cluster);
                is_here && left(quorum, &with) < quorum.needed()
            };
            let broken: Vec<ClusterUuid> = quorums.iter().filter(breaks).map(|it| it.cluster).collect();
            match asked {
                // A refusal names exactly the clusters that would have lost their quorum.
                Err(refused) => {
                    let named: Vec<ClusterUuid> = refused.lost.iter().map(|it| it.cluster).collect();
                    prop_assert_eq!(named, broken);
                }
                Ok(()) => {
                    prop_assert_eq!(broken, vec![]);
                    granted = with;
                }
            }
            for quorum in &quorums {
                let is_touched = granted.values().flatten().any(|it| it.cluster == quorum.cluster);
                prop_assert!(!is_touched || left(quorum, &granted) >= quorum.needed());
            }
        }
    }

    #[test]
    fn the_first_of_two_drains_that_break_a_quorum_together_is_granted((quorums, hosts, order) in world()) {
        let (one, other) = (order[0], order[1]);
        let asked = |first: usize, second: usize| {
            let mut granted = Granted::new();
            let nobody = BTreeSet::new();
            let mut each = Vec::new();
            for number in [first, second] {
                let is_granted =
                    admit_drain(&host(number), &hosts[number], &nobody, &granted, &quorums).is_ok();
                if is_granted {
                    granted.insert(host(number), hosts[number].clone());
                }
                each.push(is_granted);
            }
            each
        };
        let (forth, back) = (asked(one, other), asked(other, one));
        // A drain that would be granted alone is granted when it comes first. Whether both can be granted then does not depend on the
        // order.
        if forth[0] && back[0] {
            prop_assert_eq!(forth[1], back[1]);
        }
    }
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
fn the_quorum_is_checked_in_every_turn_while_members_are_on_a_drained_host() {
    let drained = Drain { phase: DrainPhase::Drained, ..drain() };
    let host = |members: BTreeSet<Member>| {
        let DrainObservation::Host(host) = seen(1, ComputeServiceState::DisabledByUs, Vec::new())
        else {
            panic!("no host")
        };
        DrainObservation::Host(HostObservation { members, ..host })
    };
    assert_eq!(plan_drain(&drained, &host(BTreeSet::new()), &RULES).change, None);
    let takes = BTreeSet::from([member(7, 0)]);
    let with_members = Drain { takes: takes.clone(), ..drained.clone() };
    let write = Some(RecordChange::Write(with_members.clone()));
    assert_eq!(plan_drain(&drained, &host(takes.clone()), &RULES).change, write);
    assert_eq!(plan_drain(&with_members, &host(takes), &RULES).change, write);
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
