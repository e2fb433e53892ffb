//! Tests of certificates: verified, pinned, or unverified.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::fixture::{Fixture, silent};
use axum::serve::Listener;
use bmc::BmcError;
use hardware::{AllowedHosts, PowerState};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redfish::{Auth, Connector, Target, Trust, fingerprint};
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{HandshakeKind, ServerConfig};
use tokio_rustls::server::TlsStream;

const TREE: &str = include_str!("trees/dell.json");

/// Accepts TLS connections; drops a connection whose handshake fails.
struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
    resumed: Arc<AtomicUsize>,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((peer, address)) = self.tcp.accept().await else { continue };
            if let Ok(stream) = self.acceptor.accept(peer).await {
                if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
                    self.resumed.fetch_add(1, Relaxed);
                }
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// A BMC with a certificate for `name`, the authority that signed the certificate, and its SHA-256.
struct Served {
    fixture: Fixture,
    authority_pem: String,
    sha256: [u8; 32],
    /// How many connections resumed a session.
    resumed: Arc<AtomicUsize>,
}

async fn serve(name: &str) -> Served {
    let mut authority = CertificateParams::new(vec![]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();

    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();
    let der: CertificateDer<'static> = leaf.der().clone();
    let sha256 = Sha256::digest(&der).into();

    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![der], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}", tcp.local_addr().unwrap()).parse().unwrap();
    let resumed = Arc::new(AtomicUsize::new(0));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let tls = Tls { tcp, acceptor, resumed: resumed.clone() };
    let fixture = Fixture::serve_on(tls, address, TREE, silent);
    Served { fixture, authority_pem: authority.pem(), sha256, resumed }
}

impl Served {
    async fn state(&self, trust: Trust, authorities: &str) -> Result<PowerState, BmcError> {
        let target = Target { trust, ..self.fixture.target(Auth::Basic) };
        Connector::new(authorities.as_bytes(), AllowedHosts::anywhere())
            .unwrap()
            .bmc(target)
            .power
            .state()
            .await
    }
}

#[track_caller]
fn assert_untrusted(outcome: Result<PowerState, BmcError>, why: &str) {
    match outcome {
        Err(error @ BmcError::Untrusted { .. }) => {
            assert!(error.to_string().contains(why), "{error}");
            assert!(!error.is_transient());
        }
        other => panic!("trusted: {other:?}"),
    }
}

#[tokio::test]
async fn an_extra_authority_is_trusted_for_the_right_address() {
    let bmc = serve("127.0.0.1").await;
    assert_eq!(bmc.state(Trust::Authorities, &bmc.authority_pem).await.unwrap(), PowerState::On);
    assert_untrusted(bmc.state(Trust::Authorities, "").await, "UnknownIssuer");

    let other = serve("10.0.0.9").await;
    assert_untrusted(
        other.state(Trust::Authorities, &other.authority_pem).await,
        "not valid for name",
    );
    // The driver sends nothing to an untrusted host, least of all the password.
    assert!(other.fixture.asked().is_empty());
}

#[tokio::test]
async fn a_pinned_certificate_is_trusted_whatever_its_name() {
    let bmc = serve("somewhere.else.example").await;
    assert_eq!(bmc.state(Trust::Pinned(bmc.sha256), "").await.unwrap(), PowerState::On);
}

#[tokio::test]
async fn any_other_certificate_is_not_the_pinned_one() {
    let bmc = serve("127.0.0.1").await;
    assert_untrusted(bmc.state(Trust::Pinned([7; 32]), &bmc.authority_pem).await, "but 0707");
    assert!(bmc.fixture.asked().is_empty());
}

/// The connections of a sweep are closed at once, so that each sweep makes a new one.
#[tokio::test]
async fn the_next_connection_resumes_the_session() {
    let bmc = serve("127.0.0.1").await;
    for trust in [Trust::Authorities, Trust::Pinned(bmc.sha256), Trust::Unverified] {
        let target = Target { trust, ..bmc.fixture.target(Auth::Basic) };
        let authorities = bmc.authority_pem.as_bytes();
        let connector = Connector::new(authorities, AllowedHosts::anywhere()).unwrap();
        let power = connector.bmc(target).power;
        power.state_once().await.unwrap();
        assert_eq!(bmc.resumed.swap(0, Relaxed), 0, "each connector has sessions of its own");
        power.state_once().await.unwrap();
        assert_eq!(bmc.resumed.swap(0, Relaxed), 1);
    }
}

#[tokio::test]
async fn unverified_accepts_any_certificate() {
    let bmc = serve("somewhere.else.example").await;
    assert_eq!(bmc.state(Trust::Unverified, "").await.unwrap(), PowerState::On);
}

#[tokio::test]
async fn the_fetched_fingerprint_can_be_pinned() {
    let bmc = serve("somewhere.else.example").await;
    let seen = fingerprint(&bmc.fixture.address, Duration::from_secs(5)).await.unwrap();
    assert_eq!(seen, bmc.sha256);
    assert!(bmc.fixture.asked().iter().all(|asked| asked.header("authorization").is_none()));
}

#[tokio::test]
async fn there_is_no_fingerprint_without_tls() {
    let plain = Fixture::serve(TREE, silent).await;
    let error = fingerprint(&plain.address, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.to_string(), "this BMC cannot show a certificate over http");

    let mut address = plain.address.clone();
    address.set_scheme("https").unwrap();
    let error = fingerprint(&address, Duration::from_secs(5)).await.unwrap_err();
    assert!(
        matches!(error, BmcError::Untrusted { .. } | BmcError::Unreachable { .. }),
        "{error:?}"
    );
}

#[test]
fn certificates_that_cannot_sign_are_refused() {
    assert!(
        Connector::new(
            b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            AllowedHosts::anywhere()
        )
        .is_err()
    );
    assert!(
        Connector::new(
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            AllowedHosts::anywhere()
        )
        .is_err()
    );
    assert!(Connector::new(b"", AllowedHosts::anywhere()).is_ok());
}
