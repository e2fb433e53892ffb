use super::*;
use crate::sample::{Sample, at, labels};
use crate::{
    Action, CaRevision, LeafCertificate, MemberCertificates, RepairLimits, members_to_replace, plan,
};

const MEMBERS: [&str; 5] = [
    "default-master-0",
    "default-master-1",
    "default-master-2",
    "default-worker-0",
    "default-worker-1",
];

fn machine(name: &str) -> MemberName {
    name.parse().unwrap()
}

/// A complete cluster whose members may update their operating systems.
fn running() -> (Sample, ClusterObservation) {
    let mut sample = Sample::highly_available();
    let updates = labels(&[("os_updates_enabled", "true")]);
    sample.groups.iter_mut().for_each(|group| group.labels = updates.clone());
    let mut seen = ClusterObservation::default();
    sample.settle(&mut seen);
    sample.cluster.nodes = sample.groups.iter().flat_map(NodeGroup::refs).collect();
    sample.cluster.completed_at = Some(at(1));
    (sample, seen)
}

/// Decides about a question and records the decision, as the conductor does.
fn ask(sample: &mut Sample, name: &str, now: i64) -> RebootAnswer {
    let decision = ask_reboot(&sample.spec(), &BTreeSet::new(), &machine(name), at(now));
    if let Some((reboot, _)) = decision.change {
        sample.cluster.reboot = Some(reboot);
    }
    decision.answer
}

/// Applies an observation after the actions of the plan, as a turn does.
fn turn(sample: &mut Sample, seen: &ClusterObservation, now: i64) -> Vec<String> {
    let mut seen = seen.clone();
    let actions = plan(&sample.spec(), &seen);
    actions.iter().for_each(|action| sample.perform(action, &mut seen));
    let is_over = |it: &&MemberReboot| matches!(it.phase, RebootPhase::Ended | RebootPhase::Failed);
    let ended = sample.cluster.reboot.as_ref().filter(is_over);
    seen.uncordoned = ended.map(|it| it.machine.clone());
    sample.cluster = sample.cluster.with_observation(&sample.groups, &seen, at(now));
    actions.iter().map(ToString::to_string).collect()
}

#[test]
fn members_reboot_one_after_the_other_once_their_pods_are_evicted() {
    let (mut sample, seen) = running();
    for (step, name) in (0_i64..).zip(MEMBERS) {
        let now = step * 10;
        let evicted = RebootAnswer::Wait(format!("the pods of member {name} are evicted"));
        assert_eq!(ask(&mut sample, name, now), evicted);
        assert_eq!(ask(&mut sample, name, now), evicted);
        assert_eq!(turn(&mut sample, &seen, now + 1), [format!("drain {name}")]);
        assert_eq!(ask(&mut sample, name, now + 2), RebootAnswer::Permitted);
        for other in MEMBERS.into_iter().filter(|other| *other != name) {
            let want = RebootAnswer::Wait(format!("member {name} reboots"));
            assert_eq!(ask(&mut sample, other, now + 2), want);
        }
        assert_eq!(turn(&mut sample, &seen, now + 3), [""; 0]);
        let (ended, event) = end_reboot(&sample.spec(), &machine(name), at(now + 4)).unwrap();
        assert_eq!(event.message, format!("member {name} has rebooted"));
        sample.cluster.reboot = Some(ended);
        assert_eq!(end_reboot(&sample.spec(), &machine(name), at(now + 5)), None);
        assert_eq!(turn(&mut sample, &seen, now + 6), [""; 0]);
        assert_eq!(sample.cluster.reboot, None);
    }
}

/// Why the first member may not reboot after a change of the cluster.
fn why(change: impl FnOnce(&mut Sample, &mut BTreeSet<MemberName>)) -> String {
    let ((mut sample, _), mut drained) = (running(), BTreeSet::new());
    change(&mut sample, &mut drained);
    let decision = ask_reboot(&sample.spec(), &drained, &machine(MEMBERS[0]), at(0));
    match decision.answer {
        RebootAnswer::Wait(why) if decision.change.is_none() => why,
        answer @ (RebootAnswer::Permitted | RebootAnswer::Wait(_)) => {
            format!("{answer:?}, {:?}", decision.change)
        }
    }
}

#[test]
fn no_member_reboots_while_anything_else_is_amiss() {
    let said = [
        why(|sample, _| sample.groups[0].labels = labels(&[])),
        why(|sample, _| sample.cluster.authorities = CaRevision { revision: 1, settled: 0 }),
        why(|sample, _| sample.cluster.roll = Some(sample.roll())),
        why(|sample, _| sample.cluster.restore = Some(crate::sample::restore())),
        why(|sample, _| sample.cluster.rest = Some(crate::LeasePower::Off)),
        why(|sample, _| assert!(sample.cluster.nodes.remove(&machine(MEMBERS[4])))),
        why(|sample, _| assert!(sample.cluster.unready.insert(machine(MEMBERS[3])))),
        why(|sample, _| {
            let first = LeafCertificate::new("apiserver".to_owned(), at(0), at(0), at(100));
            let held = MemberCertificates { first, renewing_since: Some(at(40)), renewed_at: None };
            sample.cluster.certificates.insert(machine(MEMBERS[1]), held);
        }),
        why(|_, drained| assert!(drained.insert(machine(MEMBERS[2])))),
    ];
    let want = [
        "the label os_updates_enabled of the node group is not true",
        "a CA rotation is in progress",
        "an upgrade is in progress",
        "the control plane is being restored",
        "the servers of the cluster are off or are starting",
        "member default-worker-1 is not a Kubernetes node yet",
        "member default-worker-0 is not ready",
        "member default-master-1 renews its certificates",
        "member default-master-2 is on a host that is being drained",
    ];
    assert_eq!(said, want);
    let said = why(|sample, _| {
        sample.cluster.roll = Some(crate::Roll { is_paused: true, ..sample.roll() });
    });
    assert!(said.starts_with("Wait(\"the pods of member default-master-0"), "{said}");
    // A reboot may heal the member itself.
    let said = why(|sample, _| assert!(sample.cluster.unready.insert(machine(MEMBERS[0]))));
    assert!(said.starts_with("Wait(\"the pods of member default-master-0"), "{said}");
}

