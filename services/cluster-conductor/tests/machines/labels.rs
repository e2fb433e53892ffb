//! Every label with values that make sense for some label, and values that make sense for none. An accepted value must lead to desired
//! objects, a config of every member, and add-ons.

use std::collections::{BTreeMap, BTreeSet};

use cluster_addons::{Cloud, ClusterContext, Credential, ImageSource, desired_add_ons, settings};
use cluster_core::{
    ClusterSpec, KubernetesVersion, LABELS, Labels, Meaning, ResourceSpec, VolumeDriver,
    check_cluster, desired_objects,
};

use crate::given::ClusterFixture;

#[rustfmt::skip]
const VALUES: &[&str] = &[
    "", " ", "\n", "true", "False", "maybe", "0", "1", "-1", "5", "4294967295", "99999999999", "24",
    "10.0.0.0/24", "10.0.0.0/8", "10.96.0.0/12", "172.16.0.0/12", "172.16.0.0/22", "172.16.0.0/23", "192.168.0.0/24", "192.168.0.0/29",
    "192.168.7.7/32", "128.0.0.0/1", "0.0.0.0/0", "::/0", "fd00::/48", "fd00::/64", "fd00::/112", "10.0.0.1/24", "10.0.0.0/24,fd00::/64",
    "k8s.example", "k8s.example.", "UPPER.example", "-a.example", "a b", "a@b", "a:b", "[::1]:5000/x", "/", "//", "registry.example/k8s/",
    "v1.34.1", "v1.33.0", "v1.20.0", "v1.19.0", "latest", "30d", "1h", "a@b.example", "nova", "nova:host", "ssd", "\u{e9}",
    "--v=2", "--max-pods=50", "--max-pods=50 --max-pods=60", "--x='1'", "v=2", "--", "--proxy-mode=ipvs", "--proxy-mode=nftables",
    "--iptables-sync-period=30s --iptables-min-sync-period=1s", "--feature-gates=A=true", "--metrics-bind-address=0.0.0.0:10249",
    "NodeRestriction,PodNodeSelector", "Node Restriction", ",", "amphora", "ovn", "octavia", "another",
    "ROUND_ROBIN", "SOURCE_IP", "SOURCE_IP_PORT", "systemd", "containerd", "permissive", "vxlan", "host-gw", "driver", "routes", "claim",
    "inline", "anti-affinity", "soft-anti-affinity", "https://idp.example",
    "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
];

/// Labels beside which the tried label stands, because some labels need others.
const BESIDE: &[&[(&str, &str)]] = &[
    &[],
    &[
        ("dns_zone", "k8s.example"),
        ("dns_node_records_enabled", "true"),
        ("boot_volume_size", "10"),
        ("etcd_volume_size", "10"),
        ("octavia_provider", "ovn"),
        ("metrics_server_enabled", "true"),
        ("oidc_issuer_url", "https://idp.example"),
        ("oidc_client_id", "kubernetes"),
    ],
];

fn labels(of: &[(&str, &str)], name: &str, value: &str) -> Option<Labels> {
    let all = of.iter().copied().chain([(name, value)]);
    let all = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Labels::try_from(all.collect::<BTreeMap<_, _>>()).ok()
}

fn around() -> ClusterContext {
    let credential =
        Credential { generation: 1, id: "c".to_owned(), secret: "s".to_owned().into() };
    ClusterContext {
        cloud: Some(Cloud {
            auth_url: "https://cloud.example/v3".to_owned(),
            region: "RegionOne".to_owned(),
            credential,
            authorities: None,
        }),
        floating_network: Some("n".to_owned()),
        subnet: Some("s".to_owned()),
        gpus: BTreeSet::new(),
        images: ImageSource::default(),
    }
}

