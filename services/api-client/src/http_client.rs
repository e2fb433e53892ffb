//! The settings of the HTTP client that every client of the APIs shares.

use std::io;
use std::path::{Path, PathBuf};

use reqwest::{Certificate, ClientBuilder};

/// Why a file with CA certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("cannot read {path}", path = .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path} holds no certificate", path = .path.display())]
    NoCertificate { path: PathBuf, source: reqwest::Error },
}

/// Makes the builder of an HTTP client that uses no proxy, and trusts the CAs of the operating system and of the file `authorities`.
///
/// # Errors
///
/// Returns an error if the file cannot be read or contains no certificate.
pub fn http_client(authorities: Option<&Path>) -> Result<ClientBuilder, CertificateError> {
    let builder = reqwest::Client::builder().no_proxy();
    let Some(path) = authorities else { return Ok(builder) };
    let path = path.to_owned();
    let pem = match std::fs::read(&path) {
        Ok(pem) => pem,
        Err(source) => return Err(CertificateError::Unreadable { path, source }),
    };
    match Certificate::from_pem_bundle(&pem) {
        Ok(authorities) => Ok(builder.tls_certs_merge(authorities)),
        Err(source) => Err(CertificateError::NoCertificate { path, source }),
    }
}
