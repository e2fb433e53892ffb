//! TLS for a listener, with a certificate that may be exchanged while it serves.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error, info};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a client may take to agree on a connection.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How many may be about that at once.
const HANDSHAKES: usize = 512;

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
    fn acceptor(&self) -> Result<TlsAcceptor, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.served.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Looks at the files again and again.
    async fn follow(mut self, mut told: Signal) {
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

/// A listener of which only those connections are heard that agreed on TLS.
pub(crate) struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl TlsListener {
    pub(crate) fn new(listener: TcpListener, tls: Tls) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let acceptor = tls.acceptor().map_err(io::Error::other)?;
        let (sender, ready) = mpsc::channel(HANDSHAKES);
        // From here on SIGHUP ends nobody, even before it is first waited for.
        let told = signal(SignalKind::hangup())?;
        let tasks =
            [tokio::spawn(accept(listener, acceptor, sender)), tokio::spawn(tls.follow(told))];
        Ok(TlsListener { ready, address, _tasks: tasks.map(AbortOnDropHandle::new) })
    }
}

/// Agrees with each client apart, so that nobody waits for who is slow.
async fn accept(
    mut listener: TcpListener,
    acceptor: TlsAcceptor,
    ready: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let places = Arc::new(Semaphore::new(HANDSHAKES));
    while let Ok(place) = places.clone().acquire_owned().await {
        // axum's own accept, which outlives errors of single connections.
        let (stream, from) = Listener::accept(&mut listener).await;
        let (agreeing, ready) = (acceptor.accept(stream), ready.clone());
        tokio::spawn(async move {
            match tokio::time::timeout(HANDSHAKE, agreeing).await {
                Ok(Ok(stream)) => drop(ready.send((stream, from)).await),
                Ok(Err(why)) => debug!("{from} speaks no TLS that we do: {why}"),
                Err(_) => debug!("{from} took too long to agree on TLS"),
            }
            drop(place);
        });
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(accepted) => accepted,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
