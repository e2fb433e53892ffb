//! Makes configs from settings and checks their content.

mod authorities;
mod backups;
mod example;
mod renewal;
mod settings;
mod systemd;
mod volume_script;
mod volumes;

use std::collections::BTreeMap;

use cluster_bootstrap::{
    Approval, BootstrapError, Claim, ClusterSettings, Name, NodeConfig, Proxies, SettingsError,
    Worker, control_plane, inline, joining_control_plane, reporting, stub, upgrading_control_plane,
    worker,
};
use expect_test::{Expect, expect};
use ignition::Document;
use serde_json::Value;

use example::{SECRET, cluster, machine, some_worker};

fn member(cluster: &ClusterSettings, name: &str) -> NodeConfig {
    control_plane(cluster, &Name::try_from(name).expect("the example is valid"))
        .expect("the example is valid")
}

/// The text of a file in a config, which holds the text percent-encoded or compressed.
fn file(node: &NodeConfig, path: &str) -> Option<String> {
    let files = node.config.storage.as_ref()?.files.as_ref()?;
    let contents = files.iter().find(|file| file.path == path)?.contents.as_ref()?;
    let source = contents.source.as_ref()?.strip_prefix("data:")?;
    Some(match source.strip_prefix(";base64,") {
        Some(packed) => unpacked(packed),
        None => percent_encoding::percent_decode_str(source.trim_start_matches(','))
            .decode_utf8()
            .expect("the example is valid")
            .into_owned(),
    })
}

fn unpacked(base64_text: &str) -> String {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(base64_text)
        .expect("the example is valid");
    std::io::read_to_string(flate2::read::GzDecoder::new(&bytes[..])).expect("the example is valid")
}

/// A document of a kubeadm configuration file, by kind.
fn document(node: &NodeConfig, path: &str, kind: &str) -> Value {
    let text = file(node, path).unwrap_or_else(|| panic!("{node:?} has no {path}"));
    let documents = text
        .split("---\n")
        .map(|it| serde_json::from_str::<Value>(it).expect("the example is valid"));
    documents
        .into_iter()
        .find(|it| it["kind"] == kind)
        .unwrap_or_else(|| panic!("no {kind} in {path}"))
}

fn units(node: &NodeConfig) -> Vec<&str> {
    let units = node.config.systemd.as_ref().and_then(|it| it.units.as_ref());
    units.into_iter().flatten().map(|it| it.name.as_str()).collect()
}

#[track_caller]
fn unit(node: &NodeConfig, name: &str, want: Expect) {
    let units = node.config.systemd.as_ref().and_then(|it| it.units.as_ref());
    let unit =
        units.into_iter().flatten().find(|it| it.name == name).expect("there is such a unit");
    want.assert_eq(unit.contents.as_deref().expect("the unit has contents"));
}

#[test]
fn every_member_knows_all_etcd_members_and_the_uploaded_configuration_names_none() {
    let cluster = cluster("v1.30.1");
    for name in ["cp-1", "cp-2", "cp-3"] {
        let node = member(&cluster, name);
        let etcd = document(&node, "/etc/bedplate/init-etcd.yaml", "ClusterConfiguration");
        assert_eq!(
            etcd["etcd"]["local"]["extraArgs"]["initial-cluster"],
            "cp-1=https://10.0.0.11:2380,cp-2=https://10.0.0.12:2380,cp-3=https://10.0.0.13:2380"
        );
        let uploaded = document(&node, "/etc/bedplate/init.yaml", "ClusterConfiguration");
        assert_eq!(uploaded["etcd"]["local"].get("extraArgs"), None);
    }
}

#[test]
fn only_the_first_member_runs_the_steps_that_a_cluster_needs_once() {
    let cluster = cluster("v1.30.1");
    let once = |name: &str| units(&member(&cluster, name)).contains(&"bedplate-once.service");
    assert_eq!(["cp-1", "cp-2", "cp-3"].map(once), [true, false, false]);
}

