//! The listener for members over real TLS: a config once for each claim, progress reports, and backups of etcd.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use cluster::nodes::{certificate, router};
use cluster_bootstrap::Source;
use cluster_conductor::{
    BackupPlace, BackupSettings, Conductor, KubernetesSettings, MachineSettings, NodesListener,
    Settings, SourceAddress,
};
use cluster_core::{
    BackupRules, BackupUuid, CloudObject, CloudObjectDetails, CloudObjectState, Cluster,
    ClusterObservation, ClusterParameters, ClusterUuid, Ident, Key, KubernetesVersion, Labels,
    MemberName, MemberReboot, NodeGroup, RebootPhase, RepairLimits, RequestedCluster,
    request_backup,
};
use cluster_store::{ClusterChange, Scope, Store};
use daemon::{ConnectionLimits, serve_tls};
use jiff::{SignedDuration, Timestamp};
use newtype_uuid::GenericUuid;
use reqwest::{Certificate, Client, StatusCode};
use sealing::SealingKeys;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

struct Listening {
    at: SocketAddr,
    authority: String,
    store: Store,
    cluster: Cluster,
    claim: (String, String),
    _state: tempfile::TempDir,
}

/// A listener, and a claim of a member with the address 127.0.0.1.
async fn listening() -> Listening {
    let state = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let url: url::Url = format!("https://{at}/").parse().unwrap();
    let shown = certificate(None, &url, state.path()).unwrap();
    // A restart makes another certificate of the same certificate authority.
    assert_eq!(certificate(None, &url, state.path()).unwrap().authority, shown.authority);

    let store = Store::open("sqlite::memory:").await.unwrap();
    let (cluster, groups) = insert(&store).await;
    let nodes = NodesListener {
        url,
        authority: shown.authority.clone(),
        source: SourceAddress::Machine,
        claim_lasts: Duration::from_secs(600),
    };
    let settings = settings(nodes, state.path());
    let keys = SealingKeys::parse(&SealingKeys::generate().unwrap()).unwrap();
    let conductor = Conductor::new(settings, store.clone(), keys, None);

    let machine: MemberName = "default-master-0".parse().unwrap();
    let port = CloudObject {
        id: "p".to_owned(),
        state: CloudObjectState::Ready,
        address: Some([127, 0, 0, 1].into()),
        facts: CloudObjectDetails::None,
    };
    let objects = BTreeMap::from([(Key::Port(machine.clone()), port)]);
    let seen = ClusterObservation { objects, ..ClusterObservation::default() };
    let stub = conductor.user_data(&cluster, &groups, &machine, &seen).await.unwrap();
    let stub: Value = serde_json::from_str(stub.text()).unwrap();
    let replace = &stub["ignition"]["config"]["replace"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let claim = (text(&replace["source"]), text(&replace["httpHeaders"][0]["value"]));
    let limits = ConnectionLimits::default().for_one_request();
    let serving =
        serve_tls(listener, shown.tls, router(conductor), limits, CancellationToken::new());
    tokio::spawn(serving);
    Listening { at, authority: shown.authority, store, cluster, claim, _state: state }
}

/// The settings of a conductor with this listener, which keeps backups below the folder.
fn settings(nodes: NodesListener, state: &Path) -> Settings {
    let versions = BTreeMap::from([(KubernetesVersion::DEFAULT, Source::sample())]);
    let backups = BackupSettings {
        place: BackupPlace::Directory(state.join("backups")),
        rules: BackupRules { every: None, keep: 7, keep_for: SignedDuration::from_hours(24) },
    };
    Settings {
        hostname: "h".to_owned(),
        instance: "i".to_owned(),
        workers: 1,
        look_every: Duration::from_secs(60),
        vms: cluster_conductor::VmSettings::default(),
        repair: RepairLimits {
            not_ready_for: SignedDuration::from_mins(5),
            workers_at_once: 1,
            become_node_within: SignedDuration::from_mins(15),
            ..RepairLimits::DEFAULT
        },
        machines: MachineSettings {
            kubernetes: KubernetesSettings { versions, ..KubernetesSettings::default() },
            nodes: Some(nodes),
        },
        lending: Default::default(),
        backups: Some(backups),
        metrics: Default::default(),
        tracer: Default::default(),
        clock: Timestamp::now,
    }
}

impl Listening {
    /// A client at this address that trusts only the certificate authority in the stub.
    fn client(&self, from: [u8; 4]) -> Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let authority = Certificate::from_pem(self.authority.as_bytes()).unwrap();
        let client = Client::builder().no_proxy().tls_certs_only([authority]);
        client.local_address(std::net::IpAddr::from(from)).build().unwrap()
    }

    async fn redeem(&self, client: &Client) -> reqwest::Response {
        let (url, bearer) = &self.claim;
        client.get(url).header("Authorization", bearer).send().await.unwrap()
    }

    /// The cluster as it is recorded now.
    async fn record(&self) -> Cluster {
        let ident = Ident::Id(self.cluster.id.into_untyped_uuid());
        self.store.find_clusters(&ident, &Scope::All).await.unwrap().pop().unwrap()
    }

    /// Changes the record of the cluster, and returns the new one.
    async fn change(&self, change: impl FnOnce(Cluster) -> Cluster) -> Cluster {
        let changed = ClusterChange::of(change(self.record().await));
        self.store.change_cluster(&changed).await.unwrap()
    }

    async fn events(&self) -> Vec<String> {
        let events = self.store.events_of(self.cluster.id, 100, None).await.unwrap();
        events.into_iter().map(|it| it.reason).collect()
    }
}

