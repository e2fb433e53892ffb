use newtype_uuid::GenericUuid;
use uuid::Uuid;

use super::*;
use crate::sample::{Sample, at, labels, restore};
use crate::{
    CaRevision, DesiredState, FlavorSize, LeasePower, NetworkDriver, Owner, Resource, TemplateUuid,
};

const OLD: KubernetesVersion = KubernetesVersion { minor: 33, patch: 2 };

const RESTORING: &str = "the control plane of cluster blue is being restored; try again afterwards";

/// A complete cluster of version v1.33.2.
fn sample() -> Sample {
    let mut sample = Sample::highly_available();
    let seen = sample.complete();
    sample.cluster.kubernetes = OLD;
    sample.cluster.nodes = seen.machines.into_keys().collect();
    sample
}

/// Returns the template of the sample with other parameters.
fn template(id: TemplateUuid, change: impl Fn(&mut ClusterParameters)) -> Template {
    let mut blueprint = Sample::highly_available().cluster.blueprint;
    change(&mut blueprint);
    Template::new(id, Owner::new("p", "u"), "t".parse().unwrap(), blueprint, at(0))
}

fn with_labels(blueprint: &mut ClusterParameters, pairs: &[(&str, &str)]) {
    blueprint.labels = blueprint.labels.merged(&labels(pairs)).unwrap();
}

fn asked(
    sample: &Sample,
    scope: UpgradeScope,
    change: impl Fn(&mut ClusterParameters),
) -> Result<RollChange, Refusal> {
    let former = template(sample.cluster.template, |_| {});
    let template = template(TemplateUuid::from_untyped_uuid(Uuid::from_u128(9)), change);
    let request = UpgradeRequest {
        template: &template,
        former: &former,
        scope,
        at_once: 2,
        max_unavailable: 0,
    };
    request.on(&sample.cluster, &sample.groups, at(50))
}

fn tagged(tag: &'static str) -> impl Fn(&mut ClusterParameters) {
    move |blueprint| with_labels(blueprint, &[("kube_tag", tag)])
}

#[track_caller]
fn refuses(asked: Result<RollChange, Refusal>, want: &str) {
    assert_eq!(asked.unwrap_err().to_string(), want);
}

/// Records a change as the API does.
fn record(sample: &mut Sample, change: RollChange) {
    sample.cluster = change.cluster;
    for group in change.groups {
        let place = sample.groups.iter_mut().find(|it| it.id == group.id).unwrap();
        *place = group;
    }
}

/// Begins with the control plane, and adds the first replacement.
fn begin(sample: &mut Sample) -> MemberName {
    let masters = &mut sample.groups[0];
    let parameters = sample.cluster.roll.as_mut().unwrap().waiting.remove(&masters.id).unwrap();
    *masters = masters.clone().with_parameters(parameters);
    masters.outdated = masters.machines.clone();
    let number = masters.surge(0);
    MemberName { group: masters.name.clone(), number }
}

#[test]
fn an_upgrade_takes_version_image_and_labels_of_the_template() {
    let sample = sample();
    let options = ("kubeapi_options", "--v=3");
    let upgraded = asked(&sample, UpgradeScope::All, |blueprint| {
        with_labels(blueprint, &[("kube_tag", "v1.34.1"), options]);
        blueprint.image = "fcos-2".to_owned();
    });
    let RollChange { cluster, groups } = upgraded.unwrap();
    assert_eq!((groups.len(), cluster.kubernetes), (0, OLD), "nothing has happened yet");
    assert_eq!(cluster.blueprint.image, "fcos-2");
    assert_eq!(cluster.blueprint.labels.raw()["kube_tag"], "v1.34.1");
    assert_eq!((cluster.template.into_untyped_uuid().as_u128(), cluster.asked_at), (9, at(50)));
    let spec = ClusterSpec { cluster: &cluster, groups: &sample.groups };
    let planned = planned_rolls(&spec).into_iter().map(|it| {
        let PlannedRoll { group, members, at_once, from, to, changes } = it;
        format!("{group} {members} by {at_once} {from} {to} {}", changes.join(", "))
    });
    let labels =
        "image_id: fcos to fcos-2, labels/kubeapi_options, labels/master_lb_floating_ip_enabled";
    assert_eq!(
        Vec::from_iter(planned),
        [
            format!("default-master 3 by 1 v1.33.2 v1.34.1 {labels}"),
            format!("default-worker 2 by 2 v1.33.2 v1.34.1 {labels}"),
        ]
    );
}

