use proptest::prelude::*;

use super::*;
use crate::settings::{PodNetwork, Provider, Volume};

fn labels(pairs: &[(&str, &str)]) -> Result<Labels, LabelsError> {
    let raw = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    raw.collect::<BTreeMap<_, _>>().try_into()
}

#[track_caller]
fn refuses(pairs: &[(&str, &str)], want: &str) {
    assert_eq!(labels(pairs).unwrap_err().to_string(), want);
}

#[test]
fn the_table_is_sorted_and_has_no_duplicate() {
    assert!(LABELS.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

#[test]
fn labels_that_users_of_magnum_set_are_understood() {
    let read = labels(&[
        ("kube_tag", "v1.32.1"),
        ("master_lb_floating_ip_enabled", "true"),
        ("master_lb_allowed_cidrs", "192.0.2.0/24, 198.51.100.7/32"),
        ("boot_volume_size", "20"),
        ("boot_volume_type", "ssd"),
        ("etcd_volume_size", "0"),
        ("calico_ipv4pool", "10.200.0.0/16"),
        ("auto_healing_enabled", "False"),
        ("octavia_provider", "ovn"),
        ("octavia_lb_algorithm", "SOURCE_IP_PORT"),
        ("kubelet_options", "--max-pods=200"),
        ("kube_dashboard_enabled", "false"),
        ("dns_zone", "k8s.example"),
    ])
    .unwrap();
    let settings = read.settings();
    assert_eq!(settings.boot_volume, Some(Volume { size: 20, kind: Some("ssd".to_owned()) }));
    assert_eq!((&settings.etcd_volume, settings.repair), (&None, false));
    assert_eq!(settings.provider, Some(Provider::Ovn));
    assert_eq!(settings.api_allowed_cidrs.len(), 2);
    assert_eq!(settings.dns_zone.as_deref(), Some("k8s.example."));
    assert_eq!(settings.arguments["kubelet"], [("max-pods".to_owned(), "200".to_owned())]);
}

#[test]
fn an_unsupported_or_invalid_label_is_refused_by_name() {
    refuses(
        &[("availability_zone", "nova:compute-17")],
        "labels/availability_zone: must name an availability zone without a host",
    );
    refuses(
        &[("coredns_tag", "1.9.4")],
        "labels/coredns_tag: its version is set by kube_tag; remove it",
    );
    refuses(
        &[("monitoring_enabled", "true")],
        "labels/monitoring_enabled: clusterd does not install it; install it in the cluster and remove the label",
    );
    refuses(
        &[("kube_tag", "latest")],
        "labels/kube_tag: \"latest\" is not a valid Kubernetes version: write it as v1.34.1",
    );
    refuses(&[("boot_volume_size", "-1")], "labels/boot_volume_size: must be a whole number");
    refuses(
        &[("kubelet_options", "--v=2\nExecStartPre=/bin/x")],
        "labels/kubelet_options: \"ExecStartPre=/bin/x\" is not --NAME=VALUE",
    );
}

#[test]
fn add_ons_are_chosen_by_labels() {
    let read = labels(&[
        ("cloud_provider_tag", "v1.34.0"),
        ("flannel_tag", "v0.27.2"),
        ("metrics_server_enabled", "true"),
        ("gpu_plugin_enabled", "false"),
        ("pod_network", "routes"),
    ])
    .unwrap();
    let settings = read.settings();
    assert_eq!(settings.image_tags["openstack-cloud-controller-manager"], "v1.34.0");
    assert_eq!(settings.image_tags["flannel"], "v0.27.2");
    assert!(settings.metrics_server && !settings.gpu_plugin);
    assert_eq!(settings.pod_network, PodNetwork::Routes);
    refuses(&[("pod_network", "cilium")], "labels/pod_network: must be driver or routes");
    refuses(&[("flannel_backend", "host-gw")], "labels/flannel_backend: only vxlan is supported");
    refuses(
        &[("cinder_csi_plugin_tag", "latest")],
        "labels/cinder_csi_plugin_tag: must name a fixed version, and latest changes",
    );
    refuses(
        &[("csi_attacher_tag", "v4@sha256:0")],
        "labels/csi_attacher_tag: must be an image's tag such as v1.34.1",
    );
}

#[test]
fn labels_that_contradict_each_other_are_refused() {
    refuses(
        &[("fixed_subnet_cidr", "10.100.1.0/24")],
        "labels/fixed_subnet_cidr: its addresses overlap those of pods",
    );
    refuses(
        &[("boot_volume_type", "ssd")],
        "labels/boot_volume_size: is required with a volume type",
    );
    refuses(
        &[("min_node_count", "5"), ("max_node_count", "3")],
        "labels/min_node_count: 5 is more than max_node_count, 3",
    );
}

/// Checks labels that are accepted, and labels that are refused because of `label`.
#[track_caller]
fn bounds(label: &str, good: &[&[(&str, &str)]], bad: &[&[(&str, &str)]]) {
    for pairs in good {
        assert!(labels(pairs).is_ok(), "{pairs:?}: {:?}", labels(pairs));
    }
    for pairs in bad {
        let refused = labels(pairs).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("labels/{label}: ")), "{pairs:?}: {refused}");
    }
}

