//! The certificate of the listener for members, and the certificate authority that members trust.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use url::{Host, Url};

use crate::config::CertificateFiles;

/// The certificate of the listener.
pub struct Certificate {
    /// The acceptor for the server.
    pub tls: TlsAcceptor,
    /// The certificate authority that members trust, as PEM.
    pub authority: String,
}

/// Why the listener has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("cannot read or write {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} does not contain {what} in PEM", path.display())]
    Pem { path: PathBuf, what: &'static str },
    #[error("cannot make a certificate for {host}")]
    Make {
        /// The host name of the certificate.
        host: String,
        source: rcgen::Error,
    },
    /// The key does not belong to the certificate, or TLS does not accept one of the two.
    #[error("TLS cannot use the certificate and the key")]
    Serve(#[from] rustls::Error),
}

/// Returns the certificate in `files`, or a certificate that clusterd's own certificate authority signs.
///
/// clusterd's own authority is created at the first start and kept in the state folder.
pub fn certificate(
    files: Option<&CertificateFiles>,
    url: &Url,
    state: &Path,
) -> Result<Certificate, CertificateError> {
    match files {
        Some(files) => read_certificate(files),
        None => make_certificate(url, &state.join("nodes.authority")),
    }
}

/// Reads the certificate, key and certificate authority from files.
pub fn read_certificate(files: &CertificateFiles) -> Result<Certificate, CertificateError> {
    let read = |path: &Path| fs::read(path).map_err(|source| file_error(path, source));
    let chain = certificates(&files.certificate, &read(&files.certificate)?)?;
    let key = key(&files.key, &read(&files.key)?)?;
    let authority = read(&files.ca_file)?;
    certificates(&files.ca_file, &authority)?;
    let authority = String::from_utf8_lossy(&authority).into_owned();
    Ok(Certificate { tls: acceptor(chain, key)?, authority })
}

/// Makes a certificate for the host of `url` at every start. The certificate authority stays the same, because members were created with
/// it.
fn make_certificate(url: &Url, file: &Path) -> Result<Certificate, CertificateError> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let make = |source| CertificateError::Make { host: host.clone(), source };
    let kept = daemon::read_or_create(file, || {
        authority().map_err(io::Error::other).map(String::into_bytes)
    });
    let kept = kept.map_err(|source| file_error(file, source))?;
    let pem = String::from_utf8_lossy(&kept);
    let (Some(begin), true) = (pem.find("-----BEGIN CERTIFICATE"), pem.contains("PRIVATE KEY"))
    else {
        let (path, what) = (file.to_owned(), "a key and a certificate");
        return Err(CertificateError::Pem { path, what });
    };
    let (key_pem, authority) = pem.split_at(begin);
    let issuer_key = KeyPair::from_pem(key_pem).map_err(make)?;
    let issuer = Issuer::from_ca_cert_pem(authority, issuer_key).map_err(make)?;

    let mut parameters = parameters("clusterd");
    parameters.subject_alt_names = vec![match url.host() {
        Some(Host::Ipv4(address)) => SanType::IpAddress(address.into()),
        Some(Host::Ipv6(address)) => SanType::IpAddress(address.into()),
        Some(Host::Domain(_)) | None => SanType::DnsName(host.as_str().try_into().map_err(make)?),
    }];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.use_authority_key_identifier_extension = true;
    let own_key = KeyPair::generate().map_err(make)?;
    let certificate = parameters.signed_by(&own_key, &issuer).map_err(make)?;
    let private = own_key.serialize_pem();
    let chain = vec![certificate.der().clone()];
    let key = key(file, private.as_bytes())?;
    Ok(Certificate { tls: acceptor(chain, key)?, authority: authority.to_owned() })
}

/// Returns the key and certificate of a new certificate authority, as PEM.
fn authority() -> Result<String, rcgen::Error> {
    let mut parameters = parameters("clusterd's machines");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let made = CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?;
    Ok(format!("{}{}", made.key().serialize_pem(), made.pem()))
}

fn parameters(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    // A member fetches its config before it has set its clock, so the certificate has to be valid at any date.
    parameters.not_before = date_time_ymd(2000, 1, 1);
    parameters.not_after = date_time_ymd(2100, 1, 1);
    parameters
}

fn acceptor(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<TlsAcceptor, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.ok().filter(|read| !read.is_empty());
    read.ok_or_else(|| CertificateError::Pem { path: path.to_owned(), what: "certificates" })
}

fn key(path: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let read = PrivateKeyDer::from_pem_slice(pem);
    read.map_err(|_| CertificateError::Pem { path: path.to_owned(), what: "a private key" })
}

fn file_error(path: &Path, source: io::Error) -> CertificateError {
    CertificateError::File { path: path.to_owned(), source }
}
