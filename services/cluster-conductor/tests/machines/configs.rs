//! Configs of members.

use serde_json::Value;

use crate::given::{ClusterFixture, OLDER, OLDER_ARCHIVE, address, file, machine, pass};

fn document(config: &Value, path: &str, kind: &str) -> Value {
    let text = file(config, path).unwrap_or_else(|| panic!("there is no {path}"));
    let documents = text.split("---\n").map(|it| serde_json::from_str::<Value>(it).unwrap());
    documents.into_iter().find(|it| it["kind"] == kind).unwrap()
}

const INLINE: (&str, &str) = ("user_data_delivery", "inline");

async fn inline(given: &ClusterFixture, name: &str) -> Value {
    let given = serde_json::from_str(given.user_data(name).await.unwrap().text()).unwrap();
    let packed: &Value = &given;
    match packed["ignition"]["config"]["replace"]["source"].as_str() {
        None => given,
        Some(source) => {
            use base64::Engine;
            let packed = source.strip_prefix("data:;base64,").unwrap();
            let packed = base64::engine::general_purpose::STANDARD.decode(packed).unwrap();
            serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap()
        }
    }
}

#[tokio::test]
async fn the_certificate_of_the_api_has_the_names_of_the_label() {
    let names = [("api_server_cert_sans", "kube.example,192.0.2.7")];
    let given = ClusterFixture::labelled(&names).await;
    let founder = given.config("default-master-0", "10.0.0.10").await;
    let etcd = document(&founder, "/etc/bedplate/init-etcd.yaml", "ClusterConfiguration");
    let want = serde_json::json!(["10.0.0.5", "kube.example", "192.0.2.7"]);
    assert_eq!(etcd["apiServer"]["certSANs"], want);
}

