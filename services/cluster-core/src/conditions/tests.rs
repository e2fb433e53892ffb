use super::*;
use crate::sample::{Sample, at, labels};
use crate::{AddOnsObservation, CaRevision, LeafCertificate, MemberCertificates};

/// Describes the condition of this kind.
fn text(sample: &Sample, seen: &ClusterObservation, kind: ConditionKind) -> String {
    let all = conditions(&sample.spec(), seen, at(99));
    let it = all.into_iter().find(|it| it.kind == kind).unwrap();
    format!("{:?} {}: {}", it.status, it.reason, it.message)
}

/// The description of a condition that is true.
const GOOD: &str = "True AsRequested: ";

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    let all = conditions(&sample.spec(), &seen, at(0));
    let timed = all.into_iter().zip(1..).map(|(it, second)| Condition { since: at(second), ..it });
    sample.cluster.conditions = timed.collect();
    assert_eq!(conditions(&sample.spec(), &seen, at(99)), sample.cluster.conditions);
    seen.add_ons = None;
    let after = conditions(&sample.spec(), &seen, at(99));
    let changed = after.iter().filter(|it| it.since == at(99)).map(|it| it.kind);
    assert_eq!(Vec::from_iter(changed), [ConditionKind::AddOnsApplied]);
}

#[test]
fn each_object_belongs_to_one_condition() {
    use ConditionKind::{DnsReady, InfrastructureReady, LoadBalancerReady, NetworkReady};

    let mut sample = Sample::highly_available();
    sample.cluster.blueprint.floating_ip_enabled = true;
    sample.cluster.blueprint.labels = labels(&[("dns_zone", "k8s.example")]);
    let seen = sample.complete();
    let rows = [
        ("network", NetworkReady),
        ("router-interface", NetworkReady),
        ("security-group/node", NetworkReady),
        ("vip-port/api", LoadBalancerReady),
        ("load-balancer/api", LoadBalancerReady),
        ("balancer-address/api", LoadBalancerReady),
        ("port/default-worker-0", InfrastructureReady),
        ("machine-address/default-worker-0", InfrastructureReady),
        ("server/default-worker-0", InfrastructureReady),
        ("server-group/default-worker", InfrastructureReady),
        ("credential/1", InfrastructureReady),
        ("record/api", DnsReady),
    ];
    for (key, kind) in rows {
        let mut less = seen.clone();
        less.objects.remove(&key.parse::<Key>().unwrap());
        let all = conditions(&sample.spec(), &less, at(99));
        let bad = all.into_iter().filter(|it| it.status != ConditionStatus::True);
        let bad: Vec<_> = bad.map(|it| (it.kind, it.message)).collect();
        assert_eq!(bad, [(kind, format!("not created yet: {key}"))]);
    }
}

#[test]
fn an_object_that_is_left_over_counts_unless_kubernetes_created_it_and_the_cluster_stays() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    let found = seen.objects[&Key::Network].clone();
    let add = |seen: &mut ClusterObservation, key: &str| {
        seen.objects.insert(key.parse().unwrap(), found.clone());
    };
    add(&mut seen, "service-balancer/b");
    add(&mut seen, "volume/v");
    let (balancers, servers) =
        (ConditionKind::LoadBalancerReady, ConditionKind::InfrastructureReady);
    assert_eq!(text(&sample, &seen, balancers), GOOD);
    assert_eq!(text(&sample, &seen, servers), GOOD);
    add(&mut seen, "port/default-worker-9");
    let want = "False Deleting: not deleted yet: port/default-worker-9";
    assert_eq!(text(&sample, &seen, servers), want);

    sample.cluster.desire = DesiredState::Gone;
    seen.objects.retain(|key, _| key.is_made_inside());
    let want = "False Deleting: not deleted yet: service-balancer/b";
    assert_eq!(text(&sample, &seen, balancers), want);
    assert_eq!(text(&sample, &seen, servers), "False Deleting: not deleted yet: volume/v");
}

#[test]
fn the_control_plane_is_available_while_a_quorum_of_it_is_ready() {
    let mut sample = Sample::highly_available();
    sample.groups[0].machines = (0..5).collect();
    let mut seen = sample.complete();
    let mut without = |machine: &str| {
        let said = seen.machines.get_mut(&machine.parse::<MemberName>().unwrap()).unwrap();
        said.node = NodeHealth::NotReady { since: at(0) };
        text(&sample, &seen, ConditionKind::ControlPlaneAvailable)
    };
    for machine in ["default-worker-0", "default-worker-1", "default-master-0", "default-master-1"]
    {
        assert_eq!(without(machine), GOOD, "{machine}");
    }
    let want = "False NoQuorum: 2 of 5 control-plane members are ready, and a quorum needs 3";
    assert_eq!(without("default-master-2"), want);
}

#[test]
fn a_control_plane_with_a_single_endpoint_is_available_with_a_warning() {
    let mut sample = Sample::highly_available();
    sample.cluster.blueprint.master_lb_enabled = false;
    let seen = sample.complete();
    let said = text(&sample, &seen, ConditionKind::ControlPlaneAvailable);
    assert!(said.starts_with("True LoneEndpoint: members reach the API at"), "{said}");
    sample.cluster.desire = DesiredState::Gone;
    assert_eq!(text(&sample, &seen, ConditionKind::ControlPlaneAvailable), GOOD);
}

