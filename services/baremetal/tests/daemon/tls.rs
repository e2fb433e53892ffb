//! The API over TLS, used by a client that verifies the certificate.

use baremetal::{Config, Service};
use rcgen::{CertificateParams, KeyPair};
use reqwest::{Certificate, Client};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The password "password", hashed with argon2id.
const HASH: &str =
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

#[tokio::test]
async fn passwords_from_other_hosts_need_tls() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(at("c.pem"), made.pem()).unwrap();
    std::fs::write(at("k.pem"), key.serialize_pem()).unwrap();
    std::fs::write(at("htpasswd"), format!("ann:{HASH}\n")).unwrap();
    let text = |tls: &str| {
        format!(
            "state_dir = {:?}\n[api]\nlisten = '0.0.0.0:0'\nauth = 'http_basic'\nhtpasswd = {:?}\n{tls}",
            at("state"),
            at("htpasswd"),
        )
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let clear: Config = toml::from_str(&text("")).unwrap();
    let refused = Service::start(clear).await.map(drop).unwrap_err();
    assert!(format!("{refused:#}").contains("sent unencrypted"), "{refused:#}");

    let tls = format!("certificate = {:?}\nkey = {:?}\n", at("c.pem"), at("k.pem"));
    let service = Service::start(toml::from_str(&text(&tls)).unwrap()).await.unwrap();
    let url = format!("https://localhost:{}/", service.listeners().api.port());
    let stop = CancellationToken::new();
    let running = tokio::spawn(service.run(stop.clone()));

    let authority = Certificate::from_pem(made.pem().as_bytes()).unwrap();
    let client = Client::builder().no_proxy().tls_certs_only([authority]).build().unwrap();
    let answer = client.get(&url).send().await.unwrap();
    let document: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let link = document["default_version"]["links"][0]["href"].as_str().unwrap();
    assert_eq!(link, format!("{url}v1/"));
    let nodes = format!("{url}v1/nodes");
    for (password, status) in [("password", 200), ("wrong", 401)] {
        let asked = client.get(&nodes).basic_auth("ann", Some(password));
        assert_eq!(asked.send().await.unwrap().status(), status);
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}
