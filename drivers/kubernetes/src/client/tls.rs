//! The HTTP client: address, trusted authority, and client certificate.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use secrecy::ExposeSecret;
use url::Url;

use crate::access::{Access, AccessError, Endpoint};

/// Load balancers drop connections that are idle for a minute, often sooner. There is a client for each cluster, and most are used again
/// either at once or after a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of cached TLS sessions. One server needs few; the usual 256 would double the size of a client.
const SESSIONS: usize = 8;

/// Returns the base URL of requests.
pub(super) fn base(access: &Access) -> Result<Url, AccessError> {
    let Endpoint { host, port } = &access.endpoint;
    let reached = match (host.parse::<IpAddr>(), access.connect_to) {
        (Ok(_), Some(there)) => Endpoint { host: there.ip().to_string(), port: there.port() },
        // The host name stays in the URL, because it is needed before TLS starts (SNI); `resolve` maps it to the address.
        (Err(_), Some(there)) => Endpoint { host: host.clone(), port: there.port() },
        (_, None) => Endpoint { host: host.clone(), port: *port },
    };
    let url = Url::parse(&format!("https://{reached}/")).map_err(|_| invalid(host))?;
    // A host text with more parts, such as a path or a user, would lead to another URL.
    let whole = url.path() == "/" && url.username().is_empty() && url.query().is_none();
    if whole { Ok(url) } else { Err(invalid(host)) }
}

pub(super) fn http(access: &Access) -> Result<reqwest::Client, AccessError> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(config(access)?)
        .user_agent("bedplate")
        // A redirect would send our client certificate to another host.
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .retry(reqwest::retry::never())
        .connect_timeout(access.timeouts.connect)
        .timeout(access.timeouts.call)
        .pool_idle_timeout(IDLE_TIMEOUT);
    if let Some(there) = access.connect_to {
        builder = builder.resolve(&access.endpoint.host, there);
    }
    Ok(builder.build()?)
}

fn config(access: &Access) -> Result<ClientConfig, AccessError> {
    let unusable = |what: &'static str| {
        move |error: &dyn std::fmt::Display| AccessError::Pem { what, reason: error.to_string() }
    };
    let authority = unusable("the cluster's authority");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(access.authority.as_bytes()) {
        let certificate = certificate.map_err(|error| authority(&error))?;
        roots.add(certificate).map_err(|error| authority(&error))?;
    }
    if roots.is_empty() {
        return Err(authority(&"it has no certificate"));
    }
    let own = unusable("the client's certificate");
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(access.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| own(&error))?;
    let key = PrivateKeyDer::from_pem_slice(access.key.expose_secret().as_bytes());
    // The parser's error is dropped, because it may quote the key.
    let key = key.map_err(|_| unusable("the client's key")(&"it is not a private key in PEM"))?;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let name = ServerName::try_from(access.endpoint.host.clone());
    let name = name.map_err(|_| invalid(&access.endpoint.host))?;
    let judge = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let judge = judge.build().map_err(|error| authority(&error))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring offers suites for TLS 1.2 and 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(NameVerifier { name, judge }))
        .with_client_auth_cert(certificates, key)
        .map_err(|error| own(&error))?;
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(config)
}

fn invalid(host: &str) -> AccessError {
    AccessError::Host { host: host.chars().take(100).collect() }
}

/// Verifies a certificate against the API's host name, because the connection may go to another address.
#[derive(Debug)]
struct NameVerifier {
    name: ServerName<'static>,
    judge: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for NameVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _connected_to: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.judge.verify_server_cert(end_entity, intermediates, &self.name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.judge.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.judge.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.judge.supported_verify_schemes()
    }
}
