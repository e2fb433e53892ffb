//! The certificate of the agent's API, new at every start.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The reasons why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Signing the certificate failed.
    #[error("cannot make a certificate for {address}")]
    Make { address: IpAddr, source: rcgen::Error },
    /// The TLS server rejects the certificate.
    #[error("cannot serve the certificate")]
    Serve(#[from] rustls::Error),
}

/// A self-signed certificate. The conductor learns it from the first heartbeat and trusts no other.
pub struct Certificate {
    /// The form that the heartbeat carries.
    pub pem: String,
    /// The form that the TLS server uses.
    pub server: Arc<ServerConfig>,
}

/// Makes a certificate for `address` (ECDSA on P-256).
pub fn for_address(address: IpAddr) -> Result<Certificate, CertificateError> {
    let make = |source| CertificateError::Make { address, source };
    let key = KeyPair::generate().map_err(make)?;
    let mut parameters = CertificateParams::default();
    parameters.subject_alt_names = vec![SanType::IpAddress(address)];
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "ramdisk-agent");
    // The clock of a new machine may be wrong by years, so the certificate is valid for a century.
    parameters.not_before = rcgen::date_time_ymd(2000, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2100, 1, 1);
    let certificate = parameters.self_signed(&key).map_err(make)?;
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let server =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
    Ok(Certificate { pem: certificate.pem(), server: Arc::new(server) })
}
