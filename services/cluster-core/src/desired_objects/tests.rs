use expect_test::{Expect, expect};

use super::*;
use crate::sample::{Sample, labels};

#[track_caller]
fn check(sample: &Sample, want: Expect) {
    let shape = desired_objects(&sample.spec());
    let lines =
        shape.iter().map(|(key, object)| format!("{key} = {}: {:?}", object.name, object.thing));
    want.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_smallest_cluster_is_one_member_on_an_existing_network() {
    check(
        &Sample::smallest(),
        expect![[r#"
            security-group/node = blue-7c9e6679-security-group-node: SecurityGroup { rules: {IngressRule { protocol: Any, ports: None, from: Group(SecurityGroup(Node)) }, IngressRule { protocol: Tcp, ports: Some((30000, 32767)), from: Range(Cidr(0.0.0.0/0)) }, IngressRule { protocol: Udp, ports: Some((30000, 32767)), from: Range(Cidr(0.0.0.0/0)) }, IngressRule { protocol: Icmp, ports: None, from: Range(Cidr(0.0.0.0/0)) }} }
            security-group/control-plane = blue-7c9e6679-security-group-control-plane: SecurityGroup { rules: {IngressRule { protocol: Tcp, ports: Some((6443, 6443)), from: Range(Cidr(0.0.0.0/0)) }} }
            server-group/default-master = blue-7c9e6679-server-group-default-master: ServerGroup { policy: "soft-anti-affinity" }
            port/default-master-0 = blue-7c9e6679-default-master-0: Port { network: Given("net-1"), subnet: Some(Given("subnet-1")), groups: {SecurityGroup(Node), SecurityGroup(ControlPlane)}, allowed: {} }
            server/default-master-0 = blue-7c9e6679-default-master-0: Server { image: "fcos", flavor: Some("m1.large"), keypair: None, availability_zone: None, disks: [] }
            credential/1 = blue-7c9e6679-credential-1: Credential"#]],
    );
}

#[test]
fn with_routes_ports_allow_the_addresses_of_pods() {
    let mut sample = Sample::smallest();
    sample.cluster.blueprint.labels = labels(&[("pod_network", "routes")]);
    let shape = desired_objects(&sample.spec());
    let port = shape.values().find_map(|object| {
        let ResourceSpec::Port { allowed, .. } = &object.thing else { return None };
        Some(allowed.clone())
    });
    assert_eq!(port, Some([sample.cluster.blueprint.labels.settings().pod_cidr].into()));
}

#[test]
fn a_highly_available_cluster_has_a_load_balancer_with_an_address() {
    let mut sample = Sample::highly_available();
    sample.groups[1].machines.clear();
    sample.groups[0].machines = [0].into();
    check(
        &sample,
        expect![[r#"
            network = blue-7c9e6679-network: Network
            subnet = blue-7c9e6679-subnet: Subnet { cidr: Cidr(10.0.0.0/24), name_servers: [8.8.8.8] }
            router = blue-7c9e6679-router: Router { external_network: "public" }
            router-interface = blue-7c9e6679-router-interface: RouterInterface
            security-group/node = blue-7c9e6679-security-group-node: SecurityGroup { rules: {IngressRule { protocol: Any, ports: None, from: Group(SecurityGroup(Node)) }, IngressRule { protocol: Tcp, ports: Some((30000, 32767)), from: Range(Cidr(0.0.0.0/0)) }, IngressRule { protocol: Udp, ports: Some((30000, 32767)), from: Range(Cidr(0.0.0.0/0)) }, IngressRule { protocol: Icmp, ports: None, from: Range(Cidr(0.0.0.0/0)) }} }
            security-group/control-plane = blue-7c9e6679-security-group-control-plane: SecurityGroup { rules: {IngressRule { protocol: Tcp, ports: Some((6443, 6443)), from: Range(Cidr(0.0.0.0/0)) }} }
            server-group/default-master = blue-7c9e6679-server-group-default-master: ServerGroup { policy: "soft-anti-affinity" }
            server-group/default-worker = blue-7c9e6679-server-group-default-worker: ServerGroup { policy: "soft-anti-affinity" }
            vip-port/api = blue-7c9e6679-vip-port-api: Port { network: Own(Network), subnet: Some(Own(Subnet)), groups: {}, allowed: {} }
            load-balancer/api = blue-7c9e6679-load-balancer-api: LoadBalancer { provider: None, algorithm: "ROUND_ROBIN", listeners: [Listener { name: "api", port: 6443, idle_timeout_ms: 600000 }], allowed: [], members: {Port(MemberName { group: Name("default-master"), number: 0 })} }
            balancer-address/api = blue-7c9e6679-balancer-address-api: FloatingIp { external_network: "public", port: VipPort(Api) }
            port/default-master-0 = blue-7c9e6679-default-master-0: Port { network: Own(Network), subnet: Some(Own(Subnet)), groups: {SecurityGroup(Node), SecurityGroup(ControlPlane)}, allowed: {} }
            server/default-master-0 = blue-7c9e6679-default-master-0: Server { image: "fcos", flavor: Some("m1.large"), keypair: None, availability_zone: None, disks: [] }
            credential/1 = blue-7c9e6679-credential-1: Credential"#]],
    );
}

#[test]
fn every_name_is_unique_and_within_the_limits_of_the_cloud() {
    let mut sample = Sample::highly_available();
    sample.cluster.name = "A_very.long-Name_of_a_cluster.that_goes_on".parse().unwrap();
    sample.groups[1].name = "another_very_long_Name.of-a-group".parse().unwrap();
    sample.cluster.blueprint.labels = labels(&[("dns_zone", "k8s.example")]);
    let shape = desired_objects(&sample.spec());
    let mut names = std::collections::BTreeSet::new();
    for (key, object) in &shape {
        if let Key::Server(_) = key {
            let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(object.name.len() <= 63 && object.name.chars().all(legal), "{}", object.name);
            assert!(names.insert(&object.name), "{} twice", object.name);
        }
        assert!(object.name.len() <= 255);
        for need in &object.needs {
            assert!(shape.contains_key(need), "{key} needs {need}, which nobody makes");
        }
    }
    assert!(tag(sample.cluster.id).len() <= 60);
}

#[test]
fn an_object_needs_every_object_that_it_depends_on() {
    let sample = Sample::highly_available();
    let shape = desired_objects(&sample.spec());
    for (key, object) in &shape {
        let rests = shape.keys().filter(|other| key.depends_on(other));
        for other in rests.filter(|other| !matches!(other, Key::SecurityGroup(_))) {
            assert!(object.needs.contains(other), "{key} rests on {other} and does not need it");
        }
    }
}

#[test]
fn a_server_waits_for_all_addresses_that_its_user_data_names() {
    let mut sample = Sample::highly_available();
    let needs = |sample: &Sample| {
        let server: Key = "server/default-worker-0".parse().unwrap();
        let needs: Vec<String> = desired_objects(&sample.spec())[&server]
            .needs
            .iter()
            .map(ToString::to_string)
            .collect();
        needs.join(" ")
    };
    let claim = expect![
        "router server-group/default-worker vip-port/api port/default-master-0 port/default-master-1 port/default-master-2 port/default-worker-0"
    ];
    claim.assert_eq(&needs(&sample));
    let inline = [("master_lb_floating_ip_enabled", "true"), ("user_data_delivery", "inline")];
    sample.cluster.blueprint.labels = labels(&inline);
    sample.groups[1].labels = labels(&inline);
    let inline = expect![
        "router server-group/default-worker vip-port/api balancer-address/api port/default-master-0 port/default-master-1 port/default-master-2 port/default-worker-0"
    ];
    inline.assert_eq(&needs(&sample));
}

#[test]
fn a_cluster_to_be_deleted_has_no_desired_objects() {
    let mut sample = Sample::highly_available();
    sample.cluster.desire = crate::DesiredState::Gone;
    assert!(desired_objects(&sample.spec()).is_empty());
}