#[test]
fn address_ranges_have_a_size_that_kubernetes_and_the_cloud_accept() {
    const FLANNEL: &str = "flannel_network_cidr";
    const CALICO: &str = "calico_ipv4pool";
    const SERVICES: &str = "service_cluster_ip_range";
    let six = (SERVICES, "fd00:2::/112");
    bounds(
        FLANNEL,
        &[
            &[(FLANNEL, "11.0.0.0/8")],
            &[(FLANNEL, "10.200.0.0/22")],
            &[(FLANNEL, "fd00:1::/48"), six],
            &[(FLANNEL, "fd00:1::/60"), six],
        ],
        &[
            &[(FLANNEL, "12.0.0.0/7")],
            &[(FLANNEL, "10.200.0.0/23")],
            &[(FLANNEL, "fd00:1::/47"), six],
            &[(FLANNEL, "fd00:1::/61"), six],
        ],
    );
    bounds(CALICO, &[&[(CALICO, "10.200.0.0/22")]], &[&[(CALICO, "10.200.0.0/23")]]);
    let pods = (CALICO, "fd00:1::/48");
    bounds(
        SERVICES,
        &[
            &[(SERVICES, "172.16.0.0/12")],
            &[(SERVICES, "172.16.0.0/24")],
            &[(SERVICES, "fd00:2::/108"), pods],
        ],
        &[
            &[(SERVICES, "172.32.0.0/11")],
            &[(SERVICES, "172.16.0.0/25")],
            &[(SERVICES, "fd00:2::/107"), pods],
            &[(SERVICES, "fd00:2::/113"), pods],
            // Pods and Services have the same IP version.
            &[(SERVICES, "fd00:2::/112")],
            &[pods, (SERVICES, "172.16.0.0/24")],
            &[(SERVICES, "10.100.0.0/24")],
        ],
    );
    const NODES: &str = "fixed_subnet_cidr";
    bounds(
        NODES,
        &[
            &[(NODES, "11.0.0.0/8")],
            &[(NODES, "192.168.0.0/28")],
            &[(NODES, "fd00:3::/48")],
            &[(NODES, "fd00:3::/64")],
        ],
        &[
            &[(NODES, "12.0.0.0/7")],
            &[(NODES, "192.168.0.0/29")],
            &[(NODES, "fd00:3::/47")],
            &[(NODES, "fd00:3::/65")],
            &[(NODES, "10.254.1.0/24")],
            &[(NODES, "10.100.1.0/24")],
        ],
    );
    bounds(
        CALICO,
        &[&[(CALICO, "10.200.0.0/16"), (FLANNEL, "10.200.0.0/16")]],
        &[&[(CALICO, "10.200.0.0/16"), (FLANNEL, "10.201.0.0/16")]],
    );
}

