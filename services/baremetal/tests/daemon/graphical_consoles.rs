//! Graphical consoles through their WebSocket. The tests play the VNC server of the BMC, or start QEMU's.

#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::process::Stdio;
use std::time::Duration;

use futures::SinkExt;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use websocket::{CloseCode, Message, Socket};

use crate::consoles::{NODE, TestDaemon, closed, next};

const LOCAL: &str = "[bmc]\nnetworks = ['127.0.0.0/8']\n";
/// The password of the BMC's VNC server. No viewer gets it, and it is stored sealed.
const PASSWORD: &str = "vnc-k3y8";
const OPEN: &str = "Open a node's graphical console (WebSocket)";
const CLOSE: &str = "Close a node's graphical console";
/// The bytes that a viewer without a password gets before the screen: version, security types, result.
const GREETING: &[u8] = b"RFB 003.008\n\x01\x01\0\0\0\0";

/// Starts a service with a node whose VNC server is at this port.
async fn service(port: u16, more: &str) -> TestDaemon {
    let folder = tempfile::tempdir().unwrap();
    let given = TestDaemon::serve(folder, &format!("{more}{LOCAL}")).await;
    let info = json!({
        "redfish_address": "http://127.0.0.1:9", "vnc_address": format!("127.0.0.1:{port}"),
        "vnc_password": PASSWORD,
    });
    let body = json!({
        "uuid": NODE, "driver": "redfish", "console_interface": "bmc-vnc", "driver_info": info,
    });
    assert_eq!(given.send(Method::POST, "/v1/nodes", &body).await.0, 201);
    given
}

/// Returns the URL of the console, as a client of Ironic reads it.
async fn url(given: &TestDaemon) -> String {
    let path = format!("/v1/nodes/{NODE}/states/console");
    let (_, text) = given.send(Method::GET, &path, &Value::Null).await;
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["console_info"]["type"], "vnc", "{text}");
    shown["console_info"]["url"].as_str().unwrap().to_owned()
}

/// Opens a URL as the page of another website does, without any header of ours.
async fn open(url: &str) -> Result<Socket, u16> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.get(url.replacen("ws://", "http://", 1));
    let request = request.header("origin", "https://tools.example");
    let request = request.header("sec-fetch-site", "cross-site");
    let request = request.header("sec-websocket-protocol", "binary");
    let (request, asked) = websocket::upgrade_request(request);
    let answer = request.send().await.unwrap();
    if !websocket::is_open(&answer) {
        return Err(answer.status().as_u16());
    }
    assert_eq!(answer.headers()["sec-websocket-protocol"], "binary");
    Ok(asked.open(answer).await.unwrap())
}

/// Sends the viewer's part of the handshake: version, security type, exclusive access.
async fn greet(socket: &mut Socket) {
    socket.send(Message::Binary("RFB 003.008\n\u{1}\u{0}".into())).await.unwrap();
}

/// Reads bytes of the screen until there are this many.
async fn reads(socket: &mut Socket, length: usize) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < length {
        match next(socket).await {
            Message::Binary(piece) => read.extend_from_slice(&piece),
            Message::Ping(_) => {}
            other @ (Message::Text(_)
            | Message::Pong(_)
            | Message::Close(_)
            | Message::Frame(_)) => panic!("{other:?} after {read:?}"),
        }
    }
    read
}

/// The VNC server of a BMC that needs no password.
struct Bmc(TcpListener);

impl Bmc {
    async fn start() -> (Bmc, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (Bmc(listener), port)
    }

    /// Accepts a session, and checks that it is shared with others.
    async fn session(&self) -> TcpStream {
        let (mut session, _) = self.0.accept().await.unwrap();
        session.write_all(b"RFB 003.008\n\x01\x01").await.unwrap();
        let mut chosen = [0; 13];
        session.read_exact(&mut chosen).await.unwrap();
        assert_eq!(&chosen, b"RFB 003.008\n\x01");
        session.write_all(&[0; 4]).await.unwrap();
        assert_eq!(session.read_u8().await.unwrap(), 1, "a viewer must not disconnect the others");
        session
    }
}

