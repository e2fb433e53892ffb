//! TLS trust: the certificate authorities of the system, and further ones from a file.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::SetupError;

/// Reads the certificates in a PEM file; none if `path` is `None`.
pub(crate) fn authorities(path: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let pem = std::fs::read(path)
        .map_err(|source| SetupError::Unreadable { path: path.to_owned(), source })?;
    let unusable = || SetupError::NoCertificate { path: path.to_owned() };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    all.ok().filter(|all| !all.is_empty()).ok_or_else(unusable)
}

/// Returns a TLS client configuration that trusts the system's certificate authorities and the certificates in `also`.
pub(crate) fn client(also: &[CertificateDer<'static>]) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in also {
        roots.add(certificate.clone())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