#[tokio::test]
async fn the_owner_may_log_in_with_the_recorded_key_also_with_an_own_config() {
    for labels in [&[][..], &[INLINE]] {
        let mut given = ClusterFixture::labelled(labels).await;
        given.cluster.ssh_key = Some("ssh-ed25519 AAAA laptop".to_owned());
        given.save().await;
        let config = match labels {
            [] => given.config("default-worker-0", "10.0.0.20").await,
            _ => inline(&given, "default-worker-0").await,
        };
        let want =
            serde_json::json!([{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA laptop"]}]);
        assert_eq!(config["passwd"]["users"], want);
        let own = r#"{"ignition": {"version": "3.4.0"}}"#;
        given.conductor.set_own_config(&given.cluster, &given.groups[1], own).await.unwrap();
        let config = match labels {
            [] => given.config("default-worker-1", "10.0.0.21").await,
            _ => inline(&given, "default-worker-1").await,
        };
        assert_eq!(config["passwd"]["users"], want);
        let merged = config["ignition"]["config"]["merge"][0]["source"].as_str().unwrap();
        assert!(merged.starts_with("data:;base64,"), "{merged}");
    }
}

#[tokio::test]
async fn founders_know_each_other_and_all_members_know_the_load_balancer() {
    let given = ClusterFixture::labelled(&[("dns_zone", "k8s.example")]).await;
    let founder = given.config("default-master-1", "10.0.0.11").await;
    let etcd = document(&founder, "/etc/bedplate/init-etcd.yaml", "ClusterConfiguration");
    let arguments = etcd["etcd"]["local"]["extraArgs"].as_array().unwrap().clone();
    let members = arguments.iter().find(|it| it["name"] == "initial-cluster").unwrap();
    let stem = format!("blue-{}", &given.cluster.id.to_string()[..8]);
    let member =
        |number: u8| format!("{stem}-default-master-{number}=https://10.0.0.1{number}:2380");
    assert_eq!(members["value"], [0, 1, 2].map(member).join(","));
    assert_eq!(etcd["controlPlaneEndpoint"], "10.0.0.5:6443");
    assert_eq!(
        etcd["apiServer"]["certSANs"],
        serde_json::json!(["10.0.0.5", "api.blue.k8s.example"])
    );

    let worker = given.config("default-worker-0", "10.0.0.20").await;
    let join = document(&worker, "/etc/bedplate/join.yaml", "JoinConfiguration");
    assert_eq!(join["discovery"]["bootstrapToken"]["apiServerEndpoint"], "10.0.0.5:6443");
    let arguments = join["nodeRegistration"]["kubeletExtraArgs"].as_array().unwrap();
    let labels = arguments.iter().find(|it| it["name"] == "node-labels").unwrap();
    assert_eq!(
        labels["value"],
        "example.org/rack=r1,magnum.openstack.org/nodegroup=default-worker,magnum.openstack.org/role=worker"
    );
    assert_eq!(file(&worker, "/etc/kubernetes/pki/ca.key"), None);
    let init = document(&founder, "/etc/bedplate/init.yaml", "InitConfiguration");
    assert_eq!(init["bootstrapTokens"][0]["token"], join["discovery"]["bootstrapToken"]["token"]);
}

#[tokio::test]
async fn a_replacement_joins_and_a_recreated_founder_founds() {
    let mut given = ClusterFixture::labelled(&[]).await;
    given.user_data("default-worker-0").await.unwrap();
    assert!(given.groups[0].replace_machine(1));
    given.save().await;
    let port = given.seen.objects.remove(&"port/default-master-1".parse().unwrap()).unwrap();
    let port = cluster_core::CloudObject { address: Some([10, 0, 0, 13].into()), ..port };
    given.seen.objects.insert("port/default-master-3".parse().unwrap(), port);

    let joins = given.config("default-master-3", "10.0.0.13").await;
    assert_eq!(file(&joins, "/etc/bedplate/init-etcd.yaml"), None);
    assert!(file(&joins, "/etc/bedplate/join.yaml").is_some());
    let founds = given.config("default-master-2", "10.0.0.12").await;
    let etcd = document(&founds, "/etc/bedplate/init-etcd.yaml", "ClusterConfiguration");
    assert!(etcd.to_string().contains("default-master-1=https://10.0.0.11:2380"), "{etcd}");
}

#[tokio::test]
async fn without_a_load_balancer_the_api_has_a_dns_name_and_all_addresses() {
    let mut given = ClusterFixture::labelled(&[("dns_zone", "k8s.example")]).await;
    let blueprint = &mut given.cluster.blueprint;
    (blueprint.master_lb_enabled, blueprint.floating_ip_enabled) = (false, true);
    let floating = |number: u32| address(&format!("203.0.113.1{number}"));
    let master = |number: u32| machine(&format!("default-master-{number}"));
    given.cluster.machine_addresses = (0..3).map(|it| (master(it), floating(it))).collect();
    given.save().await;
    let reported = |config: &Value, path: &str| {
        let reported = document(config, path, "ClusterConfiguration");
        assert_eq!(reported["controlPlaneEndpoint"], "api.blue.k8s.example:6443");
        reported["apiServer"]["certSANs"].as_array().unwrap().clone()
    };
    let founder = given.config("default-master-1", "10.0.0.11").await;
    assert_eq!(
        reported(&founder, "/etc/bedplate/init.yaml"),
        ["api.blue.k8s.example", "203.0.113.10", "203.0.113.11", "203.0.113.12"]
    );
    let worker = given.config("default-worker-0", "10.0.0.20").await;
    let join = document(&worker, "/etc/bedplate/join.yaml", "JoinConfiguration");
    let endpoint = &join["discovery"]["bootstrapToken"]["apiServerEndpoint"];
    assert_eq!(*endpoint, "api.blue.k8s.example:6443");

    // A replacement has a floating IP that the other members did not know.
    assert!(given.groups[0].replace_machine(1));
    given.cluster.machine_addresses.remove(&master(1));
    given.cluster.machine_addresses.insert(master(3), floating(3));
    given.save().await;
    let port = given.seen.objects.remove(&"port/default-master-1".parse().unwrap()).unwrap();
    let port = cluster_core::CloudObject { address: Some([10, 0, 0, 13].into()), ..port };
    given.seen.objects.insert("port/default-master-3".parse().unwrap(), port);
    let joins = given.config("default-master-3", "10.0.0.13").await;
    let names = reported(&joins, "/etc/bedplate/certificates.yaml");
    assert!(names.contains(&"203.0.113.13".into()), "{names:?}");
}

#[tokio::test]
async fn a_member_mounts_the_volumes_of_its_server() {
    let mut given = ClusterFixture::labelled(&[("etcd_volume_size", "5")]).await;
    given.groups[1].docker_volume_size = Some(20);
    given.save().await;
    let mounts = |config: &Value| -> Vec<String> {
        let units = config["systemd"]["units"].as_array().unwrap().iter();
        let names = units.map(|it| it["name"].as_str().unwrap().to_owned());
        names.filter(|name| name.ends_with(".mount")).collect()
    };
    let master = given.config("default-master-0", "10.0.0.10").await;
    assert_eq!(mounts(&master), ["var-lib-etcd.mount"]);
    let worker = given.config("default-worker-0", "10.0.0.20").await;
    assert_eq!(mounts(&worker), ["var-lib-containerd.mount"]);
}

#[tokio::test]
async fn a_config_waits_for_a_floating_ip_that_it_needs() {
    let labels = [("master_lb_floating_ip_enabled", "true")];
    let mut given = ClusterFixture::labelled(&labels).await;
    let claim = given.claim("default-master-0").await;
    let later = given.redeem(&claim, "10.0.0.10").await;
    assert_eq!(later, cluster_conductor::Answer::Later);
    given.with_floating_address().await;
    let config = given.config("default-master-0", "10.0.0.10").await;
    let reported = document(&config, "/etc/bedplate/init.yaml", "ClusterConfiguration");
    assert_eq!(reported["apiServer"]["certSANs"], serde_json::json!(["10.0.0.5", "203.0.113.9"]));

    let mut given = ClusterFixture::labelled(&[labels[0], INLINE]).await;
    let waits = given.user_data("default-master-0").await.unwrap_err();
    assert_eq!(waits, "the address of balancer-address/api is not known yet");
    given.with_floating_address().await;
    given.user_data("default-master-0").await.unwrap();
}

#[tokio::test]
async fn an_inline_config_is_complete_and_sends_no_reports() {
    let given = ClusterFixture::labelled(&[INLINE]).await;
    let config = inline(&given, "default-master-0").await;
    assert!(file(&config, "/etc/kubernetes/pki/ca.key").is_some());
    assert_eq!(file(&config, "/etc/bedplate/report.curl"), None);
    assert_eq!(given.store.machines_of(given.cluster.id).await.unwrap(), []);
}

#[tokio::test]
async fn labels_reach_the_components_they_name() {
    let given = ClusterFixture::labelled(&[
        INLINE,
        ("kubelet_options", "--max-pods=50"),
        ("kubescheduler_options", "--v=3"),
        (
            "kubeproxy_options",
            "--proxy-mode=ipvs --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=1h",
        ),
        ("admission_control_list", "NodeRestriction,PodNodeSelector"),
        ("container_infra_prefix", "registry.example/k8s"),
        ("cloud_provider_enabled", "false"),
    ])
    .await;
    let config = inline(&given, "default-master-0").await;
    let reported = document(&config, "/etc/bedplate/init.yaml", "ClusterConfiguration");
    assert_eq!(reported["imageRepository"], "registry.example/k8s");
    assert_eq!(reported["scheduler"]["extraArgs"][0]["value"], "3");
    let proxy = document(&config, "/etc/bedplate/init.yaml", "KubeProxyConfiguration");
    assert_eq!(proxy["mode"], "ipvs");
    assert_eq!(
        proxy["conntrack"],
        serde_json::json!({"maxPerCore": 0, "tcpEstablishedTimeout": "1h"})
    );
    assert_eq!(reported["apiServer"]["extraArgs"][0]["value"], "NodeRestriction,PodNodeSelector");
    let worker = inline(&given, "default-worker-1").await;
    let join = document(&worker, "/etc/bedplate/join.yaml", "JoinConfiguration");
    let arguments = join["nodeRegistration"]["kubeletExtraArgs"].to_string();
    assert!(arguments.contains("max-pods") && !arguments.contains("cloud-provider"));
}

#[tokio::test]
async fn members_have_the_images_of_each_version_in_the_cluster() {
    let mut given = ClusterFixture::labelled(&[INLINE]).await;
    let archive = format!("/var/lib/bedplate/fetched/{OLDER_ARCHIVE}.tar");
    let holds = async |given: &ClusterFixture, name: &str| {
        let config = inline(given, name).await;
        let files = config["storage"]["files"].as_array().unwrap();
        files.iter().filter(|it| it["path"] == archive.as_str()).count()
    };
    assert_eq!(holds(&given, "default-master-0").await, 0);
    given.groups[1].kubernetes = Some(OLDER.parse().unwrap());
    for name in ["default-master-0", "default-worker-0"] {
        assert_eq!(holds(&given, name).await, 1, "{name}");
    }
}

#[tokio::test]
async fn a_config_that_cannot_be_made_is_reported_before_the_server_is_created() {
    let mut given = ClusterFixture::labelled(&[]).await;
    given.cluster.kubernetes = "v1.30.0".parse().unwrap();
    assert_eq!(
        given.user_data("default-worker-0").await.unwrap_err(),
        "clusterd has no source for the programs of Kubernetes v1.30.0: configured are v1.33.7, v1.34.1"
    );
    given.cluster.kubernetes = "v1.34.1".parse().unwrap();
    given.seen.objects.remove(&"port/default-worker-0".parse().unwrap());
    assert_eq!(
        given.user_data("default-worker-0").await.unwrap_err(),
        "the address of port/default-worker-0 is not known yet"
    );
    assert_eq!(
        given.user_data("default-worker-7").await.unwrap_err(),
        format!("the cluster has no member {}", machine("default-worker-7"))
    );
    given.stop_listening();
    assert_eq!(
        given.user_data("default-worker-1").await.unwrap_err(),
        "members of this cluster fetch their configs from clusterd, which has no listener for them"
    );
}

#[tokio::test]
async fn a_bootstrap_token_is_replaced_before_it_expires() {
    let given = ClusterFixture::labelled(&[INLINE]).await;
    let token = async || {
        let worker = inline(&given, "default-worker-0").await;
        let join = document(&worker, "/etc/bedplate/join.yaml", "JoinConfiguration");
        join["discovery"]["bootstrapToken"]["token"].as_str().unwrap().to_owned()
    };
    let first = token().await;
    pass(19 * 3600);
    assert_eq!(token().await, first);
    pass(3600);
    let second = token().await;
    assert_ne!(second, first);
    assert_eq!(token().await, second);
    let kept = given.store.find_secret(given.cluster.id, "bootstrap").await.unwrap().unwrap();
    assert!(!kept.contains(&second[..6]));
}

#[tokio::test]
async fn a_group_may_bring_its_own_config() {
    let own = r#"{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/own"}]}}"#;
    let given = ClusterFixture::labelled(&[]).await;
    let workers = &given.groups[1];
    let set = async |given: &ClusterFixture, text: &str| {
        given.conductor.set_own_config(&given.cluster, workers, text).await
    };
    let refused = set(&given, &own.replace("/etc/own", "etc/own")).await.unwrap_err();
    assert!(refused.to_string().contains("storage.files[0].path"), "{refused}");
    assert_eq!(set(&given, own).await.unwrap(), "3.4.0");
    let sealed = format!("ignition/{}", workers.id);
    let kept = given.store.find_secret(given.cluster.id, &sealed).await.unwrap().unwrap();
    assert!(!kept.contains("/etc/own"));
    let handed_out = given.config("default-worker-0", "10.0.0.20").await;
    assert_eq!(handed_out, serde_json::from_str::<Value>(own).unwrap());
    // The control plane is unaffected, and so is the group once its config is removed.
    let master = given.config("default-master-0", "10.0.0.10").await;
    assert!(file(&master, "/etc/bedplate/init.yaml").is_some());
    given.conductor.remove_own_config(&given.cluster, workers).await.unwrap();
    let worker = given.config("default-worker-1", "10.0.0.21").await;
    assert!(file(&worker, "/etc/bedplate/join.yaml").is_some());

    let inlined = ClusterFixture::labelled(&[INLINE]).await;
    let workers = &inlined.groups[1];
    inlined.conductor.set_own_config(&inlined.cluster, workers, own).await.unwrap();
    assert_eq!(inline(&inlined, "default-worker-0").await, handed_out);
}

#[tokio::test]
async fn members_of_groups_with_the_label_update_their_operating_systems() {
    const ZINCATI: &str = "/etc/zincati/config.d/90-bedplate.toml";
    let given = ClusterFixture::labelled(&[]).await;
    let plain = given.config("default-worker-0", "10.0.0.20").await;
    assert_eq!(file(&plain, ZINCATI).unwrap(), "[updates]\nenabled = false\n");

    let given = ClusterFixture::labelled(&[("os_updates_enabled", "true")]).await;
    let (claim, _) = given.claim("default-worker-0").await;
    let config = given.config("default-worker-0", "10.0.0.20").await;
    let zincati = file(&config, ZINCATI).unwrap();
    assert!(zincati.starts_with("[updates]\nenabled = true\n"), "{zincati}");
    let url = zincati.split('"').rfind(|it| it.starts_with("https://")).unwrap();
    let credential = url.strip_prefix("https://").unwrap().split('@').next().unwrap();
    assert!(url.ends_with("@clusterd.example:9512/v1/fleet-lock/"), "{url}");
    let (user, token) = credential.split_once(':').unwrap();
    assert_eq!((user, token.len()), (claim.as_str(), 64));
    // The credential differs from the one that gets the keys of CAs.
    let curl = file(&config, "/etc/bedplate/authorities.curl").unwrap();
    assert!(!curl.contains(token), "{curl}");
}