const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

#[tokio::test]
async fn a_member_gets_its_config_once_and_reports_with_the_token_in_the_config() {
    let listening = listening().await;
    let client = listening.client(HERE);
    let answer = listening.redeem(&client).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "application/vnd.coreos.ignition+json");
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let config = answer.text().await.unwrap();
    let document = ignition::Document::parse(&config, ignition::Limits::default()).unwrap();
    assert_eq!(document.version(), "3.3.0");

    let curl = file(&config, "/etc/bedplate/report.curl");
    let reported = |begin: &str| option(&curl, begin);
    let (url, bearer) = (reported("url = \""), reported("header = \"Authorization: "));
    let report = |bearer: &str, body: String| {
        let request = client.post(&url).header("Authorization", bearer);
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        async { request.body(body).send().await.unwrap().status() }
    };
    let body = format!("{}&step=mark&result=exit-code&status=1", reported("data = \""));
    assert_eq!(report(&listening.claim.1, body.clone()).await, StatusCode::NOT_FOUND);
    assert_eq!(report(&bearer, "claim=x&step=mark".to_owned()).await, StatusCode::NOT_FOUND);
    assert_eq!(report(&bearer, "x".repeat(5000)).await, StatusCode::NOT_FOUND);
    assert_eq!(report(&bearer, body).await, StatusCode::NO_CONTENT);
    let heard = listening.store.machines_of(listening.cluster.id).await.unwrap();
    let said = heard[0].said.as_ref().unwrap();
    assert_eq!((said.step.as_str(), said.failed), ("mark", true));
    assert_eq!(said.message, "exit-code, status 1");

    // The member has reported, so another use of its claim comes from someone else.
    let again = listening.redeem(&client).await;
    assert_eq!(again.status(), StatusCode::NOT_FOUND);
    assert_eq!(listening.events().await, ["ClaimRedeemed", "ClaimReused"]);
}

/// A certificate that ended long ago.
fn ended() -> String {
    let mut parameters = rcgen::CertificateParams::default();
    parameters.not_after = rcgen::date_time_ymd(2000, 1, 1);
    parameters.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
}

#[tokio::test]
async fn a_member_reports_its_certificates_and_learns_when_to_renew_them() {
    let listening = listening().await;
    let client = listening.client(HERE);
    let config = listening.redeem(&client).await.text().await.unwrap();
    let curl = file(&config, "/etc/bedplate/certificates.curl");
    let (url, bearer) = (option(&curl, "url = \""), option(&curl, "header = \"Authorization: "));
    let report = |bearer: &str, body: String| {
        let request = client.post(&url).header("Authorization", bearer);
        let request = request.header("Content-Type", "text/plain").body(body);
        async {
            let answer = request.send().await.unwrap();
            (answer.status(), answer.text().await.unwrap())
        }
    };
    let text = format!("stage idle\ncertificate etcd/peer 1\n{}", ended());
    let refused = (StatusCode::NOT_FOUND, "not found\n".to_owned());
    assert_eq!(report(&listening.claim.1, text.clone()).await, refused);
    assert_eq!(report(&bearer, "stage".to_owned()).await, refused);
    assert_eq!(report(&bearer, format!("{text}{}", "x".repeat(65_536))).await, refused);
    let later = |seconds: &str| (StatusCode::ACCEPTED, format!("{seconds}\n"));
    assert_eq!(report(&bearer, text.clone()).await, later("60"), "it is no node yet");

    let nodes = ["default-master-0".parse().unwrap()].into();
    let cluster = Cluster { nodes, ..listening.cluster.clone() };
    listening.store.change_cluster(&ClusterChange::of(cluster)).await.unwrap();
    let padding = "-".repeat(60_000);
    let answer = report(&bearer, format!("{text}{padding}")).await;
    assert_eq!(answer, (StatusCode::OK, "renew\n".to_owned()));
}

