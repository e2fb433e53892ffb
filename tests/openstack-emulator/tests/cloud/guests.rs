//! How the guest of a server applies its user data.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use openstack_emulator::guest::Progress;
use openstack_emulator::{Emulator, Guest, GuestMachine, Settings};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::somebody::TestUser;

/// An HTTPS server of configs with its own certificate.
struct Configs {
    address: SocketAddr,
    certificate: String,
    /// The claim header of each request.
    seen: Arc<Mutex<Vec<String>>>,
}

/// Answers each request with the next of `answers`, a status and a body.
async fn configs(answers: Vec<(u16, String)>) -> Configs {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let (asked, answers) = (seen.clone(), Arc::new(Mutex::new(VecDeque::from(answers))));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust the certificate closes the connection.
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let (asked, answers) = (asked.clone(), answers.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let claim = request
                    .headers()
                    .get("x-claim")
                    .map(|claim| claim.to_str().unwrap().to_owned());
                asked.lock().unwrap().push(claim.unwrap_or_default());
                let (status, body) =
                    answers.lock().unwrap().pop_front().unwrap_or((410, String::new()));
                let answer =
                    Response::builder().status(status).body(Full::new(Bytes::from(body))).unwrap();
                async move { Ok::<_, Infallible>(answer) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Configs { address, certificate: certificate.pem(), seen }
}

impl Configs {
    /// User data whose config is replaced by the config of this server.
    fn stub(&self, hash: Option<&str>) -> String {
        let mut replace = json!({
            "source": format!("https://{}/config", self.address),
            "httpHeaders": [{"name": "X-Claim", "value": "once"}],
        });
        if let Some(hash) = hash {
            replace["verification"] = json!({"hash": hash});
        }
        let authority = format!("data:;base64,{}", STANDARD.encode(&self.certificate));
        json!({"ignition": {
            "version": "3.3.0", "config": {"replace": replace}, "security": {"tls": {"certificateAuthorities": [{"source": authority}]}},
        }})
        .to_string()
    }
}

/// A guest that records the final config of every server.
#[derive(Default)]
struct RecordsConfigs {
    configs: Mutex<Vec<(String, Value)>>,
}

#[async_trait]
impl Guest for RecordsConfigs {
    async fn run(&self, machine: GuestMachine, config: Value) {
        self.configs.lock().unwrap().push((machine.name.clone(), config));
        machine.report(Progress::Joined);
    }
}

/// Boots a server with this user data. Returns the progress of its guest, and the configs of all guests that ran.
async fn boot(user_data: &str) -> (Progress, Vec<(String, Value)>) {
    let guest = Arc::new(RecordsConfigs::default());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let emulator = Emulator::start_with(Settings::default(), address, guest.clone()).await.unwrap();
    let alice = TestUser::log_in(&emulator.cloud, "alice", "tenant-a").await;
    let (network, _) = alice.network("10.0.0.0/24").await;
    let id = alice.server("v", &network, json!({"user_data": STANDARD.encode(user_data)})).await;
    let end = emulator.cloud.wait_until(|cloud| {
        cloud
            .guests()
            .remove(&id)
            .filter(|progress| matches!(progress, Progress::Joined | Progress::Failed(_)))
    });
    let end = end.await;
    let configs = guest.configs.lock().unwrap().clone();
    (end, configs)
}

const REAL: &str = r#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/etc/motd", "contents": {"source": "data:,hello"}}]}}"#;

fn hash(text: &str) -> String {
    let digest: String =
        Sha512::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha512-{digest}")
}

#[tokio::test]
async fn a_stub_is_replaced_by_its_config_after_retries_and_with_its_headers() {
    let configs =
        configs(vec![(503, String::new()), (429, String::new()), (200, REAL.to_owned())]).await;
    let (progress, finals) = boot(&configs.stub(Some(&hash(REAL)))).await;
    assert_eq!(progress, Progress::Joined);
    let (name, config) = &finals[0];
    assert_eq!((name.as_str(), &config["storage"]["files"][0]["path"]), ("v", &json!("/etc/motd")));
    assert_eq!(openstack_emulator::guest::files(config)["/etc/motd"], "hello");
    assert_eq!(*configs.seen.lock().unwrap(), ["once", "once", "once"]);
}

#[tokio::test]
async fn a_claim_that_is_refused_is_not_tried_again() {
    let configs = configs(vec![(403, String::new()), (200, REAL.to_owned())]).await;
    let (progress, finals) = boot(&configs.stub(None)).await;
    assert_eq!(
        progress,
        Progress::Failed("cannot fetch a config: the server answers 403 Forbidden".into())
    );
    assert!(finals.is_empty());
    assert_eq!(configs.seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_config_that_does_not_match_its_hash_is_not_run() {
    let configs = configs(vec![(200, REAL.replace("hello", "hullo"))]).await;
    let (progress, _) = boot(&configs.stub(Some(&hash(REAL)))).await;
    assert_eq!(
        progress,
        Progress::Failed("cannot fetch a config: the verification hash does not match".into())
    );
}

#[tokio::test]
async fn a_server_with_another_ca_than_in_the_config_is_not_trusted() {
    let (theirs, ours) = (configs(vec![(200, REAL.to_owned())]).await, configs(Vec::new()).await);
    let stub = theirs
        .stub(None)
        .replace(&STANDARD.encode(&theirs.certificate), &STANDARD.encode(&ours.certificate));
    let mut stub: Value = serde_json::from_str(&stub).unwrap();
    stub["ignition"]["timeouts"] = json!({"httpTotal": 1});
    let (progress, _) = boot(&stub.to_string()).await;
    assert!(
        matches!(&progress, Progress::Failed(why) if why.contains("no answer within 1 s")),
        "{progress:?}"
    );
    assert!(theirs.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn configs_are_merged_and_other_user_data_is_left_to_the_guest() {
    let child =
        r#"{"ignition": {"version": "3.3.0"}, "systemd": {"units": [{"name": "b.service"}]}}"#;
    let parent = json!({
        "ignition": {"version": "3.3.0", "config": {"merge": [{"source": format!("data:;base64,{}", STANDARD.encode(child))}]}},
        "systemd": {"units": [{"name": "a.service", "enabled": true}]},
    });
    let (_, finals) = boot(&parent.to_string()).await;
    let units = finals[0].1["systemd"]["units"].as_array().unwrap();
    assert_eq!(
        units.iter().map(|unit| unit["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["a.service", "b.service"]
    );
    let (progress, finals) = boot("#cloud-config\nhostname: v\n").await;
    assert_eq!((progress, &finals[0].1), (Progress::Joined, &Value::Null));
    let (progress, _) = boot(r#"{"ignition": {"version": "2.2.0"}}"#).await;
    assert_eq!(progress, Progress::Failed("unsupported config version \"2.2.0\"".into()));
}