#[test]
fn a_member_that_does_not_come_back_holds_up_the_others_for_half_an_hour() {
    let (mut sample, mut seen) = running();
    let said = seen.machines.get_mut(&machine(MEMBERS[0])).unwrap();
    said.node = NodeHealth::NotReady { since: at(0) };
    let limits = RepairLimits::DEFAULT;
    let replaced =
        |sample: &Sample, now| members_to_replace(&sample.spec(), &seen, &limits, at(now)).len();
    assert_eq!(replaced(&sample, 1790), 1);
    let permitted =
        |since| MemberReboot { machine: machine(MEMBERS[0]), phase: RebootPhase::Permitted, since };
    sample.cluster.reboot = Some(permitted(at(0)));
    assert_eq!(replaced(&sample, 1790), 0, "it reboots");
    turn(&mut sample, &seen, 1799);
    assert_eq!(sample.cluster.reboot, Some(permitted(at(0))));
    turn(&mut sample, &seen, 1800);
    assert_eq!(sample.cluster.reboot.as_ref().unwrap().phase, RebootPhase::Ended);
    assert_eq!(replaced(&sample, 1801), 1);
}

#[test]
fn a_drained_control_plane_member_waits_while_another_one_is_not_ready_or_drained() {
    let permitted = |name: &str, change: fn(&mut ClusterObservation)| {
        let (mut sample, mut seen) = running();
        ask(&mut sample, name, 0);
        change(&mut seen);
        turn(&mut sample, &seen, 1);
        sample.cluster.is_rebooting(&machine(name))
    };
    let not_ready = |seen: &mut ClusterObservation| {
        let said = seen.machines.get_mut(&machine(MEMBERS[1])).unwrap();
        said.node = NodeHealth::NotReady { since: at(0) };
    };
    let drained = |seen: &mut ClusterObservation| {
        seen.drained.insert(machine(MEMBERS[1]));
    };
    assert!(permitted(MEMBERS[0], |_| ()));
    assert!(!permitted(MEMBERS[0], not_ready));
    assert!(!permitted(MEMBERS[0], drained));
    assert!(permitted(MEMBERS[3], not_ready), "etcd does not need a worker");
    // The member is uncordoned after half an hour, and asks again later.
    let (mut sample, mut seen) = running();
    ask(&mut sample, MEMBERS[0], 0);
    not_ready(&mut seen);
    turn(&mut sample, &seen, 1800);
    assert_eq!(sample.cluster.reboot.unwrap().phase, RebootPhase::Failed);
}

#[test]
fn the_reboot_of_a_removed_member_is_forgotten() {
    let (mut sample, seen) = running();
    ask(&mut sample, MEMBERS[4], 0);
    sample.groups[1].machines.remove(&1);
    let drain = Action::Drain(machine(MEMBERS[4]));
    let drains = plan(&sample.spec(), &seen).into_iter().filter(|it| *it == drain).count();
    assert_eq!(drains, 1, "the removal drains the member, and nothing else does");
    turn(&mut sample, &seen, 1);
    assert_eq!(sample.cluster.reboot, None);
}

#[test]
fn a_member_whose_pods_cannot_be_evicted_waits_for_hours_and_the_others_do_not() {
    const HOURS: i64 = 3600;
    let (mut sample, mut seen) = running();
    let (held, other) = (MEMBERS[3], MEMBERS[0]);
    ask(&mut sample, held, 0);
    // The cluster's API does not answer, so nothing is evicted.
    seen.machines.values_mut().for_each(|said| said.node = NodeHealth::Unknown);
    let phase = |sample: &Sample| sample.cluster.reboot.as_ref().map(|it| it.phase);
    let phases = [
        (1799, Some(RebootPhase::Draining)),
        (1800, Some(RebootPhase::Failed)),
        (1801, None),
        (1802, None),
    ];
    for (now, want) in phases {
        turn(&mut sample, &seen, now);
        assert_eq!(phase(&sample), want, "at {now}");
    }
    sample.cluster.unready.clear();
    let why = format!("the pods of member {held} could not be evicted; try again in some hours");
    let waits = RebootAnswer::Wait(why);
    assert_eq!(ask(&mut sample, held, 1801 + 6 * HOURS - 1), waits);
    let mut later = Sample { cluster: sample.cluster.clone(), groups: sample.groups.clone() };
    ask(&mut later, held, 1801 + 6 * HOURS);
    assert_eq!(phase(&later), Some(RebootPhase::Draining));
    // The pods of another member cannot be evicted either. The first one waits as long as before.
    ask(&mut sample, other, 1900);
    assert_eq!(sample.cluster.reboot.as_ref().unwrap().machine, machine(other));
    for now in [3700, 3701] {
        turn(&mut sample, &seen, now);
    }
    sample.cluster.unready.clear();
    assert_eq!(ask(&mut sample, held, 3702), waits);
    let failed = [(machine(other), at(3701)), (machine(held), at(1801))];
    assert_eq!(sample.cluster.undrained, BTreeMap::from(failed));
    turn(&mut sample, &seen, 1801 + 6 * HOURS);
    assert_eq!(sample.cluster.undrained.into_keys().collect::<Vec<_>>(), [machine(other)]);
}
