//! The HTTP client of a session, and errors for requests without an answer.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tracing::warn;

use crate::config::{ConfigError, Tls};
use crate::error::{CloudError, Request};
use crate::service::Service;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be silent while an answer is awaited or an image is uploaded. Glance answers an upload only once it has stored
/// the whole image.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(300);
/// Proxies in front of OpenStack close connections that are idle for a minute, often sooner.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// The most idle connections to one address that are kept: each takes tens of KiB, and hundreds are opened when many operations start at
/// once.
const IDLE_EACH: usize = 64;

/// Makes a client that accepts the certificates that `tls` permits.
pub(super) fn client(tls: &Tls) -> Result<Client, ConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring offers suites for TLS 1.2 and 1.3");
    let config = match tls {
        Tls::Verified { authorities } => {
            builder.with_root_certificates(roots(authorities.as_deref())?).with_no_client_auth()
        }
        Tls::Unverified => {
            let verifier = Arc::new(Unverified(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    let client = Client::builder()
        .tls_backend_preconfigured(config)
        .user_agent("bedplate")
        // A redirect would send the token to another host.
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(SILENCE_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_EACH)
        .build()?;
    Ok(client)
}

fn roots(authorities: Option<&Path>) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        warn!("some of the system's certificate authorities are left out: {error}");
    }
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = authorities {
        let unusable = |reason: String| ConfigError::Authorities { path: path.to_owned(), reason };
        let pem = fs::read(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
        }
        if roots.len() == before {
            return Err(unusable("it has no certificate".to_owned()));
        }
    }
    Ok(roots)
}

/// Makes the error for a request without an answer. The URL is left out, because its query may hold a secret.
pub(super) fn no_answer(
    service: Service,
    host: &str,
    request: &Request,
    timeout: Duration,
    error: &reqwest::Error,
) -> CloudError {
    let request = request.clone();
    if error.is_timeout() {
        let reason = format!("none within {} s", timeout.as_secs_f32());
        return CloudError::Unreachable { service, request, reason };
    }
    let mut reason = None;
    let mut cause = error.source();
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        // `io::Error::source` skips the wrapped error itself, so the wrapped error is looked at first.
        let wrapped = io.and_then(std::io::Error::get_ref).map(|wrapped| wrapped as _);
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            let host = host.to_owned();
            return CloudError::Untrusted { service, host, reason: tls.to_string() };
        }
        reason = Some(error.to_string());
        cause = wrapped.or_else(|| error.source());
    }
    let reason = reason.unwrap_or_else(|| "the request could not be sent".to_owned());
    CloudError::Unreachable { service, request, reason }
}

/// Accepts any certificate, because the configuration says so.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