#[test]
fn labels_that_the_cluster_set_itself_stay() {
    let mut sample = sample();
    let own = labels(&[("kubelet_options", "--v=1"), ("kube_tag", "v1.33.2"), ("lease", "30d")]);
    sample.cluster.labels_compared = LabelsCompared::new(&sample.cluster.blueprint.labels, &own);
    sample.cluster.blueprint.labels = own;
    sample.groups[1].has_own_image = true;
    let upgraded = asked(&sample, UpgradeScope::All, |blueprint| {
        with_labels(blueprint, &[("kube_tag", "v1.34.1"), ("kubelet_options", "--v=9")]);
        blueprint.image = "fcos-2".to_owned();
    });
    let cluster = upgraded.unwrap().cluster;
    let raw = cluster.blueprint.labels.raw();
    assert_eq!(raw["kubelet_options"], "--v=1");
    assert_eq!((raw["kube_tag"].as_str(), raw["lease"].as_str()), ("v1.34.1", "30d"));
    assert!(!raw.contains_key("master_lb_floating_ip_enabled"), "the cluster left it out");
    let waiting = cluster.roll.unwrap().waiting;
    let images = sample.groups.iter().map(|group| waiting[&group.id].image.as_str());
    assert_eq!(Vec::from_iter(images), ["fcos-2", "fcos"]);
}

#[test]
fn a_template_without_any_difference_rolls_nothing() {
    let mut sample = sample();
    let labels = sample.cluster.blueprint.labels.clone();
    sample.groups.iter_mut().for_each(|group| group.labels = labels.clone());
    let upgraded = asked(&sample, UpgradeScope::All, |_| {}).unwrap();
    assert_eq!((upgraded.cluster.roll, upgraded.groups), (None, vec![]));
    assert_eq!(upgraded.cluster.template.into_untyped_uuid().as_u128(), 9);
}

#[test]
fn workers_follow_the_control_plane() {
    let mut sample = sample();
    let workers = UpgradeScope::Group(sample.groups[1].id);
    refuses(
        asked(&sample, workers, tagged("v1.34.1")),
        "nodegroup: workers cannot be upgraded before the control plane: leave out nodegroup, or name the control plane \
         first",
    );
    let masters = UpgradeScope::Group(sample.groups[0].id);
    let upgraded = asked(&sample, masters, tagged("v1.34.1")).unwrap();
    let waiting = &upgraded.cluster.roll.as_ref().unwrap().waiting;
    assert_eq!(Vec::from_iter(waiting.keys()), [&sample.groups[0].id]);
    record(&mut sample, upgraded);
    refuses(
        asked(&sample, workers, tagged("v1.34.1")),
        "the control plane of cluster blue is being upgraded; try again afterwards",
    );
    sample.cluster.roll = None;
    sample.cluster.kubernetes = KubernetesVersion::DEFAULT;
    sample.groups[1].kubernetes = Some(OLD);
    let upgraded = asked(&sample, workers, tagged("v1.34.1")).unwrap();
    let roll = upgraded.cluster.roll.unwrap();
    assert_eq!((roll.waiting.len(), roll.origin, roll.at_once), (1, None, 2));
}

#[test]
fn versions_that_kubernetes_does_not_permit_are_refused() {
    let mut sample = sample();
    let all = UpgradeScope::All;
    let skips = "labels/kube_tag: v1.34.1 skips a minor version after v1.32.0, the version of the cluster: upgrade to v1.33 first";
    sample.cluster.kubernetes = KubernetesVersion { minor: 32, patch: 0 };
    refuses(asked(&sample, all, tagged("v1.34.1")), skips);
    sample.cluster.kubernetes = OLD;
    let back = "labels/kube_tag: v1.33.1 is older than v1.33.2, the version of the cluster; Kubernetes cannot be downgraded";
    refuses(asked(&sample, all, tagged("v1.33.1")), back);
    sample.groups[1].kubernetes = Some(KubernetesVersion { minor: 30, patch: 0 });
    let old = "labels/kube_tag: v1.34.1 is too new for node group default-worker with v1.30.0; upgrade the node group first";
    refuses(asked(&sample, all, tagged("v1.34.1")), old);
}