#[test]
fn a_control_plane_is_made_by_phases() {
    let node = member(&cluster("v1.30.1"), "cp-1");
    unit(
        &node,
        "bedplate-control-plane.service",
        expect![[r#"
            [Unit]
            Description=Control plane of blue
            ConditionPathExists=!/var/lib/bedplate/done/control-plane
            After=network-online.target containerd.service bedplate-unpack.service
            Wants=network-online.target containerd.service bedplate-unpack.service
            StartLimitIntervalSec=0

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            Environment=KUBECONFIG=/etc/kubernetes/admin.conf PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
            ExecStart=/usr/local/bin/kubeadm init phase certs all --config=/etc/bedplate/init.yaml
            ExecStart=/usr/local/bin/kubeadm init phase kubeconfig all --config=/etc/bedplate/init.yaml
            ExecStart=/usr/local/bin/kubeadm init phase etcd local --config=/etc/bedplate/init-etcd.yaml
            ExecStart=/usr/local/bin/kubeadm init phase control-plane all --config=/etc/bedplate/init.yaml
            ExecStart=/usr/local/bin/kubeadm init phase kubelet-start --config=/etc/bedplate/init.yaml
            ExecStart=/usr/bin/mkdir -p /var/lib/bedplate/done
            ExecStart=/usr/bin/touch /var/lib/bedplate/done/control-plane
            Restart=on-failure
            RestartMode=direct
            RestartSec=2
            TimeoutStartSec=20min

            [Install]
            WantedBy=multi-user.target
        "#]],
    );
}

#[test]
fn the_token_alone_makes_no_node_if_approval_is_elsewhere() {
    let mut cluster = cluster("v1.30.1");
    let commands = |cluster: &ClusterSettings| {
        let node = member(cluster, "cp-1");
        let units = node.config.systemd.and_then(|it| it.units).unwrap_or_default();
        let once = units.into_iter().find(|it| it.name == "bedplate-once.service");
        let text = once.and_then(|it| it.contents).expect("there is such a unit");
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("ExecStart=")).collect();
        lines.join("\n")
    };
    expect![[r#"
        ExecStart=/usr/local/bin/kubectl get --raw=/readyz --request-timeout=5s
        ExecStart=/usr/local/bin/kubeadm init phase upload-config all --config=/etc/bedplate/init.yaml
        ExecStart=/usr/local/bin/kubeadm init phase bootstrap-token --config=/etc/bedplate/init.yaml
        ExecStart=/usr/local/bin/kubectl delete clusterrolebinding --ignore-not-found kubeadm:node-autoapprove-bootstrap
        ExecStart=/usr/local/bin/kubeadm init phase addon kube-proxy --config=/etc/bedplate/init.yaml
        ExecStart=/usr/local/bin/kubeadm init phase addon coredns --config=/etc/bedplate/init.yaml
        ExecStart=/usr/local/bin/kubectl apply -f /etc/bedplate/pod-routes-access.json
        ExecStart=/usr/bin/mkdir -p /var/lib/bedplate/done
        ExecStart=/usr/bin/touch /var/lib/bedplate/done/once"#]]
    .assert_eq(&commands(&cluster));
    cluster.approval = Approval::Automatic;
    assert!(!commands(&cluster).contains("delete"));
}

#[test]
fn overrides_become_arguments_of_the_components() {
    let mut cluster = cluster("v1.31.0");
    let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    cluster.endpoint.port = 8443;
    cluster.overrides.scheduler = one("v", "2");
    cluster.overrides.kubelet_arguments = one("node-ip", "::");
    let node = member(&cluster, "cp-1");
    let reported = document(&node, "/etc/bedplate/init.yaml", "ClusterConfiguration");
    assert_eq!(reported["scheduler"]["extraArgs"][0]["value"], "2");
    let reported = document(&node, "/etc/bedplate/init.yaml", "InitConfiguration");
    assert_eq!(reported["localAPIEndpoint"]["bindPort"], 8443);
    let kubelet = &reported["nodeRegistration"]["kubeletExtraArgs"];
    let want = r#"[{"name":"cloud-provider","value":"external"},{"name":"node-ip","value":"::"}]"#;
    assert_eq!(kubelet.to_string(), want);
}

#[test]
fn a_worker_joins_by_token_and_pinned_authority_and_holds_no_key() {
    let cluster = cluster("v1.30.1");
    let node = worker(&cluster, &some_worker()).unwrap();
    let join = document(&node, "/etc/bedplate/join.yaml", "JoinConfiguration");
    let token = &join["discovery"]["bootstrapToken"];
    assert_eq!(token["apiServerEndpoint"], "api.blue.example:6443");
    assert_eq!(token["caCertHashes"][0], format!("sha256:{}", "0b".repeat(32)));
    assert_eq!(join["nodeRegistration"]["taints"][0]["key"], "gpu");
    assert_eq!(join["nodeRegistration"]["kubeletExtraArgs"]["node-labels"], "example.org/gpu=yes");
    for path in
        ["/etc/kubernetes/pki/ca.key", "/etc/kubernetes/pki/sa.key", "/etc/bedplate/init.yaml"]
    {
        assert_eq!(file(&node, path), None);
    }
    assert_eq!(
        file(&member(&cluster, "cp-2"), "/etc/kubernetes/pki/etcd/ca.key").unwrap(),
        format!("KEY etcd {SECRET}\n")
    );
}

#[test]
fn a_later_control_plane_member_joins_the_existing_control_plane() {
    let cluster = cluster("v1.31.0");
    let node = joining_control_plane(&cluster, &machine("cp-4", "10.0.0.14")).unwrap();
    let join = document(&node, "/etc/bedplate/join.yaml", "JoinConfiguration");
    assert_eq!(join["controlPlane"]["localAPIEndpoint"]["advertiseAddress"], "10.0.0.14");
    assert!(file(&node, "/etc/kubernetes/pki/ca.key").is_some());
    assert_eq!(file(&node, "/etc/bedplate/init-etcd.yaml"), None);
    // The certificate has today's names, not the names that were uploaded when the cluster was created.
    let reported = document(&node, "/etc/bedplate/certificates.yaml", "ClusterConfiguration");
    assert_eq!(reported["apiServer"]["certSANs"].to_string(), r#"["api.blue.example","10.0.0.5"]"#);
    let reported = document(&node, "/etc/bedplate/certificates.yaml", "InitConfiguration");
    assert_eq!(reported["localAPIEndpoint"]["advertiseAddress"], "10.0.0.14");
    let all = node.config.systemd.as_ref().and_then(|it| it.units.as_ref());
    let joins = all.into_iter().flatten().find(|it| it.name == "bedplate-join.service");
    let text = joins.and_then(|it| it.contents.clone()).unwrap();
    let commands: Vec<_> = text.lines().filter_map(|it| it.strip_prefix("ExecStart=")).collect();
    expect![[r#"
        /usr/local/bin/kubeadm init phase certs apiserver --config=/etc/bedplate/certificates.yaml
        /usr/local/bin/kubeadm init phase kubeconfig admin --config=/etc/bedplate/certificates.yaml
        /usr/local/bin/kubeadm init phase kubeconfig super-admin --config=/etc/bedplate/certificates.yaml
        /usr/local/bin/kubectl get --raw=/readyz --request-timeout=5s
        /usr/local/bin/kubeadm init phase upload-config all --config=/etc/bedplate/upload.yaml
        /usr/bin/rm -f /etc/kubernetes/super-admin.conf
        /usr/local/bin/kubeadm join phase control-plane-prepare all --config=/etc/bedplate/join.yaml
        /usr/local/bin/kubeadm join phase kubelet-start --config=/etc/bedplate/join.yaml"#]]
    .assert_eq(&commands.join("\n"));
    assert!(!units(&node).contains(&"bedplate-once.service"));
}

#[test]
fn a_member_that_joins_the_control_plane_uploads_the_configuration_of_its_version() {
    let mut cluster = cluster("v1.28.0");
    cluster.control_plane.push(machine("cp-4", "10.0.0.14"));
    let node = joining_control_plane(&cluster, &machine("cp-4", "10.0.0.14")).unwrap();
    let uploaded = |kind: &str| document(&node, "/etc/bedplate/upload.yaml", kind);
    assert_eq!(uploaded("ClusterConfiguration")["kubernetesVersion"], "v1.28.0");
    assert_eq!(uploaded("KubeletConfiguration")["rotateCertificates"], true);
    // kubeadm changes the Kubernetes node that the configuration names, so it has to exist.
    let named = uploaded("InitConfiguration");
    assert_eq!(named["nodeRegistration"]["name"], "cp-1");
    assert_eq!(named["localAPIEndpoint"]["advertiseAddress"], "10.0.0.11");
    let all = node.config.systemd.as_ref().and_then(|it| it.units.as_ref());
    let joins = all.into_iter().flatten().find(|it| it.name == "bedplate-join.service");
    let text = joins.and_then(|it| it.contents.clone()).unwrap();
    assert!(!text.contains("super-admin"), "kubeadm has it since 1.29");
    assert!(worker(&cluster, &some_worker()).is_ok(), "a worker joins during an upgrade, too");
    assert!(matches!(
        control_plane(&cluster, &Name::try_from("cp-4").unwrap()),
        Err(BootstrapError::Settings(SettingsError::ControlPlaneCount { count: 4 }))
    ));
}

#[test]
fn the_add_ons_are_upgraded_by_members_of_a_new_version_alone() {
    let cluster = cluster("v1.31.0");
    let own = machine("cp-4", "10.0.0.14");
    let joins = joining_control_plane(&cluster, &own).unwrap();
    assert!(!units(&joins).contains(&"bedplate-add-ons.service"));
    let node = upgrading_control_plane(&cluster, &own).unwrap();
    let script = file(&node, "/etc/bedplate/add-ons").unwrap();
    assert!(script.contains("kubeadm init phase addon"), "{script}");
    unit(
        &node,
        "bedplate-add-ons.service",
        expect![[r#"
            [Unit]
            Description=Upgrade the add-ons of blue to v1.31.0
            ConditionPathExists=!/var/lib/bedplate/done/add-ons
            After=network-online.target bedplate-control-plane.service
            Wants=network-online.target bedplate-control-plane.service
            StartLimitIntervalSec=0

            [Service]
            Type=oneshot
            RemainAfterExit=yes
            Environment=KUBECONFIG=/etc/kubernetes/admin.conf PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
            ExecStart=/bin/bash /etc/bedplate/add-ons v1.31.0 kube-proxy coredns
            ExecStart=/usr/bin/mkdir -p /var/lib/bedplate/done
            ExecStart=/usr/bin/touch /var/lib/bedplate/done/add-ons
            Restart=on-failure
            RestartMode=direct
            RestartSec=2
            TimeoutStartSec=20min

            [Install]
            WantedBy=multi-user.target
        "#]],
    );
}

#[test]
fn the_disk_request_of_etcd_is_patched_away_in_1_20() {
    let joins = |version: &str| {
        let node = joining_control_plane(&cluster(version), &machine("cp-4", "10.0.0.14")).unwrap();
        let all = node.config.systemd.as_ref().and_then(|it| it.units.as_ref());
        let joins =
            all.into_iter().flatten().find(|it| it.name == "bedplate-control-plane.service");
        let text = joins.and_then(|it| it.contents.clone()).unwrap();
        (
            text.contains("control-plane-join all"),
            file(&node, "/etc/bedplate/patches/etcd.json"),
            text,
        )
    };
    let (joins_at_once, patch, text) = joins("v1.20.2");
    let patch: Value = serde_json::from_str(&patch.unwrap()).unwrap();
    let requests = &patch["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(requests.to_string(), r#"{"ephemeral-storage":null}"#);
    assert!(!joins_at_once && text.contains("etcd --config=/etc/bedplate/join.yaml --experimental-patches=/etc/bedplate/patches\n"));
    let (joins_at_once, patch, _) = joins("v1.21.0");
    assert_eq!((joins_at_once, patch), (true, None));
}

#[test]
fn a_member_joins_etcd_in_the_order_of_its_kubeadm() {
    let command = |version: &str| {
        let node = joining_control_plane(&cluster(version), &machine("cp-4", "10.0.0.14")).unwrap();
        let all = node.config.systemd.as_ref().and_then(|it| it.units.as_ref());
        let joins =
            all.into_iter().flatten().find(|it| it.name == "bedplate-control-plane.service");
        let text = joins.and_then(|it| it.contents.clone()).unwrap();
        let mut commands = text.lines().filter_map(|it| it.strip_prefix("ExecStart="));
        commands.find(|it| it.contains("kubeadm join")).unwrap().to_owned()
    };
    let phase =
        "/usr/local/bin/kubeadm join phase control-plane-join all --config=/etc/bedplate/join.yaml";
    assert_eq!(command("v1.32.9"), phase);
    let rest = "/usr/local/bin/kubeadm join --config=/etc/bedplate/join.yaml \
                --skip-phases=preflight,control-plane-prepare,kubelet-start";
    for version in ["v1.33.0", "v1.37.0"] {
        assert_eq!(command(version), rest, "{version}");
    }
}

#[test]
fn etcd_of_the_first_members_asks_for_no_disk_either() {
    let begins = |version: &str| {
        let cluster = cluster(version);
        let node = control_plane(&cluster, &cluster.control_plane[0].name).unwrap();
        let all = node.config.systemd.as_ref().and_then(|it| it.units.as_ref());
        let unit = all.into_iter().flatten().find(|it| it.name == "bedplate-control-plane.service");
        (
            unit.and_then(|it| it.contents.clone()).unwrap(),
            file(&node, "/etc/bedplate/patches/etcd.json"),
        )
    };
    let (text, patch) = begins("v1.20.2");
    assert!(patch.unwrap().contains("ephemeral-storage"));
    assert!(text.contains("phase etcd local --config=/etc/bedplate/init-etcd.yaml --experimental-patches=/etc/bedplate/patches\n"));
    let (text, patch) = begins("v1.21.0");
    assert!(text.contains("phase etcd local --config=/etc/bedplate/init-etcd.yaml\n"));
    assert_eq!(patch, None);
}

#[test]
fn arguments_are_a_list_from_v1beta4() {
    let node = worker(&cluster("v1.31.0"), &some_worker()).unwrap();
    let join = document(&node, "/etc/bedplate/join.yaml", "JoinConfiguration");
    assert_eq!(join["apiVersion"], "kubeadm.k8s.io/v1beta4");
    let arguments = join["nodeRegistration"]["kubeletExtraArgs"].as_array().unwrap();
    assert_eq!(arguments[0], serde_json::json!({"name": "node-ip", "value": "10.0.0.21"}));
    let init = document(
        &member(&cluster("v1.20.2"), "cp-1"),
        "/etc/bedplate/init.yaml",
        "InitConfiguration",
    );
    assert_eq!(init["apiVersion"], "kubeadm.k8s.io/v1beta2");
}

#[test]
fn old_kubelets_get_the_name_of_the_image_to_keep() {
    let reported = |version: &str| {
        let node = worker(&cluster(version), &some_worker()).unwrap();
        let join = document(&node, "/etc/bedplate/join.yaml", "JoinConfiguration");
        join["nodeRegistration"]["kubeletExtraArgs"]["pod-infra-container-image"].clone()
    };
    assert_eq!(reported("v1.20.2"), "registry.k8s.io/pause:3.2");
    assert_eq!(reported("v1.28.0"), "registry.k8s.io/pause:3.9");
    assert_eq!(reported("v1.29.0"), serde_json::Value::Null);
}

#[test]
fn nothing_secret_is_printed() {
    let cluster = cluster("v1.30.1");
    let node = member(&cluster, "cp-1");
    let user_data = inline(&node).unwrap();
    let claim = Claim {
        url: "https://clusterd.example/ignition".parse().unwrap(),
        token: SECRET.to_owned().into(),
        authority: "CERTIFICATE\n".to_owned(),
    };
    let printed = format!("{cluster:?} {node:?} {user_data:?} {claim:?} {:?}", stub(&claim));
    for secret in [SECRET, "0123456789abcdef"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn a_stub_is_small_and_has_the_url_and_the_authority_of_clusterd() {
    let claim = Claim {
        url: "https://clusterd.example:9513/ignition".parse().unwrap(),
        token: "one-time".to_owned().into(),
        authority: "CERTIFICATE\n".to_owned(),
    };
    let stub = stub(&claim).unwrap();
    assert!(stub.text().len() < 1024);
    expect![[r#"
        {
          "ignition": {
            "config": {
              "replace": {
                "httpHeaders": [
                  {
                    "name": "Authorization",
                    "value": "Bearer one-time"
                  }
                ],
                "source": "https://clusterd.example:9513/ignition"
              }
            },
            "security": {
              "tls": {
                "certificateAuthorities": [
                  {
                    "compression": "",
                    "source": "data:,CERTIFICATE%0A"
                  }
                ]
              }
            },
            "version": "3.3.0"
          }
        }"#]]
    .assert_eq(&format!("{:#}", serde_json::from_str::<Value>(stub.text()).unwrap()));
}

#[test]
fn the_extra_config_is_merged_last_and_checked() {
    let mut cluster = cluster("v1.30.1");
    let extra = r#"{"ignition":{"version":"3.3.0"},
        "passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 AAAA"]}]},
        "storage":{"files":[{"path":"/etc/hostname","mode":384}]}}"#;
    cluster.extra = Document::parse(extra, ignition::Limits::default()).unwrap().config();
    let node = member(&cluster, "cp-1");
    assert_eq!(file(&node, "/etc/hostname").unwrap(), "cp-1\n");
    assert_eq!(node.config.passwd.as_ref().unwrap().users.as_ref().unwrap()[0].name, "core");

    let clash = r#"{"ignition":{"version":"3.3.0"},"storage":{"links":[{"path":"/etc/bedplate","target":"/tmp"}]}}"#;
    cluster.extra = Document::parse(clash, ignition::Limits::default()).unwrap().config();
    let refused = control_plane(&cluster, &Name::try_from("cp-1").unwrap()).unwrap_err();
    assert!(matches!(refused, BootstrapError::Invalid { .. }), "{refused}");
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let refused = |change: &dyn Fn(&mut ClusterSettings)| {
        let mut cluster = cluster("v1.30.1");
        change(&mut cluster);
        cluster.check().unwrap_err().to_string()
    };
    let range = |raw: &str| raw.parse().unwrap();
    let said = [
        refused(&|it| it.control_plane.truncate(2)),
        refused(&|it| it.control_plane[1].name = Name::try_from("cp-1").unwrap()),
        refused(&|it| it.control_plane[1].address = "10.0.0.11".parse().unwrap()),
        refused(&|it| it.services = range("10.244.0.0/24")),
        refused(&|it| it.pods = range("10.0.0.0/16")),
        refused(&|it| it.pods = range("10.244.0.0/23")),
        refused(&|it| it.pods = range("10.244.1.0/16")),
        refused(&|it| it.endpoint.host = "api example".to_owned()),
    ];
    expect![[r#"
        a control plane cannot have 2 members: choose 1, 3 or 5
        two control-plane members have the same name or address: cp-1
        two control-plane members have the same name or address: 10.0.0.11
        10.244.0.0/16 and 10.244.0.0/24 overlap
        10.0.0.0/16 and 10.0.0.11 overlap
        10.244.0.0/23 is too small for pods: choose a prefix of at most 22 bits
        10.244.1.0/16 does not start with the first address of the range: write 10.244.0.0/16
        endpoint.host is `api example`: only letters, digits and -._:/* are permitted"#]]
    .assert_eq(&said.join("\n"));
}

#[test]
fn a_worker_label_with_a_prefix_of_kubernetes_is_refused() {
    let refused = |key: &str, value: &str| {
        let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        Worker { labels, ..some_worker() }
            .check()
            .is_err_and(|it| matches!(it, SettingsError::Label { .. }))
    };
    for (key, value) in [
        ("node-role.kubernetes.io/master", ""),
        ("kubernetes.io/hostname", "a"),
        ("a,b=c", "d"),
        ("a", "b,c=d"),
        ("a", &"x".repeat(64)),
        ("", "a"),
    ] {
        assert!(refused(key, value), "{key}={value}");
    }
    for (key, value) in [("node.kubernetes.io/pool", "a"), ("example.org/a", ""), ("a", "b_c-d.e")]
    {
        assert!(!refused(key, value), "{key}={value}");
    }
}

#[test]
fn proxies_are_known_to_ignition_and_to_every_unit() {
    let proxy = |raw: &str| Some(raw.parse().expect("a URL"));
    let proxies = |http, except: &str| Proxies {
        http,
        https: None,
        except: vec!["10.0.0.0/8".to_owned(), except.to_owned()],
    };
    let mut cluster = cluster("v1.30.1");
    cluster.extra = proxies(proxy("http://u:p%21@proxy:3128"), ".svc").config().unwrap();
    let node = member(&cluster, "cp-1");
    let reported = ignition::json(&node.config);
    assert!(reported.contains(r#""noProxy":["10.0.0.0/8",".svc"]"#), "{reported}");
    expect![[r#"
        [Manager]
        DefaultEnvironment="HTTP_PROXY=http://u:p%%21@proxy:3128/" "http_proxy=http://u:p%%21@proxy:3128/" "NO_PROXY=10.0.0.0/8,.svc" "no_proxy=10.0.0.0/8,.svc"
    "#]]
    .assert_eq(&file(&node, "/etc/systemd/system.conf.d/10-proxy.conf").unwrap());
    for bad in ["a b", "\"", "a\nExecStart=/bin/x", ""] {
        let refused = proxies(proxy("http://proxy:3128"), bad).config();
        assert!(matches!(refused, Err(SettingsError::Text { field: "no_proxy", .. })), "{bad:?}");
    }
    assert_eq!(proxies(None, ".svc").config(), Ok(None));
}

#[test]
fn each_step_is_reported_and_no_report_fails_a_step() {
    let cluster = cluster("v1.30.1");
    let plain = member(&cluster, "cp-1");
    let node = reporting(&plain, &example::reports());
    let units = node.config.systemd.as_ref().and_then(|it| it.units.as_ref()).unwrap();
    let dropin = |name: &str| {
        let unit = units.iter().find(|it| it.name == name)?;
        let dropin = unit.dropins.iter().flatten().find(|it| it.name == "50-report.conf")?;
        dropin.contents.clone()
    };
    expect![[r#"
        [Service]
        ExecStartPost=-/usr/bin/curl --config /etc/bedplate/report.curl --data step=once --data result=success
        ExecStopPost=-/usr/bin/curl --config /etc/bedplate/report.curl --data step=once --data result=${SERVICE_RESULT} --data status=${EXIT_STATUS}
    "#]]
    .assert_eq(&dropin("bedplate-once.service").unwrap());
    for step in ["unpack", "control-plane", "mark"] {
        assert!(dropin(&format!("bedplate-{step}.service")).is_some(), "{step}");
    }
    assert_eq!(dropin("kubelet.service"), None);
    assert_eq!(dropin("bedplate-pod-routes.service"), None);
    // Reporting adds drop-ins and leaves the units unchanged.
    for (before, after) in plain.config.systemd.unwrap().units.unwrap().iter().zip(units) {
        assert_eq!((&before.name, &before.contents), (&after.name, &after.contents));
    }
    expect![[r#"
        # Read by curl --config, so that the token does not appear in the list of processes.
        url = "https://clusterd.example:9512/v1/reports"
        header = "Authorization: Bearer c2VjcmV0"
        data = "claim=claim-1"
        cacert = "/etc/bedplate/report-authority.pem"
        noproxy = "*"
        silent
        show-error
        fail
        connect-timeout = 3
        max-time = 5
    "#]]
    .assert_eq(&file(&node, "/etc/bedplate/report.curl").unwrap());
    expect![[r#"
        # Read by curl --config, so that the token does not appear in the list of processes.
        url = "https://clusterd.example:9512/v1/authorities/claim-1"
        get
        header = "Authorization: Bearer c2VjcmV0"
        cacert = "/etc/bedplate/report-authority.pem"
        noproxy = "*"
        silent
        show-error
        connect-timeout = 5
        max-time = 30
    "#]]
    .assert_eq(&file(&node, "/etc/bedplate/authorities.curl").unwrap());
    expect![[r#"
        # Read by curl --config, so that the token does not appear in the list of processes.
        url = "https://clusterd.example:9512/v1/certificates/claim-1"
        header = "Content-Type: text/plain"
        header = "Authorization: Bearer c2VjcmV0"
        cacert = "/etc/bedplate/report-authority.pem"
        noproxy = "*"
        silent
        show-error
        connect-timeout = 5
        max-time = 30
    "#]]
    .assert_eq(&file(&node, "/etc/bedplate/certificates.curl").unwrap());
    assert_eq!(file(&node, "/var/lib/bedplate/authorities/revision").unwrap(), "4\n");
    assert_eq!(ignition::check(&node.config), []);
    assert!(!format!("{:?}", example::reports()).contains(SECRET));
}

#[test]
fn a_member_updates_its_operating_system_only_with_permission() {
    let plain = member(&cluster("v1.30.1"), "cp-1");
    const ZINCATI: &str = "/etc/zincati/config.d/90-bedplate.toml";
    let node = reporting(&plain, &example::reports());
    assert_eq!(file(&node, ZINCATI).unwrap(), "[updates]\nenabled = false\n");
    let url = "https://claim-1:c2VjcmV0@clusterd.example:9512/v1/fleet-lock/".parse().unwrap();
    let reports = cluster_bootstrap::Reports { reboots: Some(url), ..example::reports() };
    let node = reporting(&plain, &reports);
    expect![[r#"
        [updates]
        enabled = true
        strategy = "fleet_lock"

        [updates.fleet_lock]
        base_url = "https://claim-1:c2VjcmV0@clusterd.example:9512/v1/fleet-lock/"
    "#]]
    .assert_eq(&file(&node, ZINCATI).unwrap());
    let trusted = "/etc/pki/ca-trust/source/anchors/bedplate-clusterd.pem";
    assert_eq!(file(&node, trusted).unwrap(), "CERTIFICATE\n");
    assert_eq!(ignition::check(&node.config), []);
    assert!(!format!("{reports:?}").contains(SECRET));
}
