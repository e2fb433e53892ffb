//! Settings that are refused, and settings that change the config of a member.

use std::collections::BTreeMap;

use cluster_bootstrap::{
    Archives, Artifact, BootstrapError, CgroupDriver, ClusterDns, ClusterSettings, Endpoint, Name,
    NodeConfig, PodNetwork, Proxies, SettingsError, Sha256, TaintEffect, Volume, Worker,
    control_plane, inline, joining_control_plane, with_volumes, worker,
};
use ignition::{Document, Limits};
use serde_json::{Value, json};

use crate::example::{artifact, cluster, machine, some_worker};
use crate::{document, file, member, units};

/// The error about changed settings; `None` if they are accepted.
fn checked(change: impl FnOnce(&mut ClusterSettings)) -> Option<SettingsError> {
    let mut cluster = cluster("v1.30.1");
    change(&mut cluster);
    cluster.check().err()
}

fn contents(node: &NodeConfig, of: &str) -> String {
    let units = node.config.systemd.as_ref().and_then(|it| it.units.as_ref());
    let unit = units.into_iter().flatten().find(|it| it.name == of).expect("there is such a unit");
    unit.contents.clone().expect("the unit has contents")
}

#[test]
fn a_control_plane_has_1_3_or_5_members() {
    for count in 0..=6 {
        let members =
            (0..count).map(|n| machine(&format!("cp-{n}"), &format!("10.0.0.{n}"))).collect();
        let refused = checked(|it| it.control_plane = members);
        assert_eq!(refused.is_none(), [1, 3, 5].contains(&count), "{count}: {refused:?}");
    }
}

#[test]
fn a_range_has_room_for_a_cluster() {
    for (pods, services, is_accepted) in [
        ("10.244.0.0/22", "10.96.0.0/24", true),
        ("10.244.0.0/23", "10.96.0.0/24", false),
        ("10.244.0.0/22", "10.96.0.0/25", false),
        ("fd00:1::/60", "fd00:2::/112", true),
        ("fd00:1::/61", "fd00:2::/112", false),
        ("fd00:1::/60", "fd00:2::/113", false),
        // One range is in the other.
        ("172.16.0.0/16", "172.16.0.0/12", false),
        ("172.16.0.0/12", "172.16.0.0/16", false),
        // A member is in the range.
        ("10.244.0.0/16", "10.0.0.0/24", false),
    ] {
        let refused = checked(|it| {
            it.pods = pods.parse().unwrap();
            it.services = services.parse().unwrap();
        });
        assert_eq!(refused.is_none(), is_accepted, "{pods} {services}: {refused:?}");
    }
}

#[test]
fn members_that_join_later_are_outside_of_both_ranges() {
    let cluster = cluster("v1.30.1");
    for address in ["10.244.0.1", "10.96.0.1"] {
        let machine = machine("late", address);
        let overlaps = |refused: Result<NodeConfig, BootstrapError>| {
            matches!(refused, Err(BootstrapError::Settings(SettingsError::Overlap { .. })))
        };
        assert!(overlaps(joining_control_plane(&cluster, &machine)));
        assert!(overlaps(worker(&cluster, &Worker { machine, ..some_worker() })));
    }
}

