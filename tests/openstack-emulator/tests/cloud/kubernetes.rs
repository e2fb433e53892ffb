//! Servers with kubeadm's files become Kubernetes nodes, and their API answers behind the load balancer.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openstack_emulator::guest::Progress;
use openstack_emulator::kubernetes::Nodes;
use openstack_emulator::{Emulator, Kind, Settings};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::somebody::{TestUser, alice, text};

/// The CA of a cluster, and its administrator's certificate.
struct Pki {
    authority: String,
    authority_key: String,
    admin: String,
    admin_key: String,
    /// The pin of the CA, as `kubeadm join` uses it.
    pin: String,
}

fn pki() -> Pki {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "kubernetes");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, &key);
    let digest = Sha256::digest(key.subject_public_key_info());
    let pin = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let admin_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "admin");
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let admin = params.signed_by(&admin_key, &issuer).unwrap();
    Pki {
        authority: authority.pem(),
        authority_key: key.serialize_pem(),
        admin: admin.pem(),
        admin_key: admin_key.serialize_pem(),
        pin,
    }
}

fn user_data(files: &[(&str, &str)]) -> Value {
    let file = |(path, text): &(&str, &str)| json!({"path": path, "contents": {"source": format!("data:;base64,{}", STANDARD.encode(text))}});
    let files: Vec<Value> = files.iter().map(file).collect();
    json!({"user_data": STANDARD.encode(json!({"ignition": {"version": "3.3.0"}, "storage": {"files": files}}).to_string())})
}

const KUBEADM: &str = "apiVersion: kubeadm.k8s.io/v1beta2
kind: InitConfiguration
nodeRegistration:
  kubeletExtraArgs:
    node-labels: rack=7
---
apiVersion: kubeadm.k8s.io/v1beta2
kind: ClusterConfiguration
kubernetesVersion: v1.34.1
apiServer:
  certSANs: [VIP]
";

const JOIN: &str = "apiVersion: kubeadm.k8s.io/v1beta2
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: api.example.org:6443
    caCertHashes: ['sha256:PIN']
";