#[test]
fn labels_that_need_another_label_are_refused_without_it() {
    const COUNT: &str = "min_node_count";
    bounds(
        COUNT,
        &[&[(COUNT, "3"), ("max_node_count", "3")], &[(COUNT, "5")], &[("max_node_count", "1")]],
        &[&[(COUNT, "4"), ("max_node_count", "3")]],
    );
    const RECORDS: &str = "dns_node_records_enabled";
    bounds(
        RECORDS,
        &[&[(RECORDS, "true"), ("dns_zone", "k8s.example")], &[(RECORDS, "false")]],
        &[&[(RECORDS, "true")]],
    );
    const UPDATES: &str = "os_updates_enabled";
    const DELIVERY: &str = "user_data_delivery";
    bounds(
        UPDATES,
        &[&[(UPDATES, "true")], &[(UPDATES, "false"), (DELIVERY, "inline")]],
        &[&[(UPDATES, "true"), (DELIVERY, "inline")]],
    );
    bounds(
        "etcd_volume_size",
        &[&[("etcd_volume_size", "1"), ("etcd_volume_type", "ssd")]],
        &[&[("etcd_volume_type", "ssd")], &[("etcd_volume_size", "0"), ("etcd_volume_type", "a")]],
    );
    const ALGORITHM: &str = "octavia_lb_algorithm";
    const PROVIDER: &str = "octavia_provider";
    bounds(
        ALGORITHM,
        &[
            &[(PROVIDER, "ovn")],
            &[(PROVIDER, "ovn"), (ALGORITHM, "SOURCE_IP_PORT")],
            &[(PROVIDER, "amphora"), (ALGORITHM, "SOURCE_IP")],
            &[(PROVIDER, "f5"), (ALGORITHM, "SOURCE_IP_PORT")],
            &[(PROVIDER, "f5"), (ALGORITHM, "SOURCE_IP")],
            &[(ALGORITHM, "SOURCE_IP_PORT")],
        ],
        &[
            &[(PROVIDER, "ovn"), (ALGORITHM, "ROUND_ROBIN")],
            &[(PROVIDER, "amphora"), (ALGORITHM, "SOURCE_IP_PORT")],
        ],
    );
}

#[test]
fn a_dns_zone_leaves_room_for_the_names_of_members() {
    let zone = |last: usize| format!("{}.{}.{}", "x".repeat(63), "y".repeat(63), "z".repeat(last));
    // The final dot counts.
    let (most, more) = (zone(21), zone(22));
    assert_eq!((most.len() + 1, more.len() + 1), (150, 151));
    bounds("dns_zone", &[&[("dns_zone", &most)]], &[&[("dns_zone", &more)]]);
}

#[test]
fn a_feature_needs_a_version_of_kubernetes_that_has_it() {
    const METRICS: &str = "metrics_server_enabled";
    const PROXY: &str = "kubeproxy_options";
    let nftables = (PROXY, "--proxy-mode=nftables");
    bounds(
        METRICS,
        &[
            &[(METRICS, "true"), ("kube_tag", "v1.21.0")],
            &[(METRICS, "true")],
            &[(METRICS, "false"), ("kube_tag", "v1.20.0")],
        ],
        &[&[(METRICS, "true"), ("kube_tag", "v1.20.0")]],
    );
    bounds(
        PROXY,
        &[
            &[nftables, ("kube_tag", "v1.31.0")],
            &[(PROXY, "--proxy-mode=ipvs"), ("kube_tag", "v1.30.0")],
        ],
        &[&[nftables, ("kube_tag", "v1.30.0")]],
    );
}

#[test]
fn labels_for_one_value_refuse_every_other() {
    for (label, good, bad) in [
        ("cgroup_driver", "systemd", "cgroupfs"),
        ("container_runtime", "containerd", "docker"),
        ("flannel_backend", "vxlan", "host-gw"),
        ("flannel_network_subnetlen", "24", "25"),
        ("octavia_lb_healthcheck", "true", "false"),
        ("selinux_mode", "permissive", "enforcing"),
        ("use_podman", "false", "true"),
        ("use_podman", "no", "maybe"),
    ] {
        bounds(label, &[&[(label, good)]], &[&[(label, bad)]]);
    }
}

#[test]
fn a_record_keeps_the_first_label_that_is_no_longer_accepted() {
    let record = r#"{"auto_healing_enabled":"false","colour":"red","coredns_tag":"x","size":"1"}"#;
    let read: Labels = serde_json::from_str(record).unwrap();
    assert!(!read.settings().repair);
    let why = "its version is set by kube_tag; remove it".to_owned();
    let refused = LabelsError::Refused { label: "coredns_tag", why };
    assert_eq!(read.refused_label(), Some(&refused));
    assert_eq!(read.check(), Err(refused));
    let good = labels(&[("kube_tag", "v1.32.1")]).unwrap();
    assert_eq!((good.refused_label(), good.check()), (None, Ok(())));
}

