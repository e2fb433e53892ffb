//! The API over TLS, with a client that verifies the certificate.

use cluster::{Config, Service};
use rcgen::{CertificateParams, KeyPair};
use reqwest::{Certificate, Client};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn links_have_the_scheme_https() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(at("c.pem"), made.pem()).unwrap();
    std::fs::write(at("k.pem"), key.serialize_pem()).unwrap();
    let text = format!(
        "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\ncertificate = {:?}\nkey = {:?}\n",
        at("state"),
        at("c.pem"),
        at("k.pem"),
    );
    let config: Config = toml::from_str(&text).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let service = Service::start(config).await.unwrap();
    let url = format!("https://localhost:{}/", service.listeners().api.port());
    let stop = CancellationToken::new();
    let running = tokio::spawn(service.run(stop.clone()));

    let authority = Certificate::from_pem(made.pem().as_bytes()).unwrap();
    let client = Client::builder().no_proxy().tls_certs_only([authority]).build().unwrap();
    let answer = client.get(&url).send().await.unwrap();
    let document: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let link = document["versions"][0]["links"][0]["href"].as_str().unwrap();
    assert_eq!(link, format!("{url}v1/"));
    stop.cancel();
    running.await.unwrap().unwrap();
}
