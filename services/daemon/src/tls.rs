//! TLS for a listener, with a certificate that may be exchanged while it serves.

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

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A certificate and its key, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Why a listener cannot speak TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is no PEM of what it should be.
    #[error("cannot read {what} in {}: {reason}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong; nothing of what the file holds.
        reason: String,
    },
    /// The two do not belong together, or rustls knows no such key.
    #[error("the certificate {} and its key cannot be served", path.display())]
    Pair {
        /// The certificate.
        path: PathBuf,
        /// What rustls said.
        source: rustls::Error,
    },
}

impl TlsFiles {
    /// Both, or neither.
    ///
    /// # Errors
    ///
    /// One was given without the other.
    pub fn new(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Option<Self>, &'static str> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err("key: is needed with certificate"),
            (None, Some(_)) => Err("certificate: is needed with key"),
        }
    }

    /// Reads the files, and has them read again when they change or on SIGHUP. What is wrong then is logged, and what was
    /// served is served on.
    pub fn open(self) -> Result<Tls, TlsError> {
        let changed = self.changed();
        let served = Arc::new(Served(RwLock::new(Arc::new(self.read()?))));
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

/// What a listener shows of itself.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    changed: [Option<SystemTime>; 2],
    served: Arc<Served>,
}

#[derive(Debug)]
struct Served(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Served {
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

    /// Looks at the files again and again. From here on SIGHUP ends nobody, even before it is first waited for.
    pub(crate) fn follow(self) -> io::Result<impl Future<Output = ()> + Send> {
        let told = signal(SignalKind::hangup())?;
        Ok(self.look(told))
    }

    async fn look(mut self, mut told: Signal) {
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => false,
                _ = told.recv() => true,
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
                    info!("serving the certificate that {path} holds now");
                }
                Err(why) => {
                    error!(
                        cause = why.source(),
                        "going on with the certificate before {path} changed: {why}"
                    );
                }
            }
        }
    }
}
