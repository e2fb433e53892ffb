//! Clients that are slow, silent, too many, or send a wrong `Host`, over real sockets; each test also checks that a well-behaved client is
//! served.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, State};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use daemon::{ConnectionLimits, TlsFiles};
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Longer than anything in these tests takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reports on drop that the response was dropped.
struct DropReporter(mpsc::UnboundedSender<()>);

impl Drop for DropReporter {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

async fn endless(State(gone): State<mpsc::UnboundedSender<()>>) -> Response {
    let reported = Arc::new(DropReporter(gone));
    let bytes = move |()| {
        let reported = reported.clone();
        async move {
            Some((Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 1 << 16])), (drop(reported))))
        }
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

/// Starts a listener with these limits. The receiver gets a message when an endless response is dropped.
async fn listening(limits: &str) -> (SocketAddr, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let at = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
    let (sender, gone) = mpsc::unbounded_channel();
    let router = Router::new()
        .route("/", get(async || "here"))
        .route("/slow", get(slow))
        .route("/endless", get(endless))
        .route("/read", post(read))
        .route("/client", get(async |ConnectInfo(from): ConnectInfo<SocketAddr>| from.to_string()))
        .with_state(sender);
    let limits: ConnectionLimits = toml::from_str(limits).unwrap();
    tokio::spawn(daemon::serve(listener, router, limits, CancellationToken::new()));
    (at, gone)
}

/// Reads until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection reset also counts as the end.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads until the response ends with `body`, and checks that its status is 200.
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

/// Sends one byte at a time until sending fails or the server closes the connection; returns the response.
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
async fn a_head_sent_byte_by_byte_times_out() {
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
async fn a_load_balancer_tells_who_the_client_is() {
    let (at, _) = listening(
        "proxy_protocol_from = ['127.0.0.1']\nheader_timeout = '300ms'\nfrom_one_address = 1",
    )
    .await;
    let ask = "GET /client HTTP/1.1\r\nhost: x\r\n\r\n";
    let connect = async |header: &str| {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(format!("{header}{ask}").as_bytes()).await.unwrap();
        stream
    };
    let mut first = connect("PROXY TCP4 192.0.2.1 127.0.0.1 4711 80\r\n").await;
    answered(&mut first, "192.0.2.1:4711").await;
    // The clients are counted, and not the load balancer.
    let mut other = connect("PROXY TCP4 192.0.2.2 127.0.0.1 4712 80\r\n").await;
    answered(&mut other, "192.0.2.2:4712").await;
    let mut second = connect("PROXY TCP4 192.0.2.1 127.0.0.1 4713 80\r\n").await;
    assert_eq!(rest(&mut second).await, "");
    // A connection without a header is closed, and so is one that sends nothing.
    let mut direct = connect("").await;
    assert_eq!(rest(&mut direct).await, "");
    let mut silent = TcpStream::connect(at).await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
}

#[tokio::test]
async fn the_second_head_on_a_connection_times_out_too() {
    let (at, _) = listening("header_timeout = '300ms'\nidle_timeout = '1h'").await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    answered(&mut stream, "here").await;
    assert_eq!(dribble(stream, b"GET / HTTP/1.1\r\nx: ").await, "");
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let (at, _) = listening("header_timeout = '200ms'").await;
    assert_eq!(rest(&mut TcpStream::connect(at).await.unwrap()).await, "");
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_a_while_and_then_closed() {
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
async fn with_no_idle_time_a_connection_serves_one_request() {
    let (at, _) = listening("idle_timeout = '0s'").await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.ends_with("here"));
}

#[tokio::test]
async fn a_client_that_waits_for_a_slow_answer_does_not_time_out() {
    let limits = "header_timeout = '200ms'\nidle_timeout = '200ms'\nanswer_timeout = '200ms'\nbody_timeout = '200ms'";
    let (at, _) = listening(limits).await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    answered(&mut stream, "done").await;
}

#[tokio::test]
async fn a_body_that_pauses_times_out_in_the_handler() {
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
async fn a_body_sent_byte_by_byte_times_out() {
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
async fn a_client_that_does_not_read_its_answer_is_disconnected() {
    let (at, mut gone) = listening("answer_timeout = '300ms'").await;
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    tokio::time::timeout(PATIENCE, gone.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_limit_of_one_address_does_not_affect_other_addresses() {
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
    // The listener notices the closed connection after a moment, so the client retries.
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
async fn beyond_the_limit_the_next_connection_waits() {
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
async fn an_unfinished_tls_handshake_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    let made = KeyPair::generate().unwrap();
    let shown = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&made);
    std::fs::write(&certificate, shown.unwrap().pem()).unwrap();
    std::fs::write(&key, made.serialize_pem()).unwrap();
    let tls = TlsFiles::new(Some(certificate), Some(key)).unwrap().unwrap().open().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let limits: ConnectionLimits = toml::from_str("handshake_timeout = '200ms'").unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(daemon::serve_api(listener, Some(tls), Router::new(), limits, stop));
    assert_eq!(rest(&mut TcpStream::connect(at).await.unwrap()).await, "");
}

#[tokio::test]
async fn a_request_without_exactly_one_host_header_is_refused() {
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
    // The address in the request line does not replace the header.
    let got = status(&format!("GET http://x/ HTTP/1.1\r\n{close}")).await;
    assert_eq!(got, "400");
}
