//! TLS for a listener, with a certificate that can be replaced while the listener serves.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_rustls::TlsAcceptor;
use tracing::{error, info};

/// How often the files are checked for a change.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The PEM files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by the intermediate certificates.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Why a listener cannot serve TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {what} from {}: {reason}", path.display())]
    File {
        path: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The reason, without any content of the file.
        reason: String,
    },
    /// The key does not belong to the certificate, or rustls does not support it.
    #[error("cannot serve the certificate {} with its key", path.display())]
    Pair { path: PathBuf, source: rustls::Error },
}

impl TlsFiles {
    /// Combines two optional settings.
    ///
    /// # Errors
    ///
    /// Only one of the two is set.
    pub fn new(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Option<Self>, &'static str> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err("key: required with certificate"),
            (None, Some(_)) => Err("certificate: required with key"),
        }
    }

    /// Reads the files. While the returned [`Tls`] is served, the files are reloaded when they change or on SIGHUP; if the new content
    /// cannot be served, an error is logged and the old certificate stays in use.
    pub fn open(self) -> Result<Tls, TlsError> {
        let changed = self.changed();
        let served = Arc::new(CurrentCertificate(RwLock::new(Arc::new(self.read()?))));
        Ok(Tls { files: self, changed, served })
    }

    fn read(&self) -> Result<CertifiedKey, TlsError> {
        let wrong = |path: &Path, what| {
            let path = path.to_owned();
            move |why: rustls::pki_types::pem::Error| {
                let reason = if let rustls::pki_types::pem::Error::Io(why) = why {
                    why.to_string()
                } else {
                    "it is not PEM".to_owned()
                };
                TlsError::File { path, what, reason }
            }
        };
        let chain = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(wrong(&self.certificate, "certificates"))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(wrong(&self.key, "a key"))?;
        CertifiedKey::from_der(chain, key, &default_provider())
            .map_err(|source| TlsError::Pair { path: self.certificate.clone(), source })
    }

    fn changed(&self) -> [Option<SystemTime>; 2] {
        let time = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
        [time(&self.certificate), time(&self.key)]
    }
}

/// The certificate of a listener, and the files to reload it from.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    changed: [Option<SystemTime>; 2],
    served: Arc<CurrentCertificate>,
}

#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Tls {
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.served.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Returns the task that reloads the files. Calling this registers the handler for SIGHUP, so from here on SIGHUP no longer ends the
    /// process.
    pub(crate) fn follow(self) -> io::Result<impl Future<Output = ()> + Send> {
        let reported = signal(SignalKind::hangup())?;
        Ok(self.look(reported))
    }

    async fn look(mut self, mut reported: Signal) {
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => false,
                _ = reported.recv() => true,
            };
            let changed = self.files.changed();
            if changed == self.changed && !asked {
                continue;
            }
            self.changed = changed;
            let path = self.files.certificate.display();
            match self.files.read() {
                Ok(read) => {
                    *self.served.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
                    info!("reloaded the certificate {path}");
                }
                Err(why) => {
                    error!(
                        cause = why.source(),
                        "cannot reload the certificate {path}, keeping the old one: {why}"
                    );
                }
            }
        }
    }
}