#[tokio::test]
async fn a_member_asks_before_it_reboots_as_zincati_does() {
    let listening = listening().await;
    let client = listening.client(HERE);
    let config = listening.redeem(&client).await.text().await.unwrap();
    let zincati = file(&config, "/etc/zincati/config.d/90-bedplate.toml");
    let base: url::Url = option(&zincati, "base_url = \"").parse().unwrap();
    const BODY: &str = r#"{"client_params": {"id": "0c1", "group": "default"}}"#;
    let ask = |base: &url::Url, path: &str, protocol: &str, body: &'static str| {
        let request = client.post(base.join(path).unwrap()).header("fleet-lock-protocol", protocol);
        let request = request.body(body);
        async {
            let answer = request.send().await.unwrap();
            (answer.status(), answer.text().await.unwrap())
        }
    };
    let wants = async || ask(&base, "v1/pre-reboot", "true", BODY).await;
    let waits = |why: &str| {
        let body = json!({"kind": "failed_lock", "value": why}).to_string();
        (StatusCode::CONFLICT, body)
    };
    assert_eq!(wants().await, waits("member default-master-0 is not a Kubernetes node yet"));

    // Another credential of the same member, another protocol, and another body are refused.
    let mut stranger = base.clone();
    stranger.set_password(listening.claim.1.strip_prefix("Bearer ")).unwrap();
    let refused = (StatusCode::NOT_FOUND, "not found\n".to_owned());
    assert_eq!(ask(&stranger, "v1/pre-reboot", "true", BODY).await, refused);
    for (protocol, body, kind) in [
        ("false", BODY, "invalid_protocol"),
        ("true", "", "invalid_body"),
        ("true", r#"{"client_params": {"id": "", "group": "default"}}"#, "invalid_body"),
        ("true", r#"{"client_params": {"id": "0c1"}}"#, "invalid_body"),
    ] {
        let (status, said) = ask(&base, "v1/pre-reboot", protocol, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["kind"], kind);
    }

    let machine: MemberName = "default-master-0".parse().unwrap();
    let nodes = [machine.clone()].into();
    listening.change(|cluster| Cluster { nodes, ..cluster }).await;
    assert_eq!(wants().await, waits("the pods of member default-master-0 are evicted"));
    // A turn drains the member.
    let reboot = MemberReboot { machine, phase: RebootPhase::Permitted, since: Timestamp::now() };
    listening.change(|cluster| Cluster { reboot: Some(reboot), ..cluster }).await;
    let done = (StatusCode::OK, String::new());
    assert_eq!(wants().await, done);
    assert_eq!(ask(&base, "v1/steady-state", "true", BODY).await, done);
    let reboot = listening.change(|cluster| cluster).await.reboot.unwrap();
    assert_eq!(reboot.phase, RebootPhase::Ended);
    let events = listening.events().await;
    assert_eq!(events, ["ClaimRedeemed", "RebootRequested", "RebootEnded"]);
}

#[tokio::test]
async fn a_member_sends_a_snapshot_and_fetches_it_for_a_test() {
    // The SHA-256 of the snapshot below.
    const SUM: &str = "2287d207f24a941ff3b56c04c8a25ad56b63e3023207b3bb5b4ac0c9869d74be";
    let snapshot = "a".repeat(200_000);
    let listening = listening().await;
    let client = listening.client(HERE);
    let config = listening.redeem(&client).await.text().await.unwrap();
    let url = file(&config, "/etc/bedplate/backups.url").trim_end().to_owned();
    let curl = file(&config, "/etc/bedplate/backups.curl");
    let token = curl.split("Bearer ").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let ask = async |bearer: &str| {
        let request = client.get(format!("{url}?restores=0")).bearer_auth(bearer);
        let answer = request.send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    assert_eq!(ask("x").await.0, StatusCode::NOT_FOUND);
    assert_eq!(ask(&token).await.0, StatusCode::NO_CONTENT);

    let id = BackupUuid::new_v4();
    let now = Timestamp::now();
    let nodes = ["default-master-0".parse().unwrap()].into();
    let running = Cluster { nodes, completed_at: Some(now), ..listening.record().await };
    let wanted = request_backup(&running, id, now).unwrap();
    listening.store.change_cluster(&ClusterChange::of(wanted)).await.unwrap();
    assert_eq!(ask(&token).await, (StatusCode::OK, format!("save {id}\n")));
    let place = format!("{url}/{id}");
    let put = client.put(format!("{place}?revision=5&etcd=3.5.16&sha256={SUM}"));
    let sent = put.bearer_auth(&token).body(snapshot.clone()).send().await.unwrap();
    assert_eq!(sent.status(), StatusCode::NO_CONTENT);

    assert_eq!(ask(&token).await, (StatusCode::OK, format!("test {id}\n")));
    let fetched = client.get(&place).bearer_auth(&token).send().await.unwrap();
    assert_eq!(fetched.headers()["cache-control"], "no-store");
    assert_eq!(fetched.content_length(), Some(200_000));
    assert!(fetched.text().await.unwrap() == snapshot, "another snapshot");
    let stranger = client.get(&place).bearer_auth("x").send().await.unwrap();
    assert_eq!(stranger.status(), StatusCode::NOT_FOUND);
    let done = client.post(format!("{place}/result")).bearer_auth(&token);
    let done = done.header("Content-Type", "application/x-www-form-urlencoded");
    let done = done.body("result=success&message=").send().await.unwrap();
    assert_eq!(done.status(), StatusCode::NO_CONTENT);
    assert_eq!(ask(&token).await.0, StatusCode::NO_CONTENT);
    let backup = listening.record().await.backups[0].clone();
    assert!(backup.tested_at.is_some());
}

#[tokio::test]
async fn every_refusal_is_the_same() {
    let listening = listening().await;
    let (here, elsewhere) = (listening.client(HERE), listening.client(ELSEWHERE));
    let (url, bearer) = &listening.claim;
    let unknown = format!("https://{}/v1/claims/{}", listening.at, ClusterUuid::new_v4());
    let ask = |client: &Client, url: &str, bearer: &str| {
        let request = client.get(url).header("Authorization", bearer);
        async {
            let answer = request.send().await.unwrap();
            (answer.status(), answer.headers().len(), answer.text().await.unwrap())
        }
    };
    let wrong = ask(&here, url, "Bearer x").await;
    assert_eq!(wrong.0, StatusCode::NOT_FOUND);
    assert_eq!(ask(&here, url, "Basic x").await, wrong);
    assert_eq!(ask(&here, &unknown, bearer).await, wrong);
    assert_eq!(ask(&elsewhere, url, bearer).await, wrong);
    assert_eq!(listening.redeem(&here).await.status(), StatusCode::OK);
    assert_eq!(ask(&elsewhere, url, bearer).await, wrong);
    let reasons = listening.events().await;
    assert_eq!(reasons, ["ClaimFromElsewhere", "ClaimRedeemed"]);
}

#[tokio::test]
async fn no_route_of_the_users_api_answers_here_and_none_without_tls() {
    let listening = listening().await;
    let client = listening.client(HERE);
    for path in ["", "v1", "v1/clusters", "bedplate/v1/clusters", "v1/claims", "openapi.json"] {
        let url = format!("https://{}/{path}", listening.at);
        assert_eq!(client.get(url).send().await.unwrap().status(), StatusCode::NOT_FOUND, "{path}");
    }
    let plain = format!("http://{}/v1/clusters", listening.at);
    assert!(client.get(plain).send().await.is_err());
    // A client that does not trust clusterd's certificate authority does not connect.
    let stranger = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    assert!(stranger.get(&listening.claim.0).send().await.is_err());
}

/// The text of a file in a config.
fn file(config: &str, path: &str) -> String {
    let value: Value = serde_json::from_str(config).unwrap();
    let files = value["storage"]["files"].as_array().unwrap();
    let file = files.iter().find(|it| it["path"] == path).unwrap();
    unpacked(file["contents"]["source"].as_str().unwrap())
}

/// The rest of the first line of a curl configuration that begins so.
fn option(curl: &str, begin: &str) -> String {
    let line = curl.lines().find_map(|line| line.strip_prefix(begin)).unwrap();
    line.trim_end_matches('"').to_owned()
}

fn unpacked(source: &str) -> String {
    let source = source.strip_prefix("data:").unwrap();
    match source.strip_prefix(";base64,") {
        Some(packed) => {
            use base64::Engine;
            let packed = base64::engine::general_purpose::STANDARD.decode(packed).unwrap();
            std::io::read_to_string(flate2::read::GzDecoder::new(&packed[..])).unwrap()
        }
        None => percent_encoding::percent_decode_str(source.trim_start_matches(','))
            .decode_utf8()
            .unwrap()
            .into_owned(),
    }
}

/// A cluster of one member, on an existing network.
async fn insert(store: &Store) -> (Cluster, Vec<NodeGroup>) {
    let updates = ("os_updates_enabled".to_owned(), "true".to_owned());
    let blueprint = ClusterParameters {
        fixed_network: Some("net".to_owned()),
        fixed_subnet: Some("subnet".to_owned()),
        floating_ip_enabled: false,
        labels: Labels::try_from(BTreeMap::from([updates])).unwrap(),
        ..ClusterParameters::new("fcos".to_owned())
    };
    let RequestedCluster { template, cluster, groups } =
        RequestedCluster::new(blueprint, 1, 0, Timestamp::now());
    store.insert_template(&template).await.unwrap();
    store.insert_cluster(&cluster, &groups, &[], None).await.unwrap();
    (cluster, groups)
}