#[test]
fn fields_that_an_existing_cluster_cannot_change_are_refused_by_name() {
    let sample = sample();
    let why = "an upgrade cannot change it; take a template that has the cluster's value";
    let check = |field: &str, change: &dyn Fn(&mut ClusterParameters)| {
        refuses(asked(&sample, UpgradeScope::All, change), &format!("{field}: {why}"));
    };
    check("network_driver", &|it| it.network_driver = NetworkDriver::Calico);
    check("docker_volume_size", &|it| it.docker_volume_size = Some(9));
    check("fixed_network", &|it| it.fixed_network = Some("net".to_owned()));
    check("labels/flannel_network_cidr", &|it| {
        with_labels(it, &[("flannel_network_cidr", "10.99.0.0/16")]);
    });
    check("labels/etcd_volume_size", &|it| with_labels(it, &[("etcd_volume_size", "9")]));
}

#[test]
fn a_flavor_is_changed_unless_the_cluster_or_the_group_chose_its_own() {
    let larger = |it: &mut ClusterParameters| {
        it.flavor = Some("m1.huge".to_owned());
        it.master_flavor = None;
    };
    let flavors = |sample: &Sample| {
        let cluster = asked(sample, UpgradeScope::All, larger).unwrap().cluster;
        let waiting = cluster.roll.unwrap().waiting;
        [0, 1].map(|group: usize| waiting[&sample.groups[group].id].flavor.clone().unwrap())
    };
    let mut own = sample();
    assert_eq!(flavors(&own), ["m1.huge", "m1.huge"], "the control plane uses flavor_id as well");
    own.groups[1].has_own_flavor = true;
    assert_eq!(flavors(&own), ["m1.huge", "m1.large"]);
    own.cluster.blueprint.master_flavor = Some("m1.small".to_owned());
    own.groups[0].flavor = Some("m1.small".to_owned());
    let upgraded = asked(&own, UpgradeScope::All, larger).unwrap().cluster;
    assert_eq!(upgraded.blueprint.master_flavor.as_deref(), Some("m1.small"));
}

#[test]
fn larger_flavors_use_more_of_the_limits() {
    let size = |vcpus| FlavorSize { vcpus, ram_mib: 1024, disk_gib: 10, gpus: 0 };
    let mut sample = sample();
    sample.groups.iter_mut().for_each(|group| group.size = Some(size(2)));
    let larger = |it: &mut ClusterParameters| it.flavor = Some("m1.huge".to_owned());
    let mut upgraded = asked(&sample, UpgradeScope::All, larger).unwrap().cluster;
    let growth = |cluster: &Cluster| {
        let (more, is_measured) = roll_growth(&ClusterSpec { cluster, groups: &sample.groups });
        (more[Resource::Vcpus], more[Resource::RamMib], is_measured)
    };
    assert!(!growth(&upgraded).2);
    let waiting = &mut upgraded.roll.as_mut().unwrap().waiting;
    waiting.get_mut(&sample.groups[1].id).unwrap().size = Some(size(8));
    assert_eq!(growth(&upgraded), (12, 0, true), "two workers");
    assert_eq!(growth(&sample.cluster), (0, 0, true));
}

#[test]
fn a_new_image_is_shown_as_the_template_names_it() {
    let upgraded = asked(&sample(), UpgradeScope::All, |blueprint| {
        blueprint.image = "9b1d".to_owned();
        blueprint.note_name("newer", "9b1d");
    });
    let blueprint = upgraded.unwrap().cluster.blueprint;
    assert_eq!(blueprint.shown(&blueprint.image), "newer");
}

#[test]
fn a_cluster_that_is_busy_or_has_no_address_of_its_own_is_refused() {
    let ask = |sample: &Sample| asked(sample, UpgradeScope::All, tagged("v1.34.1"));
    let with = |change: &dyn Fn(&mut Cluster)| {
        let mut sample = sample();
        change(&mut sample.cluster);
        ask(&sample).unwrap_err().to_string()
    };
    let said = with(&|it| it.completed_at = None);
    assert_eq!(said, "cluster blue was never complete; an upgrade needs a working cluster");
    let said = with(&|it| it.rest = Some(LeasePower::Off));
    assert!(said.contains("are off or starting"), "{said}");
    let said = with(&|it| it.authorities = CaRevision { revision: 1, settled: 0 });
    assert!(said.contains("CA rotation"), "{said}");
    let said = with(&|it| it.restore = Some(restore()));
    assert_eq!(said, RESTORING);
    let said = with(&|it| it.desire = DesiredState::Gone);
    assert_eq!(said, "cluster blue is being deleted");
    let mut lone = sample();
    lone.cluster.blueprint.master_lb_enabled = false;
    lone.groups[0].machines = [0].into();
    let said = ask(&lone).unwrap_err().to_string();
    assert!(said.starts_with("master_lb_enabled: the API has the address of"), "{said}");
}