#[test]
fn each_text_of_the_settings_is_checked() {
    let field = |refused: Option<SettingsError>| match refused {
        Some(SettingsError::Text { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    for bad in ["", "a b", "a\nb", "a\"b"] {
        let text = || bad.to_owned();
        assert_eq!(field(checked(|it| it.endpoint.host = text())), "endpoint.host");
        assert_eq!(field(checked(|it| it.domain = text())), "domain");
        let repository = checked(|it| it.source.images.repository = text());
        assert_eq!(field(repository), "source.images.repository");
        assert_eq!(field(checked(|it| it.also_known_as.push(text()))), "also_known_as");
    }
    let good = "A-z_0.example:5000/*".to_owned();
    assert_eq!(checked(|it| it.also_known_as.push(good)), None);
}

#[test]
fn a_name_that_is_no_member_gets_no_config() {
    let refused = control_plane(&cluster("v1.30.1"), &Name::try_from("cp-4").unwrap());
    assert!(matches!(refused, Err(BootstrapError::NoSuchMachine { .. })));
}

#[test]
fn a_label_of_a_worker_is_one_that_kubernetes_accepts() {
    let accepts = |key: &str, value: &str| {
        let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        Worker { labels, ..some_worker() }.check().is_ok()
    };
    let long = |length: usize| "x".repeat(length);
    for (key, value) in [
        ("A-b_c.d", "A-b_c.d"),
        ("example.org/a", ""),
        ("mykubernetes.io/a", ""),
        ("node.kubernetes.io/a", ""),
        ("kubelet.kubernetes.io/a", ""),
        ("a.node.kubernetes.io/a", ""),
        (&long(63), &long(63)),
        (&format!("{}/a", long(253)), ""),
    ] {
        assert!(accepts(key, value), "{key}={value}");
    }
    for (key, value) in [
        ("kubernetes.io/a", ""),
        ("k8s.io/a", ""),
        ("a.k8s.io/a", ""),
        ("a.kubernetes.io/a", ""),
        ("mynode.kubernetes.io/a", ""),
        ("example.org/", ""),
        ("/a", ""),
        ("a/b/c", ""),
        ("Example.org/a", ""),
        ("exa mple/a", ""),
        ("a b", ""),
        ("a", "b c"),
        (&long(64), ""),
        ("a", &long(64)),
        (&format!("{}/a", long(254)), ""),
    ] {
        assert!(!accepts(key, value), "{key}={value}");
    }
}

#[test]
fn an_ipv6_address_has_brackets_in_urls() {
    let authority = |host: &str| Endpoint { host: host.to_owned(), port: 6443 }.authority();
    assert_eq!(authority("fd00::1"), "[fd00::1]:6443");
    assert_eq!(authority("10.0.0.5"), "10.0.0.5:6443");
    assert_eq!(authority("api.example"), "api.example:6443");
    let mut cluster = cluster("v1.30.1");
    cluster.control_plane = vec![machine("cp-1", "fd00::11")];
    let etcd =
        document(&member(&cluster, "cp-1"), "/etc/bedplate/init-etcd.yaml", "ClusterConfiguration");
    let reported = &etcd["etcd"]["local"]["extraArgs"];
    assert_eq!(reported["initial-cluster"], "cp-1=https://[fd00::11]:2380");
    assert_eq!(reported["initial-cluster-state"], "new");
    assert_eq!(reported["initial-cluster-token"], "blue");
}

#[test]
fn taints_have_kubernetes_names() {
    let names = [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];
    assert_eq!(names.map(TaintEffect::as_str), ["NoSchedule", "PreferNoSchedule", "NoExecute"]);
    let join = document(
        &worker(&cluster("v1.30.1"), &some_worker()).unwrap(),
        "/etc/bedplate/join.yaml",
        "JoinConfiguration",
    );
    let taint = json!([{"key": "gpu", "value": "", "effect": "NoSchedule"}]);
    assert_eq!(join["nodeRegistration"]["taints"], taint);
}

#[test]
fn the_settings_of_a_cluster_reach_kubeadm() {
    let mut cluster = cluster("v1.30.1");
    cluster.external_cloud_provider = false;
    cluster.source.images.etcd_tag = Some("3.5.1-0".to_owned());
    cluster.also_known_as.push("api.blue.example".to_owned());
    let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    cluster.overrides.api_server = one("v", "3");
    cluster.overrides.controller_manager = one("cluster-signing-cert-file", "/a");
    let fields = |name: &str, value: &str| [(name.to_owned(), json!(value))].into_iter().collect();
    cluster.overrides.kubelet = fields("cgroupDriver", "other");
    cluster.overrides.kube_proxy = fields("mode", "ipvs");
    let node = member(&cluster, "cp-1");
    let reported = |kind: &str| document(&node, "/etc/bedplate/init.yaml", kind);
    let configuration = reported("ClusterConfiguration");
    assert_eq!(configuration["etcd"]["local"]["imageTag"], "3.5.1-0");
    let server = json!({"certSANs": ["api.blue.example", "10.0.0.5"], "extraArgs": {"v": "3"}});
    assert_eq!(configuration["apiServer"], server);
    let manager = json!({"extraArgs": {"cluster-signing-cert-file": "/a"}});
    assert_eq!(configuration["controllerManager"], manager);
    assert_eq!(reported("KubeletConfiguration")["cgroupDriver"], "other");
    assert_eq!(reported("KubeProxyConfiguration")["mode"], "ipvs");
    let arguments = &reported("InitConfiguration")["nodeRegistration"]["kubeletExtraArgs"];
    assert_eq!(arguments["cloud-provider"], Value::Null);
}

#[test]
fn containerd_and_the_kubelet_use_the_same_cgroup_driver() {
    let mut cluster = cluster("v1.30.1");
    for (driver, systemd, kubelet) in
        [(CgroupDriver::Systemd, "true", "systemd"), (CgroupDriver::Cgroupfs, "false", "cgroupfs")]
    {
        cluster.cgroups = driver;
        let node = member(&cluster, "cp-1");
        let text = file(&node, "/etc/containerd/config.toml").unwrap();
        assert!(text.contains(&format!("SystemdCgroup = {systemd}\n")), "{text}");
        let reported = document(&node, "/etc/bedplate/init.yaml", "KubeletConfiguration");
        assert_eq!(reported["cgroupDriver"], kubelet);
    }
}

#[test]
fn pod_routes_belong_to_clusters_without_an_add_on_for_the_network() {
    let mut cluster = cluster("v1.30.1");
    for (network, has_routes) in [(PodNetwork::HostRoutes, true), (PodNetwork::AddOn, false)] {
        cluster.pod_network = network;
        let first = member(&cluster, "cp-1");
        let worker = worker(&cluster, &some_worker()).unwrap();
        for node in [&first, &worker] {
            assert_eq!(file(node, "/etc/bedplate/pod-routes").is_some(), has_routes);
            assert_eq!(units(node).contains(&"bedplate-pod-routes.service"), has_routes);
        }
        let access = file(&first, "/etc/bedplate/pod-routes-access.json");
        assert_eq!(access.is_some(), has_routes);
        let once = contents(&first, "bedplate-once.service");
        assert_eq!(once.contains("pod-routes-access.json"), has_routes);
        assert_eq!(file(&member(&cluster, "cp-2"), "/etc/bedplate/pod-routes-access.json"), None);
    }
    assert!(contents(&member(&cluster, "cp-1"), "bedplate-once.service").contains("addon coredns"));
    cluster.dns = ClusterDns::Absent;
    assert!(!contents(&member(&cluster, "cp-1"), "bedplate-once.service").contains("coredns"));
}

#[test]
fn pod_routes_know_the_range_of_pods_and_may_read_nodes() {
    let node = member(&cluster("v1.30.1"), "cp-1");
    let script = file(&node, "/etc/bedplate/pod-routes").unwrap();
    assert!(script.starts_with("#!/bin/bash\n") && script.contains("\nnetwork=10.244.0.0/16\n"));
    let access = file(&node, "/etc/bedplate/pod-routes-access.json").unwrap();
    let access: Value = serde_json::from_str(&access).unwrap();
    let rules =
        json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]);
    assert_eq!((&access["kind"], &access["items"][0]["rules"]), (&json!("List"), &rules));
    assert_eq!(access["items"][1]["roleRef"]["name"], access["items"][0]["metadata"]["name"]);
    assert_eq!(access["items"][1]["subjects"][0]["name"], "system:nodes");
}

#[test]
fn a_member_unpacks_only_what_it_downloads() {
    let mut cluster = cluster("v1.30.1");
    let unpacked = |cluster: &ClusterSettings, node: NodeConfig| {
        let plugins = cluster.source.programs.cni_plugins.is_some();
        let has = units(&node).contains(&"bedplate-unpack.service");
        let text = if has { contents(&node, "bedplate-unpack.service") } else { String::new() };
        assert_eq!(text.contains("cni-plugins.tgz"), plugins);
        text.matches("images import").count()
    };
    let both = |cluster: &ClusterSettings| {
        let worker = worker(cluster, &some_worker()).unwrap();
        [unpacked(cluster, member(cluster, "cp-1")), unpacked(cluster, worker)]
    };
    assert_eq!(both(&cluster), [1, 1]);
    let archive = |name: &str, digits: &str| Artifact {
        sha256: Sha256::try_from(digits.repeat(32).as_str()).unwrap(),
        ..artifact(name)
    };
    cluster.source.images.archives.control_plane =
        vec![archive("etcd.tar", "0c"), archive("api.tar", "0d")];
    assert_eq!(both(&cluster), [3, 1]);
    cluster.source.programs.cni_plugins = None;
    assert_eq!(both(&cluster), [3, 1]);
    cluster.source.images.archives = Archives::default();
    assert_eq!(both(&cluster), [0, 0]);
    assert!(!units(&member(&cluster, "cp-1")).contains(&"bedplate-unpack.service"));
}

#[test]
fn each_proxy_is_used_and_checked() {
    let proxies = |http: Option<&str>, https: Option<&str>| {
        let url = |raw: Option<&str>| raw.map(|raw| raw.parse().unwrap());
        Proxies { http: url(http), https: url(https), except: vec!["a".to_owned()] }.config()
    };
    let config = proxies(None, Some("http://proxy:3128")).unwrap().unwrap();
    let reported: Value = serde_json::from_str(&ignition::json(&config)).unwrap();
    let want = json!({"httpsProxy": "http://proxy:3128/", "noProxy": ["a"]});
    assert_eq!(reported["ignition"]["proxy"], want);
    let bad = "http://proxy:3128/?a";
    let field = |refused| match refused {
        Err(SettingsError::Text { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(field(proxies(Some(bad), None)), "http_proxy");
    assert_eq!(field(proxies(Some("http://proxy"), Some(bad))), "https_proxy");
}

#[test]
fn a_volume_is_known_by_its_tag() {
    assert_eq!(Volume::tagged("etcd"), Some(Volume::Etcd));
    assert_eq!(Volume::tagged("containers"), Some(Volume::Containers));
    assert_eq!(Volume::tagged("other"), None);
    let node = with_volumes(&member(&cluster("v1.30.1"), "cp-1"), &[Volume::Containers]);
    let mount = contents(&node, "var-lib-containerd.mount");
    assert!(mount.contains("What=/run/bedplate/volumes/containers\nWhere=/var/lib/containerd\n"));
    let all = node.config.systemd.as_ref().and_then(|it| it.units.as_ref()).unwrap();
    let user = all.iter().find(|it| it.name == "containerd.service").unwrap();
    let dropin = user.dropins.as_ref().unwrap()[0].contents.as_ref().unwrap();
    assert!(dropin.contains("chmod 0711 /var/lib/containerd\n"), "{dropin}");
}

#[test]
fn user_data_is_compressed_only_if_it_is_too_long() {
    let mut cluster = cluster("v1.30.1");
    let plain = member(&cluster, "cp-1");
    assert_eq!(inline(&plain).unwrap().text(), ignition::json(&plain.config));
    let extra = json!({
        "ignition": {"version": "3.3.0"},
        "storage": {"files": [{"path": "/a", "contents": {"source": format!("data:,{}", "x".repeat(60_000))}}]},
    });
    cluster.extra = Document::parse(&extra.to_string(), Limits::default()).unwrap().config();
    let long = inline(&member(&cluster, "cp-1")).unwrap();
    assert!(long.text().contains(r#""compression":"gzip""#) && long.text().len() < 40_000);
}
