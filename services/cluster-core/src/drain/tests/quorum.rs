//! The admission of drains: no set of them breaks a cluster's quorum.

use super::*;

type Granted = BTreeMap<HostName, BTreeSet<Member>>;

fn quorum(number: usize, members: usize) -> EtcdQuorum {
    EtcdQuorum {
        cluster: cluster(number),
        name: format!("c{number}"),
        members: (0..members).map(machine).collect(),
        away: BTreeSet::new(),
        is_rotating: false,
    }
}

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
    expect![[r#"host host-0 cannot be drained now: cluster c7 (00000000-0000-0000-0000-000000000007) would have 2 of its 5 etcd members and needs 3: on this host: default-master-0; the drain of host-1 moves default-master-1; not ready, or restarting: default-master-2; wait, or name in force each cluster that may lose its quorum"#]]
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
fn a_member_that_joins_in_an_upgrade_counts_before_it_runs() {
    let mut sample = Sample::highly_available();
    sample.cluster.nodes = (0..3).map(machine).collect();
    sample.groups[0].outdated = [0, 1, 2].into();
    assert_eq!(sample.groups[0].surge(0), 3);
    let of = |sample: &Sample| EtcdQuorum::of(&sample.cluster, &sample.groups);
    let asked = |sample: &Sample| {
        let quorum = EtcdQuorum { cluster: cluster(7), ..of(sample) };
        ask(1, &[member(7, 1)], &Granted::new(), &quorum)
    };
    let quorum = of(&sample);
    assert_eq!((quorum.members.len(), quorum.needed()), (4, 3));
    assert_eq!(quorum.away, [machine(3)].into());
    assert!(asked(&sample).is_err(), "two of four would be left");
    sample.cluster.nodes.insert(machine(3));
    assert_eq!(asked(&sample), Ok(()));
}

#[test]
fn members_that_renew_certificates_or_reboot_are_away() {
    let mut sample = Sample::highly_available();
    sample.cluster.nodes = (0..3).map(machine).collect();
    let first = crate::LeafCertificate::new("apiserver".to_owned(), at(0), at(0), at(100));
    let held = crate::MemberCertificates { first, renewing_since: Some(at(40)), renewed_at: None };
    sample.cluster.certificates = [(machine(1), held)].into();
    let quorum = EtcdQuorum::of(&sample.cluster, &sample.groups);
    assert_eq!(quorum.away, [machine(1)].into());
    let phase = crate::RebootPhase::Draining;
    let reboot = crate::MemberReboot { machine: machine(2), phase, since: at(0) };
    sample.cluster.reboot = Some(reboot);
    let quorum = EtcdQuorum::of(&sample.cluster, &sample.groups);
    assert_eq!(quorum.away, [machine(1), machine(2)].into());
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
        assert_eq!(before.with_admission(refused.clone(), &takes), with(then, Some(why.clone())));
        assert_eq!(before.with_admission(Ok(()), &takes), with(phase, None));
    }
}

#[test]
fn a_member_that_came_after_the_grant_is_held_until_its_cluster_can_spare_it() {
    let takes: BTreeSet<Member> = [member(7, 0), member(7, 1)].into();
    let refused = admit_drain(&host(1), &takes, &BTreeSet::new(), &Granted::new(), &[quorum(7, 3)]);
    let granted = [member(7, 0)].into();
    let came = Drain { takes, ..drain() }.with_admission(refused.clone(), &granted);
    assert_eq!(came.held, [member(7, 1)].into());
    let later = came.with_admission(refused, &came.takes);
    assert_eq!(later.held, came.held);
    assert_eq!(later.with_admission(Ok(()), &later.takes).held, BTreeSet::new());
    assert_eq!(later.asked_again(&later).held, BTreeSet::new(), "a second request is granted");
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