#[tokio::test]
async fn every_accepted_label_leads_to_configs_and_add_ons() {
    let long = ["a".repeat(60), "b".repeat(60), "c".repeat(50)].join(".");
    let (longer, options) = ("x".repeat(300), format!("--x={}", "y".repeat(2000)));
    let more = [long.as_str(), longer.as_str(), options.as_str()];
    let mut given = ClusterFixture::labelled(&[]).await;
    given.with_floating_address().await;
    given.cluster.blueprint.volume_driver = Some(VolumeDriver::Cinder);
    given.cluster.blueprint.flavor = Some("m1.large".to_owned());
    let (mut accepted, mut tried) = (BTreeMap::<&str, u32>::new(), BTreeSet::new());
    for (name, value) in LABELS
        .iter()
        .flat_map(|(name, _)| VALUES.iter().copied().chain(more).map(move |value| (*name, value)))
    {
        for beside in BESIDE {
            let Some(labels) = labels(beside, name, value) else { continue };
            let what = format!("{name}={value} beside {} labels", beside.len());
            let (cluster, groups) = (&mut given.cluster, &mut given.groups);
            cluster.kubernetes = labels.settings().kubernetes.unwrap_or(KubernetesVersion::DEFAULT);
            groups.iter_mut().for_each(|group| group.labels = labels.clone());
            cluster.blueprint.labels = labels;
            if check_cluster(&cluster.blueprint, 3).is_err() {
                continue;
            }
            if cluster.kubernetes != KubernetesVersion::DEFAULT {
                let why =
                    given.conductor.check_member_configs(cluster, groups).unwrap_err().to_string();
                assert!(
                    why.starts_with("clusterd has no source for the programs of"),
                    "{what}: {why}"
                );
                continue;
            }
            let count = accepted.entry(name).or_default();
            *count += 1;
            let is_early = *count <= 2;
            // Objects, configs and add-ons depend on the settings alone, so equal settings are tried once. Two values of each label are
            // also tried beside other labels.
            let is_new = tried.insert(format!("{:?}", cluster.blueprint.labels.settings()));
            if !is_new || !(is_early || beside.is_empty()) {
                continue;
            }
            given
                .conductor
                .check_member_configs(cluster, groups)
                .unwrap_or_else(|why| panic!("{what}: {why}"));
            let whole = desired_objects(&ClusterSpec { cluster, groups });
            for object in whole.values() {
                if let ResourceSpec::Record { host, .. } = &object.thing {
                    assert!(host.len() <= 254, "{what}: {host}");
                }
            }
            desired_add_ons(&settings(cluster, around()))
                .unwrap_or_else(|why| panic!("{what}: {why}"));
            if is_early {
                let reported = given.user_data("default-worker-1").await;
                reported.unwrap_or_else(|why| panic!("{what}: {why}"));
            }
        }
    }
    let sets = LABELS.iter().filter(|(_, it)| matches!(it, Meaning::Sets(_)));
    let never: Vec<&str> =
        sets.map(|(name, _)| *name).filter(|it| !accepted.contains_key(it)).collect();
    assert_eq!(never, [""; 0], "no value of these labels was tried that is accepted");
}

/// Records of an older clusterd may have labels that are refused today. Such a record can be read, but no server is created from a label
/// that is not understood.
#[tokio::test]
async fn a_record_with_a_label_that_is_refused_today_is_read_and_says_so() {
    let mut given = ClusterFixture::labelled(&[]).await;
    let record = r#"{"kubeproxy_options": "--v=2", "kubelet_options": "--max-pods=9"}"#;
    let labels: Labels = serde_json::from_str(record).unwrap();
    assert_eq!(labels.settings().arguments["kubelet"][0].1, "9");
    given.cluster.blueprint.labels = labels;
    given.save().await;
    let why = "labels/kubeproxy_options: --v is not supported: the configuration of kube-proxy has no field for it";
    assert_eq!(given.user_data("default-worker-0").await.unwrap_err(), why);
    let refused = check_cluster(&given.cluster.blueprint, 3).unwrap_err().to_string();
    assert_eq!(refused, why);
}

#[tokio::test]
async fn settings_without_a_possible_config_are_refused_before_the_cluster_exists() {
    let mut given = ClusterFixture::labelled(&[("user_data_delivery", "inline")]).await;
    let refused = |given: &ClusterFixture| {
        given.conductor.check_member_configs(&given.cluster, &given.groups).unwrap_err().to_string()
    };
    given.cluster.blueprint.http_proxy = Some("not a URL".to_owned());
    assert_eq!(refused(&given), "http_proxy: it is not a URL");
    given.cluster.blueprint.http_proxy = None;
    given.groups[1].machines.clear();
    given.groups[1].node_labels.insert("kubernetes.io/role".to_owned(), "x".to_owned());
    assert_eq!(
        refused(&given),
        "the cluster's settings are not valid: a kubelet cannot set the label `kubernetes.io/role` on its own node: of \
         Kubernetes' own prefixes a kubelet may use only node.kubernetes.io and kubelet.kubernetes.io"
    );
    given.groups[1].node_labels.clear();
    given.conductor.check_member_configs(&given.cluster, &given.groups).unwrap();
    given.groups[1].labels = Labels::default();
    given.stop_listening();
    assert_eq!(
        refused(&given),
        "members of this cluster fetch their configs from clusterd, which has no listener for them"
    );
}
