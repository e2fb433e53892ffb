//! A small API server with TLS and its own authority, whose answers the test chooses.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubernetes::{Access, Client, Endpoint, Timeouts};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    /// `GET /path?query`.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The server's reaction to a request.
pub(crate) enum Reply {
    /// An answer with status and body.
    Json(u16, Value),
    /// The connection is closed without an answer.
    Lost,
    /// No answer, ever.
    Silence,
    /// A body without an end.
    Endless,
}

type Answerer = Box<dyn FnMut(&ReceivedRequest) -> Reply + Send>;

/// The server; it ends when the value is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) authority: Authority,
    state: Arc<Mutex<State>>,
}

struct State {
    asked: Vec<ReceivedRequest>,
    answerer: Answerer,
}

/// A certificate authority that signs certificates for tests.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Signs a certificate for a new key.
    pub(crate) fn sign(&self, names: &[&str]) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }
}

impl Server {
    /// Starts a server whose certificate has the name `api.c.example` and a documentation address.
    pub(crate) async fn start(
        answerer: impl FnMut(&ReceivedRequest) -> Reply + Send + 'static,
    ) -> Server {
        let authority = Authority::new();
        let (certificate, key) = authority.sign(&["api.c.example", "192.0.2.1"]);
        let mut roots = RootCertStore::empty();
        roots.add(authority.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answerer: Answerer = Box::new(answerer);
        let state = Arc::new(Mutex::new(State { asked: Vec::new(), answerer }));
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, state) = (acceptor.clone(), shared.clone());
                tokio::spawn(async move { serve(stream, acceptor, state).await });
            }
        });
        Server { address, authority, state }
    }

    /// Returns an access to the server by its name.
    pub(crate) fn access(&self) -> Access {
        let (certificate, key) = self.authority.sign(&["admin"]);
        Access {
            endpoint: Endpoint { host: "api.c.example".to_owned(), port: 6443 },
            connect_to: Some(self.address),
            authority: self.authority.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem().into(),
            timeouts: Timeouts {
                connect: Duration::from_millis(400),
                call: Duration::from_millis(400),
            },
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.access()).unwrap()
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.state.lock().unwrap().asked.clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    /// An address where nothing listens.
    pub(crate) fn nowhere() -> SocketAddr {
        SocketAddr::new(IpAddr::from([127, 0, 0, 1]), 1)
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, state: Arc<Mutex<State>>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let mut stream = BufReader::new(stream);
    while let Some(asked) = read(&mut stream).await {
        let reply = {
            let state = &mut *state.lock().unwrap();
            state.asked.push(asked.clone());
            (state.answerer)(&asked)
        };
        let whole = match reply {
            Reply::Lost => return,
            Reply::Silence => return std::future::pending().await,
            Reply::Endless => {
                let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"x\": \"";
                let _ = stream.write_all(head).await;
                while stream.write_all(&[b'x'; 65536]).await.is_ok() {}
                return;
            }
            Reply::Json(status, body) => {
                let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
                let date = "date: Thu, 01 Jan 2026 00:00:10 GMT";
                let length = body.len();
                format!(
                    "HTTP/1.1 {status} Told\r\n{date}\r\ncontent-length: {length}\r\n\r\n{body}"
                )
            }
        };
        if stream.write_all(whole.as_bytes()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TlsStream<TcpStream>>) -> Option<ReceivedRequest> {
    let line = head_line(stream).await?;
    let line = line.rsplit_once(' ')?.0.to_owned();
    let mut headers = Vec::new();
    loop {
        let line = head_line(stream).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut asked = ReceivedRequest { line, headers, body: Value::Null };
    if let Some(length) = asked.header("content-length") {
        let mut body = vec![0; length.parse().ok()?];
        stream.read_exact(&mut body).await.ok()?;
        asked.body = serde_json::from_slice(&body).unwrap_or_default();
    }
    Some(asked)
}

async fn head_line(stream: &mut BufReader<TlsStream<TcpStream>>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}
