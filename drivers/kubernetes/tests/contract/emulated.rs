//! An emulated cluster: one control-plane member, and two workers that join by a token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes::{Access, Endpoint, Timeouts};
use openstack_emulator::guest::Progress;
use openstack_emulator::{Cloud, Emulator, Kind, Settings};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use serde_json::{Value, json};

const TOKEN: &str = "abcdef.0123456789abcdef";

/// The cluster; it ends when the value is dropped.
pub(crate) struct Emulated {
    pub(crate) emulator: Emulator,
    pub(crate) access: Access,
    alice: Alice,
    authority: String,
}

impl Emulated {
    /// Boots a server that joins as this node; returns the server's id.
    pub(crate) async fn worker(&self, name: &str) -> String {
        self.alice.worker(name, &self.authority).await
    }

    pub(crate) async fn destroy(&self, server: &str) {
        let url = format!("{}/compute/v2.1/servers/{server}", self.alice.cloud.url());
        let request = self.alice.http.delete(url).header("x-auth-token", &self.alice.token);
        assert!(request.send().await.unwrap().status().is_success());
    }

    /// Returns a server's progress in booting.
    pub(crate) fn progress(&self, server: &str) -> Option<Progress> {
        self.emulator.cloud.guests().get(server).cloned()
    }
}

/// Boots the servers, and waits until all have joined.
pub(crate) async fn cluster() -> Emulated {
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let cloud = emulator.cloud.clone();
    let alice = Alice::log_in(&cloud).await;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "kubernetes");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let init = json!({"apiVersion": "kubeadm.k8s.io/v1beta2", "kind": "InitConfiguration", "bootstrapTokens": [{
        "token": TOKEN, "ttl": "1h0m0s", "usages": ["signing", "authentication"],
        "groups": ["system:bootstrappers:kubeadm:default-node-token"],
    }]});
    let settings = json!({"apiVersion": "kubeadm.k8s.io/v1beta2", "kind": "ClusterConfiguration", "kubernetesVersion": "v1.20.2"});
    let first = alice
        .boot(
            "cp-1",
            &[
                ("/etc/kubernetes/pki/ca.crt", authority.pem()),
                ("/etc/kubernetes/pki/ca.key", authority.key().serialize_pem()),
                ("/etc/kubeadm.yaml", format!("{init}\n---\n{settings}\n")),
            ],
        )
        .await;
    for name in ["worker-1", "worker-2"] {
        alice.worker(name, &authority.pem()).await;
    }
    let joined = |cloud: &Cloud| {
        let guests = cloud.guests();
        let joined = guests.values().filter(|it| **it == Progress::Joined).count();
        assert!(!guests.values().any(|it| matches!(it, Progress::Failed(_))), "{guests:?}");
        (joined == 3).then_some(())
    };
    cloud.wait_until(joined).await;
    let (key, mut params) = (KeyPair::generate().unwrap(), CertificateParams::default());
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.distinguished_name.push(DnType::CommonName, "admin");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let access = Access {
        endpoint: Endpoint { host: "kubernetes".to_owned(), port: 6443 },
        connect_to: cloud.guest_port(&first, 6443),
        authority: authority.pem(),
        certificate: params.signed_by(&key, &authority).unwrap().pem(),
        key: key.serialize_pem().into(),
        timeouts: Timeouts::default(),
    };
    Emulated { emulator, access, alice, authority: authority.pem() }
}

/// A tenant of the cloud who uses a plain HTTP client.
struct Alice {
    cloud: Cloud,
    http: reqwest::Client,
    token: String,
    network: String,
}

impl Alice {
    async fn log_in(cloud: &Cloud) -> Alice {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let domain = json!({"id": "default"});
        let user = json!({"name": "alice", "domain": domain, "password": "alice-secret"});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"name": "tenant-a", "domain": domain}},
        }});
        let url = format!("{}/auth/tokens", cloud.auth_url());
        let answer = http.post(url).json(&body).send().await.unwrap();
        let token = answer.headers()["x-subject-token"].to_str().unwrap().to_owned();
        let mut alice = Alice { cloud: cloud.clone(), http, token, network: String::new() };
        let network = json!({"network": {"name": "net"}});
        let network = alice.make("/network/v2.0/networks", network).await;
        alice.network = network["network"]["id"].as_str().unwrap().to_owned();
        let subnet = json!({"subnet": {"network_id": alice.network, "cidr": "10.0.0.0/24", "ip_version": 4}});
        alice.make("/network/v2.0/subnets", subnet).await;
        alice
    }

    async fn make(&self, path: &str, body: Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.cloud.url()));
        let request = request.header("x-auth-token", &self.token).json(&body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap()
    }

    async fn worker(&self, name: &str, authority: &str) -> String {
        let join = json!({"apiVersion": "kubeadm.k8s.io/v1beta2", "kind": "JoinConfiguration", "nodeRegistration": {"name": name}, "discovery": {"bootstrapToken": {
            "token": TOKEN, "apiServerEndpoint": "api.example.org:6443",
        }}});
        let files = [
            ("/etc/kubernetes/pki/ca.crt", authority.to_owned()),
            ("/etc/kubeadm.yaml", join.to_string()),
        ];
        self.boot(name, &files).await
    }

    /// Boots a server with these files; returns the server's id.
    async fn boot(&self, name: &str, files: &[(&str, String)]) -> String {
        let file = |(path, text): &(&str, String)| json!({"path": path, "contents": {"source": format!("data:;base64,{}", STANDARD.encode(text))}});
        let files: Vec<Value> = files.iter().map(file).collect();
        let config = json!({"ignition": {"version": "3.3.0"}, "storage": {"files": files}});
        let image = self.cloud.objects(Kind::Image)[0].id.clone();
        let body = json!({"server": {
            "name": name, "flavorRef": "1", "imageRef": image, "networks": [{"uuid": self.network}],
            "user_data": STANDARD.encode(config.to_string()),
        }});
        let made = self.make("/compute/v2.1/servers", body).await;
        made["server"]["id"].as_str().unwrap().to_owned()
    }
}
