//! The agent's self-signed certificate, new at each start.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate, and the TLS acceptor that uses it.
pub(super) struct Identity {
    pub(super) pem: String,
    pub(super) acceptor: TlsAcceptor,
}

impl Identity {
    /// Makes a certificate (P-256) for `address`.
    pub(super) fn for_address(address: Ipv4Addr) -> io::Result<Identity> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let mut parameters = CertificateParams::default();
        parameters.subject_alt_names.push(SanType::IpAddress(IpAddr::from(address)));
        let certificate = parameters.self_signed(&key).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(io::Error::other)?;
        Ok(Identity { pem: certificate.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) })
    }
}
