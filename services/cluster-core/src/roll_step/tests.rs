use newtype_uuid::GenericUuid;
use uuid::Uuid;

use super::*;
use crate::sample::{Sample, at, labels};
use crate::{
    ClusterParameters, KubernetesVersion, LeafCertificate, MemberCertificates, MemberReboot, Owner,
    RebootPhase, Template, TemplateUuid, UpgradeRequest, UpgradeScope, plan,
};

const OLD: KubernetesVersion = KubernetesVersion { minor: 33, patch: 2 };
const NEW: KubernetesVersion = KubernetesVersion { minor: 34, patch: 1 };

/// A cluster whose upgrade was requested, and its observation.
fn requested(at_once: u32, max_unavailable: u32) -> (Sample, ClusterObservation) {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    sample.cluster.kubernetes = OLD;
    serve(&mut sample, &mut seen);
    let base = sample.cluster.blueprint.clone();
    let named = |id: TemplateUuid, blueprint: ClusterParameters| {
        Template::new(id, Owner::new("p", "u"), "t".parse().unwrap(), blueprint, at(0))
    };
    let newer = base.labels.merged(&labels(&[("kube_tag", "v1.34.1")])).unwrap();
    let former = named(sample.cluster.template, base.clone());
    let id = TemplateUuid::from_untyped_uuid(Uuid::from_u128(9));
    let template = named(id, ClusterParameters { labels: newer, ..base });
    let request = UpgradeRequest {
        template: &template,
        former: &former,
        scope: UpgradeScope::All,
        at_once,
        max_unavailable,
    };
    let upgraded = request.on(&sample.cluster, &sample.groups, at(5)).unwrap();
    sample.cluster = upgraded.cluster;
    (sample, seen)
}

/// Has every ready control-plane member serve, and records the observation.
fn serve(sample: &mut Sample, seen: &mut ClusterObservation) {
    let masters = sample.groups[0].name.clone();
    let ready = seen
        .machines
        .iter()
        .filter(|(member, said)| member.group == masters && said.node == NodeHealth::Ready);
    seen.serving = ready.map(|(member, _)| member.clone()).collect();
    sample.cluster = sample.cluster.with_observation(&sample.groups, seen, at(9));
}

fn record(sample: &mut Sample, changed: RollChanged) -> String {
    let RollChanged { cluster, groups, event: (_, message) } = changed;
    sample.cluster = cluster;
    for group in groups {
        let own = sample.groups.iter_mut().find(|it| it.id == group.id).unwrap();
        *own = group;
    }
    message
}

/// The numbers of members of a role that exist and are ready, and those of etcd's members.
fn counts(sample: &Sample, seen: &ClusterObservation) -> (usize, usize) {
    let workers = seen.machines.iter().filter(|(member, said)| {
        member.group == sample.groups[1].name
            && said.node == NodeHealth::Ready
            && !said.is_drained
            && seen.objects.contains_key(&Key::Server((*member).clone()))
    });
    let etcd = seen.machines.values().filter(|said| said.is_etcd_member).count();
    (workers.count(), etcd)
}

/// Performs a roll to its end. Returns the steps, and the least and the largest numbers of ready workers and of etcd members.
fn performed(
    sample: &mut Sample,
    seen: &mut ClusterObservation,
) -> (Vec<String>, [(usize, usize); 2]) {
    let mut steps = Vec::new();
    let (mut workers, mut etcd) = ((9, 0), (9, 0));
    for _ in 0..200 {
        serve(sample, seen);
        match roll_step(&sample.spec(), seen) {
            None => return (steps, [workers, etcd]),
            Some(RollStep::Change(changed)) => steps.push(record(sample, *changed)),
            Some(RollStep::Wait(why)) => {
                let actions = plan(&sample.spec(), seen);
                assert!(!actions.is_empty(), "it waits for ever: {why}");
                actions.iter().for_each(|action| sample.perform(action, seen));
            }
        }
        let (ready, members) = counts(sample, seen);
        workers = (workers.0.min(ready), workers.1.max(ready));
        etcd = (etcd.0.min(members), etcd.1.max(members));
    }
    panic!("it never ends: {steps:?}")
}

