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
fn an_unknown_or_invalid_label_is_refused_by_name() {
    refuses(&[("colour", "red")], "labels/colour: unknown label");
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
