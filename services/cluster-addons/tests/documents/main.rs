//! Checks the documents of all add-ons against each other.

mod fixtures;
mod receipts;
mod structure;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster_addons::{
    AddOn, AddOnError, Cloud, GpuVendor, ImageSource, KubeletCertificates, LoadBalancing, Settings,
    desired_add_ons,
};
use cluster_core::{NetworkDriver, Provider};
use expect_test::expect;
use fixtures::{SECRET, all, everything, minors, named};
use proptest::prelude::*;

#[test]
fn every_add_on_is_made_when_everything_is_asked_for() {
    let add_ons = desired_add_ons(&everything(34)).unwrap();
    let line = |it: &AddOn| {
        let objects: Vec<String> =
            it.documents.iter().map(|it| it.reference().to_string()).collect();
        format!("{} {}\n  {}\n", it.name, it.version, objects.join("\n  "))
    };
    expect![[r#"
        flannel v0.27.4
          Namespace kube-flannel
          ServiceAccount kube-flannel/flannel
          ClusterRole bedplate:flannel
          ClusterRoleBinding bedplate:flannel
          ConfigMap kube-flannel/kube-flannel-cfg
          DaemonSet kube-flannel/kube-flannel-ds
        openstack-cloud-controller-manager v1.34.1
          ServiceAccount kube-system/cloud-controller-manager
          ClusterRole bedplate:cloud-controller-manager
          Role kube-system/bedplate:cloud-controller-manager
          ClusterRoleBinding bedplate:cloud-controller-manager
          RoleBinding kube-system/bedplate:cloud-controller-manager
          RoleBinding kube-system/bedplate:cloud-controller-manager:authentication
          Secret kube-system/cloud-config
          DaemonSet kube-system/openstack-cloud-controller-manager
        cinder-csi v1.34.1
          ServiceAccount kube-system/csi-cinder-controller-sa
          ServiceAccount kube-system/csi-cinder-node-sa
          ClusterRole bedplate:cinder-csi-controller
          Role kube-system/bedplate:cinder-csi-controller
          ClusterRoleBinding bedplate:cinder-csi-controller
          RoleBinding kube-system/bedplate:cinder-csi-controller
          Secret kube-system/cinder-csi-cloud-config
          Secret kube-system/cinder-csi-node-config
          CSIDriver cinder.csi.openstack.org
          StorageClass cinder
          StorageClass cinder-fast
          Deployment kube-system/csi-cinder-controllerplugin
          DaemonSet kube-system/csi-cinder-nodeplugin
        nvidia-device-plugin v0.17.4
          ServiceAccount kube-system/nvidia-device-plugin
          DaemonSet kube-system/nvidia-device-plugin
        amd-device-plugin 1.31.0.9
          ServiceAccount kube-system/amd-device-plugin
          DaemonSet kube-system/amd-device-plugin
        metrics-server v0.8.1
          ServiceAccount kube-system/metrics-server
          ClusterRole bedplate:metrics-reader
          ClusterRole bedplate:metrics-server
          ClusterRoleBinding bedplate:metrics-server
          ClusterRoleBinding bedplate:metrics-server:auth-delegator
          RoleBinding kube-system/bedplate:metrics-server:authentication
          Service kube-system/metrics-server
          Deployment kube-system/metrics-server
          APIService v1beta1.metrics.k8s.io
    "#]]
    .assert_eq(&add_ons.iter().map(line).collect::<String>());
}

#[test]
fn every_name_in_a_document_refers_to_an_existing_object() {
    let wrong: Vec<String> = all().flat_map(|add_ons| structure::problems(&add_ons)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_secret_is_outside_of_secrets() {
    let encoded = STANDARD.encode(SECRET);
    for add_ons in all() {
        let documents = add_ons.iter().flat_map(|it| &it.documents);
        for document in documents.filter(|it| it.reference().kind != "Secret") {
            let text = document.as_value().to_string();
            assert!(!text.contains(SECRET) && !text.contains(&encoded), "{document:?}");
        }
        let receipts: Vec<_> =
            add_ons.iter().map(|it| it.finished_receipt().into_value()).collect();
        assert!(!serde_json::to_string(&receipts).unwrap().contains(SECRET));
        assert!(!format!("{add_ons:?}").contains(SECRET));
    }
    assert!(!format!("{:?}", everything(34)).contains(SECRET));
}

/// The `cloud.conf` in a Secret.
fn cloud_conf(add_ons: &[AddOn], add_on: &str, secret: &str) -> String {
    let documents = &named(add_ons, add_on).documents;
    let found = documents.iter().find(|it| it.reference().name == secret);
    let object = found.expect("there is that Secret").as_value();
    let text = object["data"]["cloud.conf"].as_str().expect("it has a cloud.conf");
    let text = STANDARD.decode(text).expect("Secrets are written in Base64");
    String::from_utf8(text).expect("cloud.conf is a text")
}

#[test]
fn nodes_hold_the_clouds_credential_only_where_the_driver_needs_it() {
    for minor in minors() {
        let add_ons = desired_add_ons(&everything(minor)).unwrap();
        let node = cloud_conf(&add_ons, "cinder-csi", "cinder-csi-node-config");
        assert_eq!(node.contains(SECRET), minor < 32, "1.{minor}");
        assert!(node.contains("[BlockStorage]"));
        let controller = cloud_conf(&add_ons, "cinder-csi", "cinder-csi-cloud-config");
        assert!(controller.contains(SECRET));
    }
}

#[test]
fn the_cloud_conf_has_the_network_and_subnet_of_load_balancers() {
    let add_ons = desired_add_ons(&everything(34)).unwrap();
    expect![[r#"
        [Global]
        auth-url = "https://keystone.example:5000/v3"
        region = "RegionOne"
        application-credential-id = "credential-1"
        application-credential-secret = "aVeryLongSecretThatNobodyMaySee"
        ca-file = "/etc/config/ca.crt"
        [LoadBalancer]
        lb-method = "ROUND_ROBIN"
        create-monitor = "true"
        floating-network-id = "9f1d1f0e-public"
        subnet-id = "0b6d1c2a-nodes"
        lb-provider = "amphora"
    "#]]
    .assert_eq(&cloud_conf(&add_ons, "openstack-cloud-controller-manager", "cloud-config"));
}

#[test]
fn the_cloud_controller_manager_runs_before_anything_else_can() {
    let add_ons = desired_add_ons(&everything(34)).unwrap();
    let documents = &named(&add_ons, "openstack-cloud-controller-manager").documents;
    let mut pod = documents.last().unwrap().as_value()["spec"]["template"]["spec"].clone();
    let containers = pod["containers"].take();
    expect![[r#"
        {
          "automountServiceAccountToken": true,
          "containers": null,
          "dnsPolicy": "Default",
          "hostNetwork": true,
          "nodeSelector": {
            "kubernetes.io/os": "linux",
            "node-role.kubernetes.io/control-plane": ""
          },
          "priorityClassName": "system-node-critical",
          "securityContext": {
            "fsGroup": 1001,
            "runAsGroup": 1001,
            "runAsNonRoot": true,
            "runAsUser": 1001,
            "seccompProfile": {
              "type": "RuntimeDefault"
            }
          },
          "serviceAccountName": "cloud-controller-manager",
          "tolerations": [
            {
              "effect": "NoSchedule",
              "key": "node-role.kubernetes.io/control-plane",
              "operator": "Exists"
            },
            {
              "effect": "NoSchedule",
              "key": "node-role.kubernetes.io/master",
              "operator": "Exists"
            },
            {
              "effect": "NoSchedule",
              "key": "node.cloudprovider.kubernetes.io/uninitialized",
              "operator": "Exists"
            },
            {
              "effect": "NoSchedule",
              "key": "node.kubernetes.io/network-unavailable",
              "operator": "Exists"
            },
            {
              "effect": "NoSchedule",
              "key": "node.kubernetes.io/not-ready",
              "operator": "Exists"
            }
          ],
          "volumes": [
            {
              "name": "cloud-config",
              "secret": {
                "defaultMode": 288,
                "secretName": "cloud-config"
              }
            }
          ]
        }"#]]
    .assert_eq(&format!("{pod:#}"));
    expect![[r#"
        [
          "/bin/openstack-cloud-controller-manager",
          "--v=1",
          "--cloud-provider=openstack",
          "--cluster-name=7c9e6679-7425-40de-944b-e07fc1f90ae7",
          "--cloud-config=/etc/config/cloud.conf",
          "--bind-address=127.0.0.1",
          "--configure-cloud-routes=false",
          "--leader-elect-resource-lock=leases",
          "--use-service-account-credentials=false"
        ]"#]]
    .assert_eq(&format!("{:#}", containers[0]["args"]));
}

#[test]
fn a_mirror_stands_before_every_image() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    for minor in minors() {
        let mut settings = everything(minor);
        settings.images = ImageSource {
            mirror: Some("mirror.example/k8s".to_owned()),
            tags: BTreeMap::from([("flannel".to_owned(), "v0.27.2".to_owned())]),
            digests: BTreeMap::from([("flannel:v0.27.2".to_owned(), digest.clone())]),
        };
        let add_ons = desired_add_ons(&settings).unwrap();
        let images: Vec<String> = add_ons.iter().flat_map(AddOn::images).collect();
        assert!(images.iter().all(|it| it.starts_with("mirror.example/k8s/")), "{images:?}");
        assert!(images.contains(&format!("mirror.example/k8s/flannel:v0.27.2@{digest}")));
        // A mirror holds one image of each name, so images of two makers must not share a name.
        let names: Vec<&str> = images.iter().filter_map(|it| it.split(':').next()).collect();
        let shared = ["mirror.example/k8s/livenessprobe", "mirror.example/k8s/cinder-csi-plugin"];
        let unlike: BTreeSet<&&str> = names.iter().filter(|it| !shared.contains(it)).collect();
        assert_eq!(unlike.len(), names.iter().filter(|it| !shared.contains(it)).count());
    }
}

#[test]
fn images_lists_everything_a_mirror_has_to_hold() {
    let add_ons = desired_add_ons(&everything(34)).unwrap();
    let images: BTreeSet<String> = add_ons.iter().flat_map(AddOn::images).collect();
    expect![[r#"
        docker.io/rocm/k8s-device-plugin:1.31.0.9
        ghcr.io/flannel-io/flannel-cni-plugin:v1.8.0-flannel1
        ghcr.io/flannel-io/flannel:v0.27.4
        nvcr.io/nvidia/k8s-device-plugin:v0.17.4
        registry.k8s.io/metrics-server/metrics-server:v0.8.1
        registry.k8s.io/provider-os/cinder-csi-plugin:v1.34.1
        registry.k8s.io/provider-os/openstack-cloud-controller-manager:v1.34.1
        registry.k8s.io/sig-storage/csi-attacher:v4.10.0
        registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.15.0
        registry.k8s.io/sig-storage/csi-provisioner:v5.3.0
        registry.k8s.io/sig-storage/csi-resizer:v1.14.0
        registry.k8s.io/sig-storage/csi-snapshotter:v8.3.0
        registry.k8s.io/sig-storage/livenessprobe:v2.17.0"#]]
    .assert_eq(&images.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn impossible_settings_are_refused() {
    let mut calico = everything(34);
    calico.network = Some(NetworkDriver::Calico);
    assert_eq!(desired_add_ons(&calico), Err(AddOnError::Calico));
    assert!(
        AddOnError::Calico
            .to_string()
            .starts_with("network_driver: clusterd does not install calico")
    );

    let mut nobody = everything(34);
    nobody.cloud = None;
    expect!["cannot install the cloud controller manager: the cluster has no cloud credential yet"]
        .assert_eq(&desired_add_ons(&nobody).unwrap_err().to_string());

    let mut early = everything(20);
    early.metrics = Some(KubeletCertificates::Signed);
    expect!["metrics_server_enabled: clusterd cannot install metrics-server on Kubernetes v1.20.1; choose v1.21 or \
             later, or remove the label"]
        .assert_eq(&desired_add_ons(&early).unwrap_err().to_string());

    let mut injected = everything(34);
    injected.cluster = "x --allow-untagged-cloud".to_owned();
    assert!(matches!(
        desired_add_ons(&injected),
        Err(AddOnError::InvalidText { field: "cluster", .. })
    ));
    let mut unnamed = everything(34);
    unnamed.volumes.as_mut().unwrap().classes[0].name = "Fast".to_owned();
    let refused = desired_add_ons(&unnamed).unwrap_err();
    expect!["volumes.classes.name: only lower-case letters, digits, `-` and `.` are permitted"]
        .assert_eq(&refused.to_string());
}

/// The field of an error about a text that is not permitted.
#[track_caller]
fn refused(change: impl FnOnce(&mut Settings), want: &str) {
    let mut settings = everything(34);
    change(&mut settings);
    match desired_add_ons(&settings) {
        Err(AddOnError::InvalidText { field, .. }) => assert_eq!(field, want),
        other => panic!("{want} is accepted: {other:?}"),
    }
}

#[track_caller]
fn accepted(change: impl FnOnce(&mut Settings)) {
    let mut settings = everything(34);
    change(&mut settings);
    desired_add_ons(&settings).expect("the settings go together");
}

#[test]
fn no_text_leaves_its_argument_or_its_line() {
    for bad in ["", "a b", "a\nb", "a\"b", "a=b"] {
        let cloud = |settings: &mut Settings| settings.cloud.take().unwrap();
        let balancing = |settings: &mut Settings| settings.cloud_controller.take().unwrap();
        let text = || bad.to_owned();
        refused(|it| it.cluster = text(), "cluster");
        refused(
            |it| it.cloud = Some(Cloud { auth_url: format!("https://a{bad} "), ..cloud(it) }),
            "cloud.auth_url",
        );
        refused(|it| it.cloud = Some(Cloud { region: text(), ..cloud(it) }), "cloud.region");
        refused(
            |it| {
                let mut changed = cloud(it);
                changed.credential.id = text();
                it.cloud = Some(changed);
            },
            "cloud.credential.id",
        );
        refused(
            |it| {
                let floating_network = Some(text());
                it.cloud_controller = Some(LoadBalancing { floating_network, ..balancing(it) });
            },
            "cloud_controller",
        );
        refused(
            |it| {
                it.cloud_controller = Some(LoadBalancing { subnet: Some(text()), ..balancing(it) });
            },
            "cloud_controller",
        );
    }
    for url in ["http://a", "https://[fd00::1]:5000/v3"] {
        accepted(|it| it.cloud.as_mut().unwrap().auth_url = url.to_owned());
    }
    refused(|it| it.cloud.as_mut().unwrap().auth_url = "ftp://a".to_owned(), "cloud.auth_url");
    refused(|it| it.images.mirror = Some(String::new()), "images.mirror");
}

#[test]
fn a_storage_class_has_a_name_that_kubernetes_accepts() {
    let name = |settings: &mut Settings, name: &str| {
        settings.volumes.as_mut().unwrap().classes[0].name = name.to_owned();
    };
    for good in ["a", "0", "a-b.c", &"x".repeat(253)] {
        accepted(|it| name(it, good));
    }
    for bad in ["", "-a", "a-", ".a", "a.", "a_b", "A", &"x".repeat(254)] {
        refused(|it| name(it, bad), "volumes.classes.name");
    }
    let kind = |settings: &mut Settings, kind: &str| {
        settings.volumes.as_mut().unwrap().classes[0].volume_type = Some(kind.to_owned());
    };
    accepted(|it| kind(it, "NVMe: \"fast\""));
    refused(|it| kind(it, "a\nb"), "volumes.classes.volume_type");
}

#[test]
fn metrics_server_runs_from_1_21_on() {
    let mut settings = everything(21);
    settings.metrics = Some(KubeletCertificates::Signed);
    assert!(desired_add_ons(&settings).is_ok());
    settings.kubernetes.minor = 20;
    assert!(desired_add_ons(&settings).is_err());
    settings.metrics = None;
    assert!(desired_add_ons(&settings).is_ok());
}

fn arguments(add_ons: &[AddOn], workload: &str, container: &str) -> Vec<String> {
    let documents = add_ons.iter().flat_map(|it| &it.documents);
    let mut named = documents.filter(|it| it.reference().name == workload);
    let found = named.find(|it| it.as_value()["spec"]["template"].is_object());
    let pod = &found.expect("there is that workload").as_value()["spec"]["template"]["spec"];
    let containers = pod["containers"].as_array().expect("it has containers");
    let found = containers.iter().find(|it| it["name"] == container);
    let arguments = found.expect("it has that container")["args"].clone();
    serde_json::from_value(arguments).expect("arguments are texts")
}

#[test]
fn the_driver_of_a_node_serves_the_controller_only_if_it_calls_the_cloud() {
    for minor in minors() {
        let add_ons = desired_add_ons(&everything(minor)).unwrap();
        let driver = |workload| arguments(&add_ons, workload, "cinder-csi-plugin");
        let (node, controller) =
            (driver("csi-cinder-nodeplugin"), driver("csi-cinder-controllerplugin"));
        let has = |arguments: &[String], one: &str| arguments.iter().any(|it| it == one);
        assert_eq!(has(&node, "--provide-controller-service=false"), minor >= 32, "1.{minor}");
        assert!(!has(&controller, "--provide-controller-service=false"));
        for arguments in [&node, &controller] {
            assert_eq!(has(arguments, "--nodeid=$(NODE_ID)"), minor <= 21, "1.{minor}");
        }
    }
}

#[test]
fn metrics_server_verifies_the_certificates_that_the_cluster_signs() {
    let trust = |kubelets| {
        let mut settings = everything(34);
        settings.metrics = Some(kubelets);
        arguments(&desired_add_ons(&settings).unwrap(), "metrics-server", "metrics-server").pop()
    };
    assert_eq!(trust(KubeletCertificates::SelfSigned).unwrap(), "--kubelet-insecure-tls");
    let signed = trust(KubeletCertificates::Signed).unwrap();
    assert!(signed.starts_with("--kubelet-certificate-authority="), "{signed}");
}

#[test]
fn the_network_of_pods_has_the_clusters_range() {
    let mut settings = everything(34);
    let network = |settings| {
        let add_ons = desired_add_ons(&settings).unwrap();
        let documents = &named(&add_ons, "flannel").documents;
        let map = documents.iter().find(|it| it.reference().kind == "ConfigMap").unwrap();
        let text = map.as_value()["data"]["net-conf.json"].as_str().unwrap();
        serde_json::from_str::<serde_json::Value>(text).unwrap()
    };
    assert_eq!(network(settings.clone())["Network"], "10.100.0.0/16");
    settings.pods = "fd00:1::/56".parse().unwrap();
    let six = network(settings);
    assert_eq!((&six["IPv6Network"], &six["EnableIPv4"]), (&"fd00:1::/56".into(), &false.into()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn every_combination_of_settings_makes_consistent_documents(
        minor in 20u16..=34,
        (network, controller, volumes, snapshots, nvidia, amd) in any::<(bool, bool, bool, bool, bool, bool)>(),
        metrics in proptest::option::of(any::<bool>()),
        ovn in any::<bool>(),
    ) {
        let mut settings = everything(minor);
        if !network { settings.network = None; }
        if !controller { settings.cloud_controller = None; }
        if !volumes { settings.volumes = None; }
        if let Some(volumes) = &mut settings.volumes { volumes.snapshots = snapshots; }
        if let (true, Some(balancing)) = (ovn, &mut settings.cloud_controller) { balancing.provider = Some(Provider::Ovn); }
        if !controller && !volumes { settings.cloud = None; }
        if !nvidia { settings.gpus.remove(&GpuVendor::Nvidia); }
        if !amd { settings.gpus.remove(&GpuVendor::Amd); }
        let metrics = metrics.filter(|_| minor > 20);
        settings.metrics = metrics.map(|signed| if signed { KubeletCertificates::Signed } else { KubeletCertificates::SelfSigned });
        let add_ons = desired_add_ons(&settings).unwrap();
        let count = [network, controller, volumes, nvidia, amd, metrics.is_some()];
        prop_assert_eq!(add_ons.len(), count.into_iter().filter(|it| *it).count());
        prop_assert_eq!(structure::problems(&add_ons), Vec::<String>::new());
        prop_assert_eq!(&add_ons, &desired_add_ons(&settings).unwrap());
    }
}
