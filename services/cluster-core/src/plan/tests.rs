use expect_test::{Expect, expect};

use super::*;
use crate::sample::{Sample, at, labels};
use crate::{ConditionStatus, conditions};

fn print(turns: &[Vec<String>]) -> String {
    let turns =
        turns.iter().zip(1..).map(|(actions, turn)| format!("{turn}: {}", actions.join("; ")));
    turns.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(sample: &Sample, seen: &mut ClusterObservation, want: Expect) {
    want.assert_eq(&print(&sample.settle(seen)));
}

#[test]
fn a_cluster_on_a_given_network_takes_few_turns() {
    check(
        &Sample::smallest(),
        &mut ClusterObservation::default(),
        expect![[r#"
            1: create security-group/node; create security-group/control-plane; create server-group/default-master; create credential/1
            2: set the rules of security-group/node; set the rules of security-group/control-plane; create port/default-master-0
            3: create server/default-master-0"#]],
    );
}

#[test]
fn a_cluster_is_created_with_as_much_in_parallel_as_possible() {
    check(
        &Sample::highly_available(),
        &mut ClusterObservation::default(),
        expect![[r#"
            1: create network; create router; create security-group/node; create security-group/control-plane; create server-group/default-master; create server-group/default-worker; create credential/1
            2: create subnet; set the rules of security-group/node; set the rules of security-group/control-plane
            3: create router-interface; create vip-port/api; create port/default-master-0; create port/default-master-1; create port/default-master-2; create port/default-worker-0; create port/default-worker-1
            4: create load-balancer/api; create balancer-address/api; create server/default-master-0; create server/default-master-1; create server/default-master-2; create server/default-worker-0; create server/default-worker-1
            5: set the addresses of load-balancer/api to 10.0.0.10, 10.0.0.11, 10.0.0.12"#]],
    );
}

#[test]
fn a_cluster_is_deleted_in_reverse_order_of_its_dependencies() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    sample.cluster.desire = DesiredState::Gone;
    check(
        &sample,
        &mut seen,
        expect![[r#"
            1: delete load-balancer/api; delete balancer-address/api; delete server/default-master-0; delete server/default-master-1; delete server/default-master-2; delete server/default-worker-0; delete server/default-worker-1
            2: delete router-interface; delete server-group/default-master; delete server-group/default-worker; delete vip-port/api; delete port/default-master-0; delete port/default-master-1; delete port/default-master-2; delete port/default-worker-0; delete port/default-worker-1; delete credential/1
            3: delete subnet; delete router; delete security-group/node; delete security-group/control-plane
            4: delete network"#]],
    );
    assert!(seen.objects.is_empty());
}

#[test]
fn a_member_is_drained_leaves_etcd_and_is_deleted_in_this_order() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    sample.groups[0].machines.remove(&2);
    sample.groups[1].machines.remove(&0);
    check(
        &sample,
        &mut seen,
        expect![[r#"
            1: set the addresses of load-balancer/api to 10.0.0.10, 10.0.0.11; drain default-master-2; drain default-worker-0
            2: remove default-master-2 from etcd; delete server/default-worker-0
            3: delete port/default-worker-0; delete server/default-master-2; delete the Kubernetes node default-worker-0
            4: delete port/default-master-2; delete the Kubernetes node default-master-2"#]],
    );
}

#[test]
fn a_replaced_machine_takes_its_place_behind_the_load_balancer() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    assert!(sample.groups[0].replace_machine(1));
    check(
        &sample,
        &mut seen,
        expect![[r#"
            1: set the addresses of load-balancer/api to 10.0.0.10, 10.0.0.12; create port/default-master-3; drain default-master-1
            2: set the addresses of load-balancer/api to 10.0.0.10, 10.0.0.12, 10.0.0.22; create server/default-master-3; remove default-master-1 from etcd
            3: delete server/default-master-1
            4: delete port/default-master-1; delete the Kubernetes node default-master-1"#]],
    );
}

#[test]
fn an_object_that_the_cloud_failed_to_make_is_created_again() {
    let sample = Sample::highly_available();
    let mut seen = ClusterObservation::default();
    sample.settle(&mut seen);
    let key: Key = "load-balancer/api".parse().unwrap();
    seen.objects.get_mut(&key).unwrap().state = CloudObjectState::Failed("no amphora".to_owned());
    check(
        &sample,
        &mut seen,
        expect![[r#"
            1: delete load-balancer/api
            2: create load-balancer/api
            3: set the addresses of load-balancer/api to 10.0.0.10, 10.0.0.11, 10.0.0.12"#]],
    );
}

#[test]
fn a_node_whose_server_failed_is_left_to_repair() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    let key: Key = "server/default-master-0".parse().unwrap();
    seen.objects.get_mut(&key).unwrap().state = CloudObjectState::Failed("host is down".to_owned());
    check(&sample, &mut seen, expect![""]);
}

#[test]
fn a_node_whose_server_is_gone_is_left_to_repair() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    let key: Key = "server/default-worker-0".parse().unwrap();
    seen.objects.remove(&key);
    check(&sample, &mut seen, expect![""]);
}

#[test]
fn an_object_is_not_created_before_its_dependencies_have_addresses() {
    let sample = Sample::highly_available();
    let mut seen = ClusterObservation::default();
    sample.settle(&mut seen);
    seen.objects.retain(|key, _| !matches!(key, Key::Server(_)));
    let vip: Key = "vip-port/api".parse().unwrap();
    seen.objects.get_mut(&vip).unwrap().address = None;
    assert_eq!(plan(&sample.spec(), &seen), []);
}

#[test]
fn rules_are_set_once_the_groups_that_they_name_exist() {
    let sample = Sample::highly_available();
    let mut seen = ClusterObservation::default();
    sample.settle(&mut seen);
    let group = |role| Key::SecurityGroup(role);
    let (node, control_plane) = (SecurityGroupRole::Node, SecurityGroupRole::ControlPlane);
    let sets = |seen: &ClusterObservation| {
        plan(&sample.spec(), seen).contains(&Action::SetRules(group(node)))
    };
    assert!(!sets(&seen), "they are set");
    seen.objects.get_mut(&group(node)).unwrap().facts = CloudObjectDetails::None;
    assert!(sets(&seen));
    // The rules of the members name the group of the members only.
    seen.objects.remove(&group(control_plane));
    assert!(sets(&seen));
}

#[test]
fn objects_that_kubernetes_created_stay_as_long_as_the_cluster() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    let found = seen.objects[&Key::Network].clone();
    let inside = [Key::ServiceBalancer("b".to_owned()), Key::Volume("v".to_owned())];
    seen.objects.extend(inside.map(|key| (key, found.clone())));
    assert_eq!(plan(&sample.spec(), &seen), []);
    sample.cluster.desire = DesiredState::Gone;
    sample.settle(&mut seen);
    assert_eq!(seen.objects, std::collections::BTreeMap::new());
}

#[test]
fn an_old_credential_stays_until_the_add_ons_use_the_new_one() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    sample.cluster.credential = 2;
    let (old, new) = (Key::Credential(1), Key::Credential(2));
    assert_eq!(plan(&sample.spec(), &seen), [Action::Create(new.clone())]);
    sample.perform(&Action::Create(new), &mut seen);
    assert_eq!(plan(&sample.spec(), &seen), []);
    let add_ons = seen.add_ons.replace(crate::AddOnsObservation::default()).unwrap();
    assert_eq!(plan(&sample.spec(), &seen), [], "it is unknown which one they use");
    seen.add_ons = Some(crate::AddOnsObservation { credential: Some(2), ..add_ons });
    assert_eq!(plan(&sample.spec(), &seen), [Action::Delete(old)]);
}

#[test]
fn a_member_that_kubernetes_no_longer_lists_is_not_drained() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    sample.groups[1].machines.remove(&0);
    let worker: MemberName = "default-worker-0".parse().unwrap();
    let next = |seen: &ClusterObservation| plan(&sample.spec(), seen);
    let delete = Action::Delete(Key::Server(worker.clone()));
    let rows = [
        (Bootstrap::Done, NodeHealth::Ready, vec![Action::Drain(worker.clone())]),
        (Bootstrap::Done, NodeHealth::Unknown, vec![]),
        (Bootstrap::Done, NodeHealth::Absent, vec![delete.clone()]),
        (Bootstrap::Silent, NodeHealth::Absent, vec![delete.clone()]),
        (Bootstrap::Silent, NodeHealth::Unknown, vec![delete]),
    ];
    for (bootstrap, node, want) in rows {
        let said = seen.machines.get_mut(&worker).unwrap();
        (said.bootstrap, said.node) = (bootstrap.clone(), node.clone());
        assert_eq!(next(&seen), want, "{bootstrap:?} {node:?}");
    }
}

#[test]
fn dns_names_lead_to_floating_ips_where_they_exist() {
    let mut sample = Sample::highly_available();
    sample.cluster.blueprint.labels = labels(&[
        ("master_lb_floating_ip_enabled", "true"),
        ("dns_zone", "k8s.example"),
        ("dns_node_records_enabled", "true"),
    ]);
    let mut seen = ClusterObservation::default();
    sample.settle(&mut seen);
    let of = |key: &str| &seen.objects[&key.parse::<Key>().unwrap()];
    let api = of("balancer-address/api").address;
    assert_eq!(of("record/api").facts, CloudObjectDetails::Addresses(api.into_iter().collect()));
    let node = of("port/default-worker-1").address;
    assert_eq!(
        of("machine-record/default-worker-1").facts,
        CloudObjectDetails::Addresses(node.into_iter().collect())
    );
}

/// A complete cluster that loses any object is complete again some turns later.
#[test]
fn any_object_that_is_lost_is_created_again() {
    let mut sample = Sample::highly_available();
    let complete = sample.complete();
    for lost in complete.objects.keys() {
        // As in a real cloud, the objects that depend on a lost object are lost with it.
        let mut seen = complete.clone();
        let mut gone = vec![lost.clone()];
        while let Some(key) = gone.pop() {
            seen.objects.remove(&key);
            gone.extend(seen.objects.keys().filter(|other| other.depends_on(&key)).cloned());
            if let Key::Server(machine) = &key {
                seen.machines.remove(machine);
            }
        }
        sample.settle(&mut seen);
        assert_eq!(
            seen.objects.keys().collect::<Vec<_>>(),
            complete.objects.keys().collect::<Vec<_>>()
        );
        let all = conditions(&sample.spec(), &seen, at(9));
        assert!(all.iter().all(|it| it.status == ConditionStatus::True), "{lost}: {all:?}");
    }
}

#[test]
fn keys_are_written_and_read() {
    let mut sample = Sample::highly_available();
    sample.cluster.blueprint.floating_ip_enabled = true;
    sample.cluster.blueprint.labels = labels(&[
        ("dns_zone", "k8s.example"),
        ("dns_node_records_enabled", "true"),
        ("ingress_balancer_enabled", "true"),
    ]);
    let shape = desired_objects(&sample.spec());
    for key in shape.keys() {
        assert_eq!(key.to_string().parse::<Key>().as_ref(), Ok(key));
    }
    assert!(shape.len() > 30, "{}", shape.len());
    assert!("server/x".parse::<Key>().is_err() && "colour".parse::<Key>().is_err());
}

/// Performs one action at a time, the one that `choose` picks, until no action is left.
fn one_by_one(
    sample: &Sample,
    seen: &mut ClusterObservation,
    mut choose: impl FnMut(usize) -> usize,
) {
    seen.at = Some(at(1));
    for _ in 0..1000 {
        let actions = plan(&sample.spec(), seen);
        let Some(action) = actions.get(choose(actions.len().max(1))) else { return };
        sample.perform(action, seen);
    }
    panic!("it never ends");
}

proptest::proptest! {
    /// Neither a crash between two actions nor answers in another order change the resulting cluster, nor its complete deletion.
    #[test]
    fn any_order_leads_to_the_same(picks in proptest::collection::vec(proptest::prelude::any::<usize>(), 1..64)) {
        let mut sample = Sample::highly_available();
        sample.cluster.blueprint.labels = labels(&[("dns_zone", "k8s.example"), ("ingress_balancer_enabled", "true")]);
        let mut turn = 0;
        let mut choose = |many: usize| {
            turn += 1;
            picks[turn % picks.len()] % many
        };
        let mut seen = ClusterObservation::default();
        one_by_one(&sample, &mut seen, &mut choose);
        let wanted = desired_objects(&sample.spec());
        proptest::prop_assert!(seen.objects.keys().eq(wanted.keys()));

        sample.groups[1].replace_machine(0);
        one_by_one(&sample, &mut seen, &mut choose);
        let wanted = desired_objects(&sample.spec());
        proptest::prop_assert!(seen.objects.keys().eq(wanted.keys()));

        sample.cluster.desire = DesiredState::Gone;
        one_by_one(&sample, &mut seen, &mut choose);
        proptest::prop_assert!(seen.objects.is_empty());
    }
}

#[test]
fn the_duplicate_of_an_unanswered_request_is_deleted_and_nothing_waits_for_it() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    for key in ["network", "port/default-worker-0", "server/default-worker-0", "load-balancer/api"]
    {
        let key: Key = key.parse().unwrap();
        let twin = key.duplicate().unwrap();
        assert_eq!(twin.to_string().parse::<Key>().unwrap(), twin);
        assert_eq!((twin.kind(), twin.member(), twin.duplicate()), (key.kind(), None, None));
        let found = seen.objects[&key].clone();
        seen.objects.insert(twin, crate::CloudObject { id: "another".to_owned(), ..found });
    }
    check(
        &sample,
        &mut seen,
        expect![
            "1: delete twin/network; delete twin/load-balancer/api; delete twin/port/default-worker-0; delete twin/server/default-worker-0"
        ],
    );
    sample.cluster.desire = DesiredState::Gone;
    let twin = Key::Network.duplicate().unwrap();
    seen.objects.insert(twin.clone(), seen.objects[&Key::Network].clone());
    assert!(plan(&sample.spec(), &seen).contains(&Action::Delete(twin)));
    for wrong in ["twin/", "twin/record/api", "twin/twin/network", "twin/volume/v"] {
        assert!(wrong.parse::<Key>().is_err(), "{wrong}");
    }
}