#[test]
fn an_upgrade_is_rolled_back_until_a_new_member_may_have_joined() {
    let mut sample = sample();
    let before = sample.cluster.clone();
    let masters = sample.groups[0].clone();
    let none = BTreeSet::new();
    let back = |sample: &Sample, joining: &BTreeSet<MemberName>| {
        roll_back(&sample.cluster, &sample.groups, joining, at(60))
    };
    refuses(back(&sample, &none), "no upgrade of cluster blue is in progress");
    let upgraded = asked(&sample, UpgradeScope::All, tagged("v1.34.1")).unwrap();
    record(&mut sample, upgraded);
    let new = begin(&mut sample);
    refuses(
        back(&sample, &[new.clone()].into()),
        "default-master-3 may be joining the control plane now; the upgrade can be rolled back if it fails to",
    );
    let RollChange { cluster, groups } = back(&sample, &none).unwrap();
    assert_eq!(Cluster { asked_at: before.asked_at, ..cluster }, before);
    sample.cluster.restore = Some(restore());
    refuses(back(&sample, &none), RESTORING);
    sample.cluster.restore = None;
    let next_machine = groups[0].next_machine;
    assert_eq!(NodeGroup { next_machine: 3, ..groups[0].clone() }, masters);
    assert_eq!(next_machine, 4, "no number is used twice");
    sample.cluster.nodes.insert(new);
    refuses(
        back(&sample, &none),
        "default-master-3 has joined the control plane, so the upgrade cannot be rolled back",
    );
}

#[test]
fn workers_that_were_being_replaced_before_go_on_after_a_rollback() {
    let mut sample = sample();
    sample.cluster.roll = Some(sample.roll());
    sample.groups[1].outdated = [0].into();
    let upgraded = asked(&sample, UpgradeScope::All, tagged("v1.33.9")).unwrap();
    record(&mut sample, upgraded);
    let back = roll_back(&sample.cluster, &sample.groups, &BTreeSet::new(), at(60)).unwrap();
    let roll = back.cluster.roll.unwrap();
    assert_eq!((roll.kubernetes, roll.waiting.len(), roll.origin), (OLD, 0, None));
    assert_eq!(back.cluster.blueprint, Sample::highly_available().cluster.blueprint);
}

#[test]
fn a_request_during_a_roll_gives_up_replacements_that_have_not_joined() {
    let mut sample = sample();
    let upgraded = asked(&sample, UpgradeScope::All, tagged("v1.34.0")).unwrap();
    record(&mut sample, upgraded);
    let new = begin(&mut sample);
    sample.cluster = pause_roll(&sample.cluster).unwrap();
    let older = "labels/kube_tag: v1.33.9 is older than v1.34.0, to which the cluster is being upgraded; roll the upgrade back \
                 instead";
    refuses(asked(&sample, UpgradeScope::All, tagged("v1.33.9")), older);
    let again = asked(&sample, UpgradeScope::All, tagged("v1.34.1")).unwrap();
    assert!(!again.groups[0].machines.contains(&new.number));
    assert_eq!(again.groups[0].node_count(), 3);
    let roll = again.cluster.roll.clone().unwrap();
    assert_eq!((roll.waiting.len(), roll.is_paused, roll.began_at), (2, false, at(50)));
    assert_eq!(roll.origin.unwrap().template, Sample::highly_available().cluster.template);
    let same = asked(&sample, UpgradeScope::All, tagged("v1.34.0")).unwrap();
    let waiting = same.cluster.roll.unwrap().waiting;
    assert!(!waiting.contains_key(&sample.groups[0].id), "the control plane goes on");
    assert_eq!(same.groups, [], "a repeated request gives nothing up");
}

#[test]
fn a_roll_is_paused_and_resumed() {
    let mut sample = sample();
    let none = "no upgrade of cluster blue is in progress";
    assert_eq!(pause_roll(&sample.cluster).unwrap_err().to_string(), none);
    let upgraded = asked(&sample, UpgradeScope::All, tagged("v1.34.1")).unwrap();
    record(&mut sample, upgraded);
    let paused = pause_roll(&sample.cluster).unwrap();
    assert!(paused.roll.as_ref().unwrap().is_paused);
    assert_eq!(resume_roll(&paused).unwrap(), sample.cluster);
}