#[test]
fn add_ons_are_missed_in_a_cluster_that_stays() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    let missing = [("flannel".to_owned(), "it differs".to_owned())].into();
    let missing = Some(AddOnsObservation { missing, ..AddOnsObservation::default() });
    let differs = "False NotApplied: not applied yet: flannel (it differs)";
    let silent = "False ApiSilent: the cluster's API does not answer yet";
    let refused = "False ApiSilent: the cluster's API does not answer: refused";
    let rows = [
        (DesiredState::Exist, missing, None, differs),
        (DesiredState::Exist, None, None, silent),
        (DesiredState::Exist, None, Some("refused"), refused),
        (DesiredState::Gone, None, Some("refused"), GOOD),
    ];
    for (desire, add_ons, silence, want) in rows {
        sample.cluster.desire = desire;
        (seen.add_ons, seen.api_silence) = (add_ons, silence.map(str::to_owned));
        assert_eq!(text(&sample, &seen, ConditionKind::AddOnsApplied), want);
    }
}

#[test]
fn a_cluster_whose_api_is_private_says_from_where_it_is_reachable() {
    let mut sample = Sample::smallest();
    let mut seen = sample.complete();
    (seen.add_ons, seen.api_silence) = (None, Some("timed out".to_owned()));
    let said = "False ApiSilent: the cluster's API does not answer: timed out; the API has no floating IP, so it is reachable only from \
                the subnet subnet-1 and from networks with a route to it, and clusterd got no answer";
    assert_eq!(text(&sample, &seen, ConditionKind::AddOnsApplied), said);
    sample.cluster.conditions = conditions(&sample.spec(), &seen, at(10));
    let reason = crate::status_reason(&sample.cluster).unwrap();
    assert!(reason.contains("; give clusterd a route to it, or create a cluster"), "{reason}");
    // A condition that needs no API does not name the API as its reason.
    assert_eq!(text(&sample, &seen, ConditionKind::NetworkReady), GOOD);
    sample.cluster.restore = Some(crate::sample::restore());
    let restored = "False ApiSilent: the cluster's API does not answer: timed out";
    assert_eq!(text(&sample, &seen, ConditionKind::AddOnsApplied), restored);
    sample.cluster.restore = None;
    seen.api_silence = None;
    let silent = "False ApiSilent: the cluster's API does not answer yet";
    assert_eq!(text(&sample, &seen, ConditionKind::AddOnsApplied), silent);
}

#[test]
fn a_rotation_says_what_its_step_waits_for() {
    let mut sample = Sample::highly_available();
    let mut seen = sample.complete();
    sample.cluster.nodes = sample.groups.iter().flat_map(NodeGroup::refs).collect();
    seen.authorities.held = sample.cluster.nodes.iter().map(|it| (it.clone(), 1)).collect();
    let kind = ConditionKind::AuthoritiesSettled;
    assert_eq!(text(&sample, &seen, kind), GOOD);
    sample.cluster.authorities = CaRevision { revision: 1, settled: 0 };
    let step = "False TrustBoth: members learn to trust the new certificate authorities besides the old ones";
    let late: MemberName = "default-worker-1".parse().unwrap();
    seen.authorities.held.insert(late.clone(), 0);
    assert_eq!(text(&sample, &seen, kind), format!("{step} (waiting for {late})"));
    seen.authorities.held.insert(late, 1);
    let pods = "waiting for kube-system: its pods are being restarted";
    assert_eq!(text(&sample, &seen, kind), format!("{step} ({pods})"));
    seen.authorities.trouble = Some("no pods".to_owned());
    let pods = "waiting for kube-system: no pods";
    assert_eq!(text(&sample, &seen, kind), format!("{step} ({pods})"));
    seen.authorities.renewed = Some(1);
    assert_eq!(text(&sample, &seen, kind), format!("{step} (all members have done so)"));
    sample.cluster.desire = DesiredState::Gone;
    assert_eq!(text(&sample, &seen, kind), GOOD);
}

#[test]
fn certificates_that_nothing_renewed_are_a_warning_until_they_end() {
    let mut sample = Sample::highly_available();
    let seen = sample.complete();
    let late: MemberName = "default-master-1".parse().unwrap();
    sample.cluster.nodes = sample.groups.iter().flat_map(NodeGroup::refs).collect();
    let mut told = |issued: i64, ends: i64, renewing: Option<i64>| {
        let first = LeafCertificate {
            name: "etcd/peer".to_owned(),
            issued_at: at(issued),
            ends_at: at(ends),
        };
        let renewing_since = renewing.map(at);
        let held = MemberCertificates { first, renewing_since, renewed_at: None };
        sample.cluster.certificates.insert(late.clone(), held);
        text(&sample, &seen, ConditionKind::CertificatesValid)
    };
    assert_eq!(told(50, 149, None), GOOD);
    let want = format!("not renewed in time: etcd/peer of {late} (ends at {})", at(148));
    assert_eq!(told(50, 148, None), format!("True NotRenewed: {want}"));
    let want = format!("do not complete a renewal, and others wait: {late} (since {})", at(-801));
    assert_eq!(told(50, 148, Some(-801)), format!("True RenewalStuck: {want}"));
    let want = format!("have ended: etcd/peer of {late} (at {})", at(99));
    assert_eq!(told(50, 99, None), format!("False Ended: {want}"));
}