/// Creates a load balancer on 6443 with a floating IP, one control-plane member behind it, and one worker. Returns the floating IP.
async fn cluster(alice: &TestUser, pki: &Pki) -> String {
    let cloud = &alice.cloud;
    let (network, subnet) = alice.network("10.0.0.0/24").await;
    let outside = cloud.objects(Kind::Network)[0].id.clone();
    let body = json!({"router": {"name": "r", "external_gateway_info": {"network_id": outside}}});
    let router = text(&alice.make("/network/v2.0/routers", body).await["router"]["id"]);
    let path = format!("/network/v2.0/routers/{router}/add_router_interface");
    assert_eq!(alice.ask(Method::PUT, &path, json!({"subnet_id": subnet})).await.0, 200);
    let pool = json!({"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": [{"address": "10.0.0.50", "protocol_port": 6443, "subnet_id": subnet}]});
    let listeners = json!([{"protocol": "TCP", "protocol_port": 6443, "default_pool": pool}]);
    let body =
        json!({"loadbalancer": {"name": "api", "vip_subnet_id": subnet, "listeners": listeners}});
    let balancer = alice.make("/load-balancer/v2/lbaas/loadbalancers", body).await;
    let vip_port = text(&balancer["loadbalancer"]["vip_port_id"]);
    let body = json!({"floatingip": {"floating_network_id": outside, "port_id": vip_port}});
    let vip = text(
        &alice.make("/network/v2.0/floatingips", body).await["floatingip"]["floating_ip_address"],
    );

    let port = json!({"port": {"network_id": network, "fixed_ips": [{"ip_address": "10.0.0.50"}]}});
    let port = text(&alice.make("/network/v2.0/ports", port).await["port"]["id"]);
    let kubeadm = KUBEADM.replace("VIP", &vip);
    let mut first = user_data(&[
        ("/etc/kubernetes/pki/ca.crt", &pki.authority),
        ("/etc/kubernetes/pki/ca.key", &pki.authority_key),
        ("/etc/kubeadm.yaml", &kubeadm),
    ]);
    first["networks"] = json!([{"port": port}]);
    // The worker is requested first and waits for the control plane.
    alice
        .server(
            "worker-0",
            &network,
            user_data(&[("/etc/join.yaml", &JOIN.replace("PIN", &pki.pin))]),
        )
        .await;
    alice.server("control-plane-0", &network, first).await;
    let joined = |cloud: &openstack_emulator::Cloud| {
        (cloud.guests().values().filter(|progress| **progress == Progress::Joined).count() == 2)
            .then_some(())
    };
    cloud.wait_until(joined).await;
    let address: IpAddr = vip.parse().unwrap();
    cloud.wait_until(|cloud| cloud.reach(address, 6443)).await;
    vip
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_etcd_stops_with_its_server() {
    let (nodes, address) = (Arc::new(Nodes::default()), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let emulator = Emulator::start_with(Settings::default(), address, nodes.clone()).await.unwrap();
    let alice = TestUser::log_in(&emulator.cloud, "alice", "tenant-a").await;
    cluster(&alice, &pki()).await;
    let etcd = |runs: bool| vec![BTreeMap::from([("control-plane-0".to_owned(), runs)])];
    assert_eq!(nodes.etcds(), etcd(true));
    let server = || {
        let mut all = emulator.cloud.objects(Kind::Server).into_iter();
        all.find(|it| it.text("name") == "control-plane-0").unwrap()
    };
    emulator.cloud.break_server(&server().id);
    assert_eq!(server().text("status"), "ERROR");
    while nodes.etcds() != etcd(false) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_floating_address_that_a_port_had_before_its_server_leads_to_it() {
    let (emulator, alice) = alice(Settings::default()).await;
    let (network, subnet) = alice.network("10.0.0.0/24").await;
    let outside = emulator.cloud.objects(Kind::Network)[0].id.clone();
    let body = json!({"router": {"name": "r", "external_gateway_info": {"network_id": outside}}});
    let router = text(&alice.make("/network/v2.0/routers", body).await["router"]["id"]);
    let path = format!("/network/v2.0/routers/{router}/add_router_interface");
    assert_eq!(alice.ask(Method::PUT, &path, json!({"subnet_id": subnet})).await.0, 200);
    let port = json!({"port": {"network_id": network}});
    let port = text(&alice.make("/network/v2.0/ports", port).await["port"]["id"]);
    let body = json!({"floatingip": {"floating_network_id": outside, "port_id": port}});
    let address = &alice.make("/network/v2.0/floatingips", body).await["floatingip"];
    let address = text(&address["floating_ip_address"]);

    let pki = pki();
    let mut machine = user_data(&[
        ("/etc/kubernetes/pki/ca.crt", &pki.authority),
        ("/etc/kubernetes/pki/ca.key", &pki.authority_key),
        ("/etc/kubeadm.yaml", &KUBEADM.replace("VIP", &address)),
    ]);
    machine["networks"] = json!([{"port": port}]);
    alice.server("control-plane-0", &network, machine).await;
    let address: IpAddr = address.parse().unwrap();
    emulator.cloud.wait_until(|cloud| cloud.reach(address, 6443)).await;
}

fn kubeconfig(folder: &Path, pki: &Pki, vip: &str) -> std::path::PathBuf {
    let data = |text: &str| STANDARD.encode(text);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("https://{vip}:6443"), "certificate-authority-data": data(&pki.authority)}}],
        "users": [{"name": "admin", "user": {"client-certificate-data": data(&pki.admin), "client-key-data": data(&pki.admin_key)}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "admin"}}],
    });
    let file = folder.join("kubeconfig");
    std::fs::write(&file, config.to_string()).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_finds_the_nodes_through_the_load_balancers_floating_address() {
    if Command::new("kubectl").arg("--help").output().is_err() {
        return peers::skip("kubectl", "it is not installed (Debian's package kubernetes-client)");
    }
    let (emulator, alice) = alice(Settings::default()).await;
    let pki = pki();
    let vip = cluster(&alice, &pki).await;
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), &pki, &vip);
    let kubectl = |words: &[&str]| {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(&config)
            .args(["--cache-dir", folder.path().to_str().unwrap()])
            .args(words);
        let run =
            tokio::task::block_in_place(|| command.env_remove("KUBECONFIG").output().unwrap());
        assert!(run.status.success(), "{words:?}: {}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let nodes = kubectl(&["get", "nodes", "--no-headers"]);
    let rows: Vec<Vec<&str>> =
        nodes.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        (rows[0][0], rows[0][1], rows[0][2], rows[0][4]),
        ("control-plane-0", "Ready", "control-plane", "v1.34.1")
    );
    // The worker's files name no release, so the worker has the release of its cluster.
    assert_eq!(
        (rows[1][0], rows[1][1], rows[1][2], rows[1][4]),
        ("worker-0", "Ready", "<none>", "v1.34.1")
    );
    assert!(
        kubectl(&["get", "nodes", "-l", "rack=7", "-o", "name"])
            .starts_with("node/control-plane-0")
    );
    kubectl(&["cordon", "worker-0"]);
    assert!(
        kubectl(&["get", "node", "worker-0", "--no-headers"]).contains("Ready,SchedulingDisabled")
    );
    kubectl(&["label", "node", "worker-0", "group=w"]);
    assert_eq!(
        kubectl(&["get", "node", "worker-0", "-o", "jsonpath={.metadata.labels.group}"]),
        "w"
    );

    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "system:node:worker-0");
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    let csr = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "csr-1"},
        "spec": {"request": STANDARD.encode(request), "signerName": "kubernetes.io/kubelet-serving", "usages": ["server auth"]},
    });
    let file = folder.path().join("csr.json");
    std::fs::write(&file, csr.to_string()).unwrap();
    kubectl(&["create", "--validate=false", "-f", file.to_str().unwrap()]);
    assert!(kubectl(&["get", "csr", "--no-headers"]).contains("Pending"));
    kubectl(&["certificate", "approve", "csr-1"]);
    let signed = kubectl(&["get", "csr", "csr-1", "-o", "jsonpath={.status.certificate}"]);
    assert!(
        String::from_utf8(STANDARD.decode(signed).unwrap()).unwrap().contains("BEGIN CERTIFICATE")
    );

    // The node of a deleted server is NotReady until somebody deletes the node.
    let worker = emulator
        .cloud
        .objects(Kind::Server)
        .into_iter()
        .find(|server| server.text("name") == "worker-0")
        .unwrap();
    alice.delete(&format!("/compute/v2.1/servers/{}", worker.id)).await;
    emulator.cloud.wait_until(|cloud| (cloud.objects(Kind::Server).len() == 1).then_some(())).await;
    assert!(kubectl(&["get", "node", "worker-0", "--no-headers"]).contains("NotReady"));
    kubectl(&["delete", "node", "worker-0"]);
    assert_eq!(kubectl(&["get", "nodes", "-o", "name"]).lines().count(), 1);
}

#[tokio::test]
async fn a_client_without_a_certificate_of_the_ca_is_refused() {
    let (emulator, alice) = alice(Settings::default()).await;
    let pki = pki();
    let vip = cluster(&alice, &pki).await;
    let authority = reqwest::Certificate::from_pem(pki.authority.as_bytes()).unwrap();
    let at = emulator.cloud.reach(vip.parse().unwrap(), 6443).unwrap();
    let stranger =
        reqwest::Client::builder().no_proxy().tls_certs_only([authority]).build().unwrap();
    let answer = stranger.get(format!("https://{at}/api/v1/nodes")).send().await.unwrap();
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.json::<Value>().await.unwrap()["kind"], "Status");
    let healthy = stranger.get(format!("https://{at}/readyz")).send().await.unwrap();
    assert_eq!(healthy.text().await.unwrap(), "ok");
}
