//! Certificates: one for all machines of a process, or one per machine if the spec asks for it.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// The most addresses in one certificate: a TLS certificate message holds 64 KiB, and each client reads all of it.
pub(crate) const ADDRESSES_EACH: usize = 256;

/// A certificate, and the TLS acceptor that uses it.
#[derive(Clone)]
pub struct Identity {
    pub pem: Arc<str>,
    /// Accepts TLS connections with the certificate.
    pub acceptor: TlsAcceptor,
}

impl Identity {
    /// A new self-signed certificate for `addresses` and `localhost`.
    pub fn for_addresses(addresses: &BTreeSet<IpAddr>) -> io::Result<Identity> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let mut params =
            CertificateParams::new(["localhost".to_owned()]).map_err(io::Error::other)?;
        params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
        let certificate = params.self_signed(&key).map_err(io::Error::other)?;

        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(io::Error::other)?
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], key)
                .map_err(io::Error::other)?;
        // OpenSSL, which most BMCs use, sends tickets that hold the session, because the BMC keeps none.
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(io::Error::other)?;
        Ok(Identity {
            pem: certificate.pem().into(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }
}
