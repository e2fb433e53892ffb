//! A TLS listener, tested with a client that verifies certificates.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use daemon::{ConnectionLimits, Tls, TlsFiles};
use rcgen::{CertificateParams, KeyPair};
use reqwest::{Certificate, Client};
use rustix::process::{Signal, getpid, kill_process};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Writes a new self-signed certificate for `localhost` to the files, and returns it for the client to trust.
fn issue(files: &TlsFiles) -> Certificate {
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    fs::write(&files.certificate, made.pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    Certificate::from_pem(made.pem().as_bytes()).unwrap()
}

fn files(folder: &Path) -> TlsFiles {
    let (certificate, key) = (folder.join("c.pem"), folder.join("k.pem"));
    TlsFiles::new(Some(certificate), Some(key)).unwrap().unwrap()
}

/// A client that trusts this certificate and no other.
fn believing(certificate: &Certificate) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().tls_certs_only([certificate.clone()]);
    client.build().unwrap()
}

/// Starts a listener and returns its URL, the token that stops it, and its task.
async fn serving(tls: Tls, router: Router) -> (String, CancellationToken, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let stop = CancellationToken::new();
    let serving =
        daemon::serve_api(listener, Some(tls), router, ConnectionLimits::default(), stop.clone());
    (url, stop, tokio::spawn(async { serving.await.unwrap() }))
}

fn here() -> Router {
    Router::new().route("/", get(async || "here"))
}

/// Waits until a client that trusts only this certificate gets an answer.
async fn until_shown(certificate: &Certificate, url: &str) {
    let shown = async {
        while believing(certificate).get(url).send().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), shown).await.unwrap();
}

#[tokio::test]
async fn a_certificate_is_replaced_while_the_listener_serves() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let first = issue(&files);
    let tls = files.clone().open().unwrap();
    let (url, stop, serving) = serving(tls, here()).await;

    let kept = believing(&first);
    assert_eq!(kept.get(&url).send().await.unwrap().text().await.unwrap(), "here");
    let second = issue(&files);
    until_shown(&second, &url).await;
    believing(&first).get(&url).send().await.unwrap_err();
    kept.get(&url).send().await.expect("the connection that was stays");
    let plain = url.replace("https", "http");
    Client::builder().no_proxy().build().unwrap().get(plain).send().await.unwrap_err();
    stop.cancel();
    serving.await.unwrap();
}

/// Collects the log output.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_broken_certificate_does_not_replace_the_served_one() {
    let log = Log::default();
    let writer = log.clone();
    let logging = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let _logging = logging.set_default();
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let first = issue(&files);
    let (url, ..) = serving(files.clone().open().unwrap(), here()).await;
    until_shown(&first, &url).await;

    let written = fs::metadata(&files.certificate).unwrap().modified().unwrap();
    fs::write(&files.certificate, "canary: no certificate").unwrap();
    // The modification time is set back, so only the signal can trigger the reload.
    let file = fs::File::options().append(true).open(&files.certificate).unwrap();
    file.set_modified(written).unwrap();
    kill_process(getpid(), Signal::HUP).unwrap();
    let reported = async {
        while !log.text().contains("ERROR") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reported).await.unwrap();
    let text = log.text();
    assert!(text.contains("cannot reload the certificate") && text.contains("c.pem"), "{text}");
    assert!(!text.contains("canary"), "{text}");
    believing(&first).get(&url).send().await.expect("the one that was is served on");

    let mended = issue(&files);
    until_shown(&mended, &url).await;
}

#[tokio::test]
async fn handlers_get_the_address_of_the_client() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let certificate = issue(&files);
    let who = async |ConnectInfo(from): ConnectInfo<SocketAddr>| from.ip().to_string();
    let router = Router::new().route("/", get(who));
    let (secure, ..) = serving(files.open().unwrap(), router.clone()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(daemon::serve_api(
        listener,
        None,
        router,
        ConnectionLimits::default(),
        CancellationToken::new(),
    ));

    let _ = rustls::crypto::ring::default_provider().install_default();
    let elsewhere = Client::builder().no_proxy().tls_certs_only([certificate]);
    let elsewhere = elsewhere.local_address(Some([127, 0, 0, 2].into())).build().unwrap();
    for url in [secure, plain] {
        let reported = elsewhere.get(&url).send().await.unwrap().text().await.unwrap();
        assert_eq!(reported, "127.0.0.2", "{url}");
    }
}

#[tokio::test]
async fn files_that_cannot_be_served_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let why = files.clone().open().unwrap_err().to_string();
    assert!(why.contains("c.pem") && why.contains("No such file"), "{why}");
    issue(&files);
    fs::write(&files.key, "secret").unwrap();
    let why = files.clone().open().unwrap_err().to_string();
    assert!(why.contains("k.pem") && !why.contains("secret"), "{why}");
    fs::write(&files.key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let why = files.open().unwrap_err().to_string();
    assert!(why.contains("cannot serve the certificate"), "{why}");
}
