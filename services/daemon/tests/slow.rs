//! Clients that are slow, silent, too many, or unclear about the host they ask, over real sockets; and beside each one that is not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use daemon::{Connections, TlsFiles};
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Says that it is gone.
struct Told(mpsc::UnboundedSender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

async fn endless(State(gone): State<mpsc::UnboundedSender<()>>) -> Response {
    let told = Arc::new(Told(gone));
    let bytes = move |()| {
        let told = told.clone();
        async move { Some((Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 1 << 16])), (drop(told)))) }
    };
    Response::new(Body::from_stream(futures::stream::unfold((), bytes)))
}

async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_millis(900)).await;
    "done"
}

async fn read(body: Result<Bytes, BytesRejection>) -> String {
    match body {
        Ok(body) => format!("{} bytes", body.len()),
        Err(why) => format!("refused: {why:?}"),
    }
}

/// A listener with these limits, and who is told when an endless answer is given up.
async fn listening(limits: &str) -> (SocketAddr, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let at = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
    let (sender, gone) = mpsc::unbounded_channel();
    let router = Router::new()
        .route("/", get(async || "here"))
        .route("/slow", get(slow))
        .route("/endless", get(endless))
        .route("/read", post(read))
        .with_state(sender);
    let limits: Connections = toml::from_str(limits).unwrap();
    tokio::spawn(daemon::serve(listener, router, limits, CancellationToken::new()));
    (at, gone)
}