#[tokio::test]
async fn viewers_share_the_screen_until_the_console_is_disabled() {
    let (bmc, port) = Bmc::start().await;
    let given = service(port, "").await;
    given.enable(true).await;
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let mut viewer = open(&url(&given).await).await.unwrap();
        greet(&mut viewer).await;
        let mut session = bmc.session().await;
        session.write_all(b"pixels").await.unwrap();
        assert_eq!(reads(&mut viewer, GREETING.len() + 6).await, [GREETING, b"pixels"].concat());
        viewer.send(Message::Binary("keys".into())).await.unwrap();
        let mut typed = [0; 4];
        session.read_exact(&mut typed).await.unwrap();
        assert_eq!(&typed, b"keys");
        sessions.push((viewer, session));
    }
    given.enable(false).await;
    for (mut viewer, mut session) in sessions {
        let want = (CloseCode::Normal, "the console was disabled".to_owned());
        assert_eq!(closed(&mut viewer).await, want);
        assert_eq!(session.read_to_end(&mut Vec::new()).await.unwrap(), 0, "the session is over");
    }
    let recorded = async {
        let both = |rows: &[(u16, String)]| {
            [OPEN, CLOSE]
                .map(|action| rows.iter().filter(|row| **row == (101, action.to_owned())).count())
        };
        while both(&given.recorded().await) != [2, 2] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), recorded).await.expect("both are recorded");
    given.end().await;
}

#[tokio::test]
async fn a_url_is_good_once_and_for_its_node() {
    let (_bmc, port) = Bmc::start().await;
    let given = service(port, "").await;
    let path = format!("/bedplate/v1/nodes/{NODE}/vnc");
    // Not enabled, not a WebSocket, and not the kind of console that the node has.
    assert_eq!(given.send(Method::GET, &path, &Value::Null).await.0, 409);
    given.enable(true).await;
    assert_eq!(given.send(Method::GET, &path, &Value::Null).await.0, 426);
    let serial = format!("/bedplate/v1/nodes/{NODE}/console/log");
    let (status, text) = given.send(Method::GET, &serial, &Value::Null).await;
    assert!(status == 409 && text.contains("is graphical"), "{text}");

    let shown = url(&given).await;
    let (plain, ticket) = shown.split_once("?ticket=").unwrap();
    assert_eq!(plain, format!("{}{path}", given.url.replacen("http", "ws", 1)));
    assert_eq!(ticket.len(), 192, "it is sealed");
    // Without its ticket the URL opens nothing for a page of another website.
    assert_eq!(open(plain).await.unwrap_err(), 403);
    assert_eq!(open(&format!("{plain}?ticket=wrong")).await.unwrap_err(), 401);
    drop(open(&shown).await.unwrap());
    assert_eq!(open(&shown).await.unwrap_err(), 401, "it was used");
    let elsewhere = url(&given).await.replace(NODE, "7c9e6679-7425-40de-944b-e07fc1f90ae8");
    assert_eq!(open(&elsewhere).await.unwrap_err(), 401);
    given.end().await;
}

#[tokio::test]
async fn the_viewer_reads_why_the_bmc_opens_no_session() {
    let (bmc, port) = Bmc::start().await;
    let given = service(port, "").await;
    given.enable(true).await;
    for (sent, why) in [
        (
            &b"RFB 003.008\n\0\0\0\0\x10no session left."[..],
            "refused the connection: no session left.",
        ),
        (b"HTTP/1.1 400 Bad Request\r\n", "is not a VNC server"),
        (b"RFB 003.008\n\x01\x13", "but the security types [19]"),
    ] {
        let mut viewer = open(&url(&given).await).await.unwrap();
        greet(&mut viewer).await;
        let (mut session, _) = bmc.0.accept().await.unwrap();
        session.write_all(sent).await.unwrap();
        // The version, no security types, and the length of the reason.
        let mut read = reads(&mut viewer, 12 + 1 + 4).await;
        let length = u32::from_be_bytes(read[13..17].try_into().unwrap());
        let rest = 17 + usize::try_from(length).unwrap() - read.len();
        read.extend(reads(&mut viewer, rest).await);
        let read = String::from_utf8(read[17..].to_vec()).unwrap();
        assert!(read.contains(why), "{read}");
        let want = (CloseCode::Error, "the BMC opened no session".to_owned());
        assert_eq!(closed(&mut viewer).await, want);
    }
    // The BMC ends a session.
    let mut viewer = open(&url(&given).await).await.unwrap();
    greet(&mut viewer).await;
    drop(bmc.session().await);
    assert_eq!(
        closed(&mut viewer).await,
        (CloseCode::Error, "the BMC ended the session".to_owned())
    );
    given.end().await;
}