#[test]
fn the_control_plane_is_replaced_member_by_member_and_workers_follow() {
    let (mut sample, mut seen) = requested(1, 0);
    let (steps, [workers, etcd]) = performed(&mut sample, &mut seen);
    expect_test::expect![[r#"
        replacing the 3 members of default-master
        default-master-3 is created and will replace default-master-0
        default-master-3 is ready, and default-master-0 is removed
        default-master-4 is created and will replace default-master-1
        default-master-4 is ready, and default-master-1 is removed
        default-master-5 is created and will replace default-master-2
        default-master-5 is ready, and default-master-2 is removed
        the control plane is upgraded from v1.33.2 to v1.34.1
        replacing the 2 members of default-worker
        default-worker-2 is created and will replace default-worker-0
        default-worker-2 is ready, and default-worker-0 is removed
        default-worker-3 is created and will replace default-worker-1
        default-worker-3 is ready, and default-worker-1 is removed
        all members have version v1.34.1"#]]
    .assert_eq(&steps.join("\n"));
    assert_eq!((workers, etcd), ((2, 3), (3, 4)));
    assert_eq!((sample.cluster.kubernetes, sample.groups[1].kubernetes), (NEW, None));
    let left: Vec<u32> = sample.groups.iter().flat_map(|it| it.machines.clone()).collect();
    assert_eq!(left, [3, 4, 5, 2, 3]);
    assert!(sample.groups.iter().all(|group| !group.is_rolling() && group.replacing.is_empty()));
    serve(&mut sample, &mut seen);
    assert_eq!(sample.cluster.completed_at, Some(at(9)), "the upgrade is complete now");
}

#[test]
fn workers_are_replaced_as_many_at_once_as_requested() {
    let (mut sample, mut seen) = requested(2, 0);
    let (_, [workers, etcd]) = performed(&mut sample, &mut seen);
    assert_eq!((workers, etcd), ((2, 4), (3, 4)));
    // Without room for more members, old ones are removed first.
    let (mut sample, mut seen) = requested(0, 1);
    let (_, [workers, etcd]) = performed(&mut sample, &mut seen);
    assert_eq!((workers, etcd), ((1, 2), (3, 4)));
}

#[test]
fn new_members_get_the_new_version_when_their_group_begins() {
    let (mut sample, seen) = requested(1, 0);
    let versions =
        |sample: &Sample| [0, 1].map(|group| sample.spec().version_of(&sample.groups[group]));
    assert_eq!(versions(&sample), [OLD, OLD]);
    let step = |sample: &mut Sample| {
        let Some(RollStep::Change(changed)) = roll_step(&sample.spec(), &seen) else { panic!() };
        record(sample, *changed)
    };
    step(&mut sample);
    assert_eq!(versions(&sample), [NEW, OLD]);
    // The control plane is done as soon as no member is outdated.
    sample.groups[0].outdated.clear();
    let said = step(&mut sample);
    assert_eq!(said, "the control plane is upgraded from v1.33.2 to v1.34.1");
    assert_eq!((versions(&sample), sample.groups[1].kubernetes), ([NEW, OLD], Some(OLD)));
    step(&mut sample);
    assert_eq!(versions(&sample), [NEW, NEW]);
}

#[test]
fn no_worker_is_created_while_the_control_plane_has_two_minor_versions() {
    let (mut sample, mut seen) = requested(1, 0);
    let added = Key::Server(sample.groups[1].add_machine());
    let creates = |sample: &Sample, seen: &ClusterObservation| {
        let actions = plan(&sample.spec(), seen);
        actions.contains(&crate::Action::Create(added.clone()))
    };
    let port = Key::Port(added.member().unwrap().clone());
    sample.perform(&crate::Action::Create(port), &mut seen);
    assert!(creates(&sample, &seen));
    let Some(RollStep::Change(changed)) = roll_step(&sample.spec(), &seen) else { panic!() };
    record(&mut sample, *changed);
    assert!(creates(&sample, &seen), "no new member has joined yet");
    sample.groups[0].outdated.remove(&0);
    assert!(!creates(&sample, &seen));
    sample.cluster.roll.as_mut().unwrap().kubernetes = KubernetesVersion { patch: 9, ..OLD };
    assert!(creates(&sample, &seen), "patch levels go together");
}

#[track_caller]
fn waits(sample: &Sample, seen: &ClusterObservation, want: &str) {
    assert_eq!(roll_step(&sample.spec(), seen), Some(RollStep::Wait(want.to_owned())));
}

#[test]
fn a_roll_waits_while_it_is_paused_or_the_control_plane_is_not_well() {
    let (mut sample, mut seen) = requested(1, 0);
    sample.cluster.roll.as_mut().unwrap().is_paused = true;
    waits(&sample, &seen, "the upgrade is paused");
    sample.cluster.roll.as_mut().unwrap().is_paused = false;
    let Some(RollStep::Change(changed)) = roll_step(&sample.spec(), &seen) else { panic!() };
    record(&mut sample, *changed);
    let last: MemberName = "default-master-2".parse().unwrap();
    let not_well = "default-master-2 is not a ready member of the control plane";
    seen.serving.remove(&last);
    waits(&sample, &seen, not_well);
    seen.serving.insert(last.clone());
    seen.drained.insert(last);
    waits(&sample, &seen, not_well);
    seen.drained.clear();
    let Some(RollStep::Change(changed)) = roll_step(&sample.spec(), &seen) else { panic!() };
    record(&mut sample, *changed);
    waits(&sample, &seen, "default-master-3 is not a ready member of the control plane");
    sample.groups[0].outdated.clear();
    sample.groups[0].replacing.clear();
    sample.groups[0].machines = [0, 1, 2].into();
    seen.kube_proxy = Some("v1.33.2".to_owned());
    waits(&sample, &seen, "kube-proxy is being upgraded from v1.33.2");
    assert_eq!(roll_step(&sample.spec(), &ClusterObservation::default()), None);
}

#[test]
fn a_member_leaves_only_after_its_replacement_has_left_a_drained_host() {
    let (mut sample, mut seen) = requested(1, 0);
    let replacement: MemberName = "default-master-3".parse().unwrap();
    seen.drained = [replacement].into();
    let done = "default-master-3 is ready, and default-master-0 is removed";
    for _ in 0..50 {
        serve(&mut sample, &mut seen);
        match roll_step(&sample.spec(), &seen) {
            Some(RollStep::Change(changed)) => assert_ne!(record(&mut sample, *changed), done),
            Some(RollStep::Wait(_)) => {
                let actions = plan(&sample.spec(), &seen);
                actions.iter().for_each(|action| sample.perform(action, &mut seen));
            }
            None => panic!("the roll is over"),
        }
    }
    let why = "default-master-3 is not a ready member of the control plane";
    waits(&sample, &seen, why);
    seen.drained.clear();
    let Some(RollStep::Change(changed)) = roll_step(&sample.spec(), &seen) else { panic!() };
    assert_eq!(record(&mut sample, *changed), done);
}

#[test]
fn a_roll_waits_while_a_control_plane_member_renews_or_any_member_reboots() {
    let (mut sample, seen) = requested(1, 0);
    let goes_on =
        |sample: &Sample| matches!(roll_step(&sample.spec(), &seen), Some(RollStep::Change(_)));
    let first = LeafCertificate::new("apiserver".to_owned(), at(0), at(0), at(100));
    let held = MemberCertificates { first, renewing_since: Some(at(40)), renewed_at: None };
    sample.cluster.certificates.insert("default-worker-0".parse().unwrap(), held.clone());
    assert!(goes_on(&sample), "only the kubelet of a worker restarts");
    sample.cluster.certificates.insert("default-master-1".parse().unwrap(), held);
    waits(&sample, &seen, "member default-master-1 renews its certificates");
    sample.cluster.certificates.clear();
    let machine: MemberName = "default-worker-0".parse().unwrap();
    let phase = RebootPhase::Draining;
    sample.cluster.reboot = Some(MemberReboot { machine, phase, since: at(5) });
    waits(&sample, &seen, "member default-worker-0 reboots");
}

#[test]
fn a_roll_waits_while_the_control_plane_is_restored() {
    let (mut sample, seen) = requested(1, 0);
    sample.cluster.restore = Some(crate::sample::restore());
    waits(&sample, &seen, "the control plane is being restored");
}

/// Performs an upgrade during which a group is made. Returns the steps, and the version of the group at the end.
fn performed_with_late_group(
    change: impl Fn(&mut Sample, &mut NodeGroup),
) -> (Vec<String>, Option<KubernetesVersion>) {
    let (mut sample, mut seen) = requested(1, 0);
    let id = crate::NodeGroupUuid::from_untyped_uuid(Uuid::from_u128(7));
    let late = NodeGroup { id, name: "late".parse().unwrap(), ..sample.groups[1].clone() };
    let mut late = NodeGroup { created_at: at(6), ..late };
    change(&mut sample, &mut late);
    sample.groups.push(late);
    sample.settle(&mut seen);
    let (steps, _) = performed(&mut sample, &mut seen);
    (steps, sample.groups[2].kubernetes)
}

#[test]
fn a_group_that_was_made_during_the_roll_is_replaced_unless_it_keeps_its_version() {
    let replaced = "replacing the 2 members of late".to_owned();
    let (steps, version) = performed_with_late_group(|_, _| {});
    assert!(steps.contains(&replaced), "{steps:?}");
    assert_eq!(version, None);
    let own = KubernetesVersion { minor: 32, patch: 0 };
    let (steps, version) = performed_with_late_group(|_, late| late.kubernetes = Some(own));
    assert!(!steps.contains(&replaced), "{steps:?}");
    assert_eq!(version, Some(own));
    let same = |sample: &mut Sample, _: &mut NodeGroup| sample.cluster.kubernetes = NEW;
    assert!(!performed_with_late_group(same).0.contains(&replaced), "its members are new");
}

#[test]
fn a_lost_member_is_repaired_although_a_replacement_does_not_join() {
    use crate::{RepairLimits, members_to_replace};

    let (mut sample, mut seen) = requested(1, 0);
    for _ in 0..2 {
        let Some(RollStep::Change(changed)) = roll_step(&sample.spec(), &seen) else { panic!() };
        record(&mut sample, *changed);
    }
    assert_eq!(sample.groups[0].replacing.len(), 1);
    let lost: MemberName = "default-master-1".parse().unwrap();
    seen.objects.remove(&Key::Server(lost.clone()));
    let replaced = members_to_replace(&sample.spec(), &seen, &RepairLimits::DEFAULT, at(9));
    assert_eq!(replaced, [lost]);
}
