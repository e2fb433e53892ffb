//! Tests of certificates.

use std::sync::Arc;

use openstack::network::networks;
use openstack::{CloudError, ConfigError, Session, Tls};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::cloud::{Cloud, Reply};

/// A TLS server that refuses every request; returns its port and its certificate as PEM.
async fn refusing_server() -> (u16, String) {
    let names = vec!["127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = builder.with_single_cert(vec![cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let _ = stream.read(&mut [0; 4096]).await;
                let refusal = b"HTTP/1.1 403 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(refusal).await;
            });
        }
    });
    (port, cert.pem())
}

async fn ask(port: u16, tls: Tls) -> CloudError {
    let cloud = Cloud::start(|_, _| Reply::Lost).await;
    let mut config = cloud.config();
    (config.auth_url, config.tls) = (format!("https://127.0.0.1:{port}").parse().unwrap(), tls);
    networks::find(&Session::new(config).unwrap(), "n").await.unwrap_err()
}

#[tokio::test]
async fn a_certificate_needs_a_trusted_authority() {
    let (port, pem) = refusing_server().await;
    let error = ask(port, Tls::Verified { authorities: None }).await;
    assert!(matches!(error, CloudError::Untrusted { .. }), "{error:?}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, pem).unwrap();
    let error = ask(port, Tls::Verified { authorities: Some(path) }).await;
    assert!(matches!(error, CloudError::Forbidden(_)), "{error:?}");

    let error = ask(port, Tls::Unverified).await;
    assert!(matches!(error, CloudError::Forbidden(_)), "{error:?}");
}

#[tokio::test]
async fn authorities_that_cannot_be_read_are_named_at_once() {
    let cloud = Cloud::start(|_, _| Reply::Lost).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let refuse = || {
        let mut config = cloud.config();
        config.tls = Tls::Verified { authorities: Some(path.clone()) };
        Session::new(config).unwrap_err()
    };
    assert!(matches!(refuse(), ConfigError::Unreadable { .. }));
    std::fs::write(&path, "no certificate").unwrap();
    assert!(matches!(refuse(), ConfigError::Authorities { .. }));
}