#[test]
fn a_label_that_nobody_documents_has_no_effect_and_a_warning() {
    let read = labels(&[("colour", "red"), ("kube_tag", "v1.32.1")]).unwrap();
    assert_eq!(read.raw()["colour"], "red");
    assert_eq!(read.settings(), labels(&[("kube_tag", "v1.32.1")]).unwrap().settings());
    let said = "clusterd does not know these labels, so they have no effect: labels/colour";
    assert_eq!(unknown_labels_warning([&read, &read]).as_deref(), Some(said));
    assert_eq!(unknown_labels_warning([&labels(&[("kube_tag", "v1.32.1")]).unwrap()]), None);
    let many: Vec<String> = (0..12).map(|number| format!("{}{number}", "x".repeat(100))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    let said = unknown_labels_warning([&labels(&many).unwrap()]).unwrap();
    assert!(said.ends_with(&format!("labels/{} and 2 more", "x".repeat(64))), "{said}");
}

#[test]
fn labels_of_magnum_cluster_api_are_understood_or_refused_by_name() {
    const SUITES: &str = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256";
    let read = labels(&[
        ("api_server_cert_sans", "api.example, 192.0.2.7"),
        ("api_server_tls_cipher_suites", SUITES),
        ("kubeapi_options", "--v=2"),
        ("kubelet_options", "--max-pods=50"),
        ("kubelet_tls_cipher_suites", SUITES),
        ("oidc_client_id", "kubernetes"),
        ("oidc_groups_claim", ""),
        ("oidc_issuer_url", "https://idp.example/realm"),
        ("oidc_username_prefix", "-"),
    ])
    .unwrap();
    let settings = read.settings();
    assert_eq!(settings.api_names, ["api.example", "192.0.2.7"]);
    let of = |component: &str| {
        let pairs = settings.arguments[component].iter();
        pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    let suites = format!("tls-cipher-suites={SUITES}");
    assert_eq!(of("kubelet"), ["max-pods=50", &suites]);
    let oidc = [
        "oidc-client-id=kubernetes",
        "oidc-issuer-url=https://idp.example/realm",
        "oidc-username-prefix=-",
    ];
    assert_eq!(of("kube-apiserver"), [&[suites.as_str(), "v=2"][..], &oidc].concat());

    const CIPHERS: &str = "kubelet_tls_cipher_suites";
    bounds(
        CIPHERS,
        &[],
        &[
            &[(CIPHERS, "")],
            &[(CIPHERS, "TLS_RSA_WITH_RC4_128_SHA")],
            &[(CIPHERS, "TLS_AES_128_GCM_SHA256")],
        ],
    );
    const ISSUER: &str = "oidc_issuer_url";
    const CLIENT: &str = "oidc_client_id";
    bounds(
        CLIENT,
        &[&[(CLIENT, "")]],
        &[&[(CLIENT, "k")], &[(ISSUER, "https://idp.example")], &[(CLIENT, "a b")]],
    );
    bounds(ISSUER, &[&[(ISSUER, "")]], &[&[(ISSUER, "http://idp.example"), (CLIENT, "k")]]);
    bounds(
        "api_server_cert_sans",
        &[],
        &[&[("api_server_cert_sans", "UPPER.example")], &[("api_server_cert_sans", "a,,b")]],
    );
    for (label, value) in [
        ("audit_log_maxage", "30"),
        ("manila_csi_plugin_tag", "v1"),
        ("different_failure_domain", "true"),
    ] {
        bounds(label, &[], &[&[(label, value)]]);
    }
}

#[test]
fn merged_labels_are_checked_together() {
    let most = labels(&[("max_node_count", "3"), ("kube_tag", "v1.32.1")]).unwrap();
    let merged = most.merged(&labels(&[("kube_tag", "v1.33.0")]).unwrap()).unwrap();
    assert_eq!(merged.raw()["kube_tag"], "v1.33.0");
    assert_eq!(merged.raw()["max_node_count"], "3");
    assert!(most.merged(&labels(&[("min_node_count", "5")]).unwrap()).is_err());
}

#[test]
fn labels_are_kept_as_they_were_given() {
    let read = labels(&[("kube_tag", "v1.32.1"), ("auto_healing_enabled", "TRUE")]).unwrap();
    let text = serde_json::to_string(&read).unwrap();
    assert_eq!(text, r#"{"auto_healing_enabled":"TRUE","kube_tag":"v1.32.1"}"#);
    assert_eq!(serde_json::from_str::<Labels>(&text).unwrap(), read);
}

proptest! {
    #[test]
    fn any_value_is_kept_as_it_is_or_refused_by_name(at in 0..LABELS.len(), value in ".{0,20}|[0-9./,=-]{0,20}") {
        let name = LABELS[at].0;
        match labels(&[(name, &value)]) {
            Ok(read) => prop_assert_eq!(&read.raw()[name], &value),
            Err(why) => prop_assert!(why.to_string().starts_with("labels/"), "{}", why),
        }
    }
}
