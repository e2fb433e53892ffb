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
fn the_key_of_the_caller_is_not_looked_up_among_those_of_clusterds_user() {
    let mut sample = Sample::smallest();
    sample.cluster.blueprint.keypair = Some("laptop".to_owned());
    let keypair = |sample: &Sample| {
        let shape = desired_objects(&sample.spec());
        shape.into_values().find_map(|object| {
            let ResourceSpec::Server { keypair, .. } = object.thing else { return None };
            Some(keypair)
        })
    };
    assert_eq!(keypair(&sample), Some(Some("laptop".to_owned())));
    sample.cluster.ssh_key = Some("ssh-ed25519 AAAA laptop".to_owned());
    assert_eq!(keypair(&sample), Some(None));
    let rules = rules::node_rules(&sample.spec());
    assert!(rules.iter().any(|rule| rule.ports == Some((22, 22))), "SSH stays open: {rules:?}");
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
    // Each member has a floating IP, and certificates contain those of the control plane.
    sample.cluster.blueprint.floating_ip_enabled = true;
    let floating = expect![
        "router server-group/default-worker vip-port/api balancer-address/api port/default-master-0 port/default-master-1 port/default-master-2 port/default-worker-0 machine-address/default-master-0 machine-address/default-master-1 machine-address/default-master-2"
    ];
    floating.assert_eq(&needs(&sample));
    sample.groups[1].labels = labels(&[]);
    claim.assert_eq(&needs(&sample));
}

#[test]
fn the_balancer_of_the_api_alone_is_open_to_the_allowed_ranges_and_the_members() {
    let mut sample = Sample::highly_available();
    let mut allowed = |ranges: &str| {
        sample.cluster.blueprint.labels = labels(&[
            ("master_lb_allowed_cidrs", ranges),
            ("ingress_balancer_enabled", "true"),
            ("octavia_provider", "ovn"),
            ("octavia_lb_algorithm", "SOURCE_IP_PORT"),
        ]);
        let shape = desired_objects(&sample.spec());
        [BalancerPurpose::Api, BalancerPurpose::Ingress].map(|of| {
            let thing = &shape[&Key::LoadBalancer(of)].thing;
            let ResourceSpec::LoadBalancer { provider, algorithm, allowed, .. } = thing else {
                panic!("{thing:?}")
            };
            assert_eq!((provider.as_deref(), *algorithm), (Some("ovn"), "SOURCE_IP_PORT"));
            allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        })
    };
    assert_eq!(allowed("192.0.2.0/24"), ["192.0.2.0/24 10.0.0.0/24", ""]);
    assert_eq!(allowed("10.0.0.0/24,192.0.2.0/24"), ["10.0.0.0/24 192.0.2.0/24", ""]);
}

#[test]
fn only_the_control_plane_can_be_kept_strictly_apart() {
    let mut sample = Sample::highly_available();
    sample.cluster.blueprint.labels = labels(&[("server_group_policies", "anti-affinity")]);
    let shape = desired_objects(&sample.spec());
    let policies = shape.iter().filter_map(|(key, object)| {
        let ResourceSpec::ServerGroup { policy } = &object.thing else { return None };
        Some(format!("{key}: {policy}"))
    });
    let want = [
        "server-group/default-master: anti-affinity",
        "server-group/default-worker: soft-anti-affinity",
    ];
    assert_eq!(policies.collect::<Vec<_>>(), want);
}

#[test]
fn a_member_has_the_volumes_of_its_group_and_none_of_size_zero() {
    let mut sample = Sample::highly_available();
    for group in &mut sample.groups {
        group.labels = labels(&[("boot_volume_size", "20"), ("etcd_volume_size", "8")]);
    }
    let mut volumes = |size| {
        for group in &mut sample.groups {
            group.docker_volume_size = size;
        }
        let shape = desired_objects(&sample.spec());
        ["server/default-master-0", "server/default-worker-0"].map(|key| {
            let thing = &shape[&key.parse::<Key>().unwrap()].thing;
            let ResourceSpec::Server { disks, .. } = thing else { panic!("{thing:?}") };
            let disks = disks.iter().map(|disk| format!("{} {}", disk.purpose, disk.size));
            disks.collect::<Vec<_>>().join(", ")
        })
    };
    assert_eq!(volumes(None), ["boot 20, etcd 8", "boot 20"]);
    assert_eq!(volumes(Some(0)), ["boot 20, etcd 8", "boot 20"]);
    assert_eq!(volumes(Some(1)), ["boot 20, etcd 8, containers 1", "boot 20, containers 1"]);
}

#[test]
fn a_cluster_has_a_credential_when_an_add_on_calls_the_cloud() {
    let mut sample = Sample::smallest();
    let (on, off) = ("true", "false");
    for (provider, csi, want) in
        [(on, on, true), (on, off, true), (off, on, true), (off, off, false)]
    {
        sample.cluster.blueprint.labels =
            labels(&[("cloud_provider_enabled", provider), ("cinder_csi_enabled", csi)]);
        let has = desired_objects(&sample.spec()).contains_key(&Key::Credential(1));
        assert_eq!(has, want, "{provider} {csi}");
    }
}

#[test]
fn a_cluster_to_be_deleted_has_no_desired_objects() {
    let mut sample = Sample::highly_available();
    sample.cluster.desire = crate::DesiredState::Gone;
    assert!(desired_objects(&sample.spec()).is_empty());
}
