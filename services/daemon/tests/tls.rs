//! A listener that speaks TLS, asked by a client that verifies.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use daemon::TlsFiles;
use rcgen::{CertificateParams, KeyPair};
use reqwest::{Certificate, Client};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Writes a certificate of its own for `localhost`; it, as clients know it.
fn issue(files: &TlsFiles) -> Certificate {
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    fs::write(&files.certificate, made.pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    Certificate::from_pem(made.pem().as_bytes()).unwrap()
}

fn files(folder: &Path) -> TlsFiles {
    let (certificate, key) = (folder.join("c.pem"), folder.join("k.pem"));
    TlsFiles::new(Some(certificate), Some(key)).unwrap().unwrap()
}

/// A client that believes this certificate and no other.
fn believing(certificate: &Certificate) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().tls_certs_only([certificate.clone()]);
    client.build().unwrap()
}

#[tokio::test]
async fn a_certificate_is_exchanged_while_it_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let first = issue(&files);
    let tls = files.clone().open().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let (router, stop) = (Router::new().route("/", get(async || "here")), CancellationToken::new());
    let serving = tokio::spawn(daemon::serve_api(listener, Some(tls), router, stop.clone()));

    let kept = believing(&first);
    assert_eq!(kept.get(&url).send().await.unwrap().text().await.unwrap(), "here");
    let second = issue(&files);
    let exchanged = async {
        while believing(&second).get(&url).send().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), exchanged).await.unwrap();
    believing(&first).get(&url).send().await.unwrap_err();
    kept.get(&url).send().await.expect("the connection that was stays");
    let plain = url.replace("https", "http");
    Client::builder().no_proxy().build().unwrap().get(plain).send().await.unwrap_err();
    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn files_that_cannot_be_served_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let why = files.clone().open().unwrap_err().to_string();
    assert!(why.contains("c.pem") && why.contains("No such file"), "{why}");
    issue(&files);
    fs::write(&files.key, "secret").unwrap();
    let why = files.clone().open().unwrap_err().to_string();
    assert!(why.contains("k.pem") && !why.contains("secret"), "{why}");
    fs::write(&files.key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let why = files.open().unwrap_err().to_string();
    assert!(why.contains("cannot be served"), "{why}");
}