/// All that comes until the other side ends the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The next answer whose body is this.
async fn answered(stream: &mut TcpStream, body: &str) {
    let mut text = String::new();
    let reading = async {
        while !text.ends_with(body) {
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "it ended after {text:?}");
            text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

/// Sends a byte at a time until that fails, or the other side has ended the connection.
async fn dribble(stream: TcpStream, bytes: &'static [u8]) -> String {
    let (mut reader, mut writer) = stream.into_split();
    let writing = tokio::spawn(async move {
        for byte in bytes.iter().cycle() {
            if writer.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut said = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, reader.read_to_end(&mut said)).await.unwrap();
    writing.abort();
    String::from_utf8(said).unwrap()
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_not_waited_for() {
    let (at, _) = listening("header_timeout = '300ms'").await;
    let slow =
        tokio::spawn(dribble(TcpStream::connect(at).await.unwrap(), b"GET / HTTP/1.1\r\nx: "));
    let mut quick = TcpStream::connect(at).await.unwrap();
    for part in ["GET / HT", "TP/1.1\r\nhost: ", "x\r\n\r\n"] {
        quick.write_all(part.as_bytes()).await.unwrap();
    }
    answered(&mut quick, "here").await;
    assert_eq!(slow.await.unwrap(), "");
}

#[tokio::test]
async fn a_second_head_is_not_waited_for_either() {
    let (at, _) = listening("header_timeout = '300ms'\nidle_timeout = '1h'").await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    answered(&mut stream, "here").await;
    assert_eq!(dribble(stream, b"GET / HTTP/1.1\r\nx: ").await, "");
}

#[tokio::test]
async fn who_says_nothing_is_let_go() {
    let (at, _) = listening("header_timeout = '200ms'").await;
    assert_eq!(rest(&mut TcpStream::connect(at).await.unwrap()).await, "");
}

#[tokio::test]
async fn a_connection_rests_between_requests_and_not_for_ever() {
    let (at, _) = listening("header_timeout = '200ms'\nidle_timeout = '2s'").await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    for _ in 0..2 {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        answered(&mut stream, "here").await;
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    answered(&mut stream, "here").await;
    assert_eq!(rest(&mut stream).await, "");
}

#[tokio::test]
async fn without_rest_each_connection_is_for_one_request() {
    let (at, _) = listening("idle_timeout = '0s'").await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.ends_with("here"));
}

#[tokio::test]
async fn who_waits_for_a_slow_answer_is_not_slow() {
    let limits = "header_timeout = '200ms'\nidle_timeout = '200ms'\nanswer_timeout = '200ms'\nbody_timeout = '200ms'";
    let (at, _) = listening(limits).await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    answered(&mut stream, "done").await;
}

#[tokio::test]
async fn a_body_that_pauses_is_given_up_and_its_handler_told_why() {
    let (at, _) = listening("body_timeout = '300ms'").await;
    let head = b"POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n";
    let mut whole = TcpStream::connect(at).await.unwrap();
    whole.write_all(head).await.unwrap();
    for part in [b"01234", b"56789"] {
        whole.write_all(part).await.unwrap();
    }
    answered(&mut whole, "10 bytes").await;
    let mut half = TcpStream::connect(at).await.unwrap();
    half.write_all(head).await.unwrap();
    half.write_all(b"01234").await.unwrap();
    let said = rest(&mut half).await;
    assert!(said.contains("refused") && said.contains("TimedOut"), "{said}");
}

#[tokio::test]
async fn a_body_that_comes_byte_by_byte_is_given_up() {
    let (at, _) = listening("body_timeout = '500ms'\nslowest_body = 1024").await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream
        .write_all(b"POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n")
        .await
        .unwrap();
    let said = dribble(stream, b"x").await;
    assert!(said.contains("refused") && said.contains("TimedOut"), "{said}");
}

#[tokio::test]
async fn who_does_not_read_its_answer_is_cut_off() {
    let (at, mut gone) = listening("answer_timeout = '300ms'").await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    tokio::time::timeout(PATIENCE, gone.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_others_have_theirs() {
    let (at, _) = listening("from_one_address = 2").await;
    let connect = async |from: [u8; 4]| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((from, 0))).unwrap();
        socket.connect(at).await.unwrap()
    };
    let ask = async |stream: &mut TcpStream| {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        answered(stream, "here").await;
    };
    let (mut first, mut second) = (connect([127, 0, 0, 1]).await, connect([127, 0, 0, 1]).await);
    ask(&mut first).await;
    ask(&mut second).await;
    assert_eq!(rest(&mut connect([127, 0, 0, 1]).await).await, "");
    ask(&mut connect([127, 0, 0, 2]).await).await;
    ask(&mut first).await;
    drop(second);
    // The listener hears of it soon.
    let again = async {
        loop {
            let mut stream = connect([127, 0, 0, 1]).await;
            let sent = stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await;
            if sent.is_ok() && rest(&mut stream).await.ends_with("here") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn so_many_are_served_at_once_and_the_next_one_waits() {
    let (at, _) = listening("at_most = 1\nidle_timeout = '1h'\nheader_timeout = '1h'").await;
    let request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut first = TcpStream::connect(at).await.unwrap();
    first.write_all(request).await.unwrap();
    answered(&mut first, "here").await;
    let mut second = TcpStream::connect(at).await.unwrap();
    second.write_all(request).await.unwrap();
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(300), second.peek(&mut byte)).await;
    assert!(early.is_err(), "it was served beside the first");
    drop(first);
    answered(&mut second, "here").await;
}

#[tokio::test]
async fn who_does_not_agree_on_tls_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    let made = KeyPair::generate().unwrap();
    let shown = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&made);
    std::fs::write(&certificate, shown.unwrap().pem()).unwrap();
    std::fs::write(&key, made.serialize_pem()).unwrap();
    let tls = TlsFiles::new(Some(certificate), Some(key)).unwrap().unwrap().open().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let limits: Connections = toml::from_str("handshake_timeout = '200ms'").unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(daemon::serve_api(listener, Some(tls), Router::new(), limits, stop));
    assert_eq!(rest(&mut TcpStream::connect(at).await.unwrap()).await, "");
}

#[tokio::test]
async fn a_request_that_does_not_say_once_which_host_it_is_for_is_refused() {
    let (at, _) = listening("").await;
    let status = async |request: &str| {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let close = "connection: close\r\n\r\n";
    for (version, hosts, want) in [
        ("1.1", "host: x\r\n", "200"),
        ("1.1", "", "400"),
        ("1.1", "host: x\r\nhost: x\r\n", "400"),
        ("1.1", "host: x\r\nHost: evil.example\r\n", "400"),
        ("1.0", "", "200"),
        ("1.0", "host: x\r\nhost: y\r\n", "400"),
    ] {
        let got = status(&format!("GET / HTTP/{version}\r\n{hosts}{close}")).await;
        assert_eq!(got, want, "HTTP/{version} with {hosts:?}");
    }
    // The address in the request line does not stand in for the header.
    let got = status(&format!("GET http://x/ HTTP/1.1\r\n{close}")).await;
    assert_eq!(got, "400");
}