#[tokio::test]
async fn viewers_are_limited_and_a_viewer_that_leaves_ends_its_session() {
    let (bmc, port) = Bmc::start().await;
    let given = service(port, "[consoles]\nviewers_per_node = 1\n").await;
    given.enable(true).await;
    let mut viewer = open(&url(&given).await).await.unwrap();
    assert_eq!(open(&url(&given).await).await.unwrap_err(), 503);
    greet(&mut viewer).await;
    let mut session = bmc.session().await;
    drop(viewer);
    assert_eq!(session.read_to_end(&mut Vec::new()).await.unwrap(), 0, "the session is over");
    let again = async {
        while open(&url(&given).await).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.expect("the place is free again");
    given.end().await;
}

#[tokio::test]
async fn a_viewer_that_reads_late_loses_nothing_and_is_told_the_end() {
    let (bmc, port) = Bmc::start().await;
    let given = service(port, "").await;
    given.enable(true).await;
    let mut viewer = open(&url(&given).await).await.unwrap();
    greet(&mut viewer).await;
    let mut session = bmc.session().await;
    // More than the service and the sockets hold before the viewer reads.
    let screen: Vec<u8> = (0..32_u32 << 20).map(|at| at.to_le_bytes()[1]).collect();
    let sending = async {
        session.write_all(&screen).await.unwrap();
        session
    };
    let reading = reads(&mut viewer, GREETING.len() + screen.len());
    let (_session, read) = tokio::join!(sending, reading);
    assert!(read[GREETING.len()..] == screen, "the screen is shown as it was sent");
    let closing = async { closed(&mut viewer).await.0 };
    let (code, _) = tokio::join!(closing, given.end());
    assert_eq!(code, CloseCode::Away);
}

#[tokio::test]
async fn the_address_has_to_be_allowed_and_readable() {
    let given = service(5900, "").await;
    let path = format!("/v1/nodes/{NODE}");
    let patch =
        |value: &str| json!([{"op": "add", "path": "/driver_info/vnc_address", "value": value}]);
    let (status, text) = given.send(Method::PATCH, &path, &patch("192.0.2.1:5900")).await;
    assert!(status == 400 && text.contains("vnc_address"), "{status}: {text}");
    let (_, text) = given.send(Method::GET, &path, &Value::Null).await;
    assert!(!text.contains(PASSWORD) && text.contains("******"), "{text}");
    let validated = format!("{path}/validate");
    let (_, text) = given.send(Method::GET, &validated, &Value::Null).await;
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["console"]["result"], true, "{text}");
    assert_eq!(given.send(Method::PATCH, &path, &patch("127.0.0.1:99999")).await.0, 200);
    let (_, text) = given.send(Method::GET, &validated, &Value::Null).await;
    let shown: Value = serde_json::from_str(&text).unwrap();
    let reason = shown["console"]["reason"].as_str().unwrap();
    assert!(reason.contains("driver_info/vnc_address: must be a host"), "{reason}");
    let enabled = format!("{path}/states/console");
    let (status, text) = given.send(Method::PUT, &enabled, &json!({"enabled": true})).await;
    assert!(status == 400 && text.contains("driver_info/vnc_address"), "{status}: {text}");
    given.end().await;
}

#[tokio::test]
async fn qemu_shows_its_screen_to_a_viewer_without_its_password() {
    const QEMU: &str = "qemu-system-x86_64";
    if !peers::installed(QEMU) {
        return peers::skip(QEMU, "it is not installed (Debian's package qemu-system-x86)");
    }
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = std::iter::repeat_with(free).find(|port| *port > 5900).unwrap();
    let vnc = format!("127.0.0.1:{},password-secret=vnc", port - 5900);
    let mut qemu = Command::new(QEMU)
        .args(["-M", "pc", "-m", "16", "-S", "-nodefaults", "-vga", "std", "-accel", "tcg"])
        .args(["-object", &format!("secret,id=vnc,data={PASSWORD}"), "-vnc", &vnc])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(qemu.try_wait().unwrap().is_none(), "QEMU runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let given = service(port, "").await;
    given.enable(true).await;
    let mut viewer = open(&url(&given).await).await.unwrap();
    greet(&mut viewer).await;
    let read = reads(&mut viewer, GREETING.len() + 28).await;
    assert_eq!((&read[..GREETING.len()], &read[read.len() - 4..]), (GREETING, &b"QEMU"[..]));
    // FramebufferUpdateRequest (RFC 6143 §7.5.3), and the FramebufferUpdate.
    viewer.send(Message::Binary(vec![3, 0, 0, 0, 0, 0, 0, 8, 0, 8].into())).await.unwrap();
    assert_eq!(reads(&mut viewer, 1).await[0], 0);
    given.end().await;
}
