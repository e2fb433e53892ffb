//! The TLS certificate of the API server, and client certificates.

use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::layout::Layout;

/// The reason why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("certificate or key: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("verifier: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// A TLS acceptor with a certificate signed by the cluster's CA. Client certificates must be signed by the same CA.
pub(super) fn acceptor(layout: &Layout, authority_key: &str) -> Result<TlsAcceptor, Unusable> {
    let issuer = Issuer::from_ca_cert_pem(&layout.authority, KeyPair::from_pem(authority_key)?)?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(layout.called.clone())?;
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.signed_by(&key, &issuer)?;

    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(layout.authority.as_bytes()) {
        roots.add(authority?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate.der().clone()], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
