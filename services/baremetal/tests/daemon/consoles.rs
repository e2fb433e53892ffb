//! Serial consoles through their WebSocket, on a machine that echoes its input.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use api_client::shared::AuditRow;
use baremetal::{Config, Service};
use futures::{SinkExt, StreamExt};
use openstack_emulator::{Emulator, Settings};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use websocket::{CloseCode, Message, Socket};

pub(crate) const NODE: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
/// Input of a viewer, which must not be stored anywhere.
const TYPED: &str = left::canary::CONSOLE;

/// A baremetald with a node that has a console.
pub(crate) struct TestDaemon {
    client: Client,
    pub(crate) url: String,
    token: Option<String>,
    state: TempDir,
    stop: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

impl TestDaemon {
    pub(crate) async fn start(more: &str) -> TestDaemon {
        let state = tempfile::tempdir().unwrap();
        TestDaemon::within(state, more).await
    }

    async fn within(state: TempDir, more: &str) -> TestDaemon {
        let given = TestDaemon::serve(state, more).await;
        given.create_node().await;
        given
    }

    /// Starts the service, without the node.
    pub(crate) async fn serve(state: TempDir, more: &str) -> TestDaemon {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = state.path().join("state");
        let text = format!("state_dir = {folder:?}\n[api]\nlisten = '127.0.0.1:0'\n{more}");
        let config: Config = toml::from_str(&text).unwrap();
        let service = Service::start(config).await.unwrap();
        let url = format!("http://{}", service.listeners().api);
        let stop = CancellationToken::new();
        let running = tokio::spawn(service.run(stop.clone()));
        let client = Client::builder().no_proxy().build().unwrap();
        TestDaemon { client, url, token: None, state, stop, running }
    }

    async fn create_node(&self) {
        let body = json!({"uuid": NODE, "driver": "fake-hardware", "console_interface": "fake"});
        assert_eq!(self.send(Method::POST, "/v1/nodes", &body).await.0, 201);
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.header("x-openstack-ironic-api-version", "1.95");
        match &self.token {
            Some(token) => request.header("x-auth-token", token),
            None => request,
        }
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, String) {
        let answer = self.request(method, path).json(body).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub(crate) async fn enable(&self, enabled: bool) {
        let path = format!("/v1/nodes/{NODE}/states/console");
        let body = json!({"enabled": enabled});
        assert_eq!(self.send(Method::PUT, &path, &body).await, (202, String::new()));
    }

    /// Opens the node's console, or returns the status and the text of the refusal.
    async fn look(&self) -> Result<Socket, (u16, String)> {
        self.look_from(None).await
    }

    async fn look_from(&self, origin: Option<&str>) -> Result<Socket, (u16, String)> {
        let request = self.request(Method::GET, &format!("/bedplate/v1/nodes/{NODE}/console"));
        let request = match origin {
            Some(origin) => request.header("origin", origin),
            None => request,
        };
        let (request, asked) = websocket::upgrade_request(request);
        let answer = request.send().await.unwrap();
        if !websocket::is_open(&answer) {
            return Err((answer.status().as_u16(), answer.text().await.unwrap()));
        }
        Ok(asked.open(answer).await.unwrap())
    }

    /// Returns status and action of all rows of the audit trail, newest last.
    pub(crate) async fn recorded(&self) -> Vec<(u16, String)> {
        let (_, text) = self.send(Method::GET, "/bedplate/v1/audit", &Value::Null).await;
        let mut reported: BTreeMap<String, Vec<AuditRow>> = serde_json::from_str(&text).unwrap();
        let rows = reported.remove("audit").unwrap();
        rows.into_iter().map(|row| (row.status, row.action)).collect()
    }

    pub(crate) async fn end(self) -> TempDir {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
        self.state
    }
}

/// Reads output until it contains `words`.
async fn reads(socket: &mut Socket, words: &str) -> String {
    let mut read = String::new();
    let reading = async {
        while !read.contains(words) {
            match next(socket).await {
                Message::Binary(piece) => read += std::str::from_utf8(&piece).unwrap(),
                Message::Ping(_) => {}
                other @ (Message::Text(_)
                | Message::Pong(_)
                | Message::Close(_)
                | Message::Frame(_)) => {
                    panic!("{other:?} after {read:?}")
                }
            }
        }
    };
    // Pings keep the connection alive without any output.
    let is_read = tokio::time::timeout(Duration::from_secs(30), reading).await.is_ok();
    assert!(is_read, "{words:?} is missing in {read:?}");
    read
}

pub(crate) async fn next(socket: &mut Socket) -> Message {
    let waiting = tokio::time::timeout(Duration::from_secs(30), socket.next());
    waiting.await.unwrap().unwrap().unwrap()
}

/// Returns code and reason of the WebSocket's close message.
pub(crate) async fn closed(socket: &mut Socket) -> (CloseCode, String) {
    loop {
        if let Message::Close(frame) = next(socket).await {
            let frame = frame.unwrap();
            return (frame.code, frame.reason.to_string());
        }
    }
}

async fn types(socket: &mut Socket, text: &str) {
    socket.send(Message::Binary(text.to_owned().into())).await.unwrap();
}

#[tokio::test]
async fn a_console_is_enabled_looked_at_and_disabled() {
    let given = TestDaemon::start("").await;
    let refused = given.look().await.unwrap_err();
    assert_eq!(refused.0, 409, "{}", refused.1);
    assert!(refused.1.contains("is not enabled"));
    given.enable(true).await;

    let path = format!("/v1/nodes/{NODE}/states/console");
    let (_, text) = given.send(Method::GET, &path, &Value::Null).await;
    let reported: Value = serde_json::from_str(&text).unwrap();
    let host = given.url.strip_prefix("http://").unwrap();
    let want = json!({
        "console_enabled": true,
        "console_info": {
            "type": "websocket", "url": format!("ws://{host}/bedplate/v1/nodes/{NODE}/console")
        },
    });
    assert_eq!(reported, want);

    let path = format!("/bedplate/v1/nodes/{NODE}/console");
    let (status, text) = given.send(Method::GET, &path, &Value::Null).await;
    assert_eq!(status, 426, "{text}");

    let mut ann = given.look().await.unwrap();
    reads(&mut ann, "This is not a machine").await;
    types(&mut ann, "root\r\n").await;
    reads(&mut ann, "root").await;
    // A later viewer gets the earlier output too.
    let mut bob = given.look().await.unwrap();
    assert!(reads(&mut bob, "root").await.contains("This is not a machine"));
    let log = format!("{path}/log");
    let answer = given.request(Method::GET, &log).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/plain; charset=utf-8");
    assert!(answer.text().await.unwrap().contains("root"));

    given.enable(false).await;
    for socket in [&mut ann, &mut bob] {
        let want = (CloseCode::Normal, "the console was disabled".to_owned());
        assert_eq!(closed(socket).await, want);
    }
    assert_eq!(given.send(Method::GET, &log, &Value::Null).await.0, 409);
    given.end().await;
}

#[tokio::test]
async fn viewing_is_recorded_and_input_is_stored_nowhere() {
    left::keep_logs();
    let given = TestDaemon::start("").await;
    given.enable(true).await;
    let mut socket = given.look().await.unwrap();
    // Input is discarded until the port is open.
    reads(&mut socket, "This is not a machine").await;
    types(&mut socket, TYPED).await;
    reads(&mut socket, TYPED).await;
    socket.close(None).await.unwrap();
    let begun = (101, "Open a node's serial console (WebSocket)".to_owned());
    let ended = (101, "Close a node's serial console".to_owned());
    let both = async {
        loop {
            let recorded = given.recorded().await;
            if recorded.contains(&begun) && recorded.contains(&ended) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("both are recorded");
    let state = given.end().await;
    left::keep(&state.path().join("state"), "machines-consoles");
    assert!(!holds(state.path(), TYPED), "what was typed is in the state folder");
}

/// Returns whether any file below the folder contains these words.
fn holds(folder: &Path, words: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, words);
        }
        let text = std::fs::read(&path).unwrap_or_default();
        text.windows(words.len()).any(|window| window == words.as_bytes())
    })
}

#[tokio::test]
async fn a_console_ends_with_its_node_or_the_service() {
    let given = TestDaemon::start("").await;
    given.enable(true).await;
    let mut socket = given.look().await.unwrap();
    reads(&mut socket, "This is not a machine").await;
    let path = format!("/v1/nodes/{NODE}");
    assert_eq!(given.send(Method::DELETE, &path, &Value::Null).await.0, 204);
    let want = (CloseCode::Normal, "the node was deleted".to_owned());
    assert_eq!(closed(&mut socket).await, want);
    given.end().await;

    let given = TestDaemon::start("").await;
    given.enable(true).await;
    let mut socket = given.look().await.unwrap();
    reads(&mut socket, "This is not a machine").await;
    let closing = async { closed(&mut socket).await.0 };
    let (code, _) = tokio::join!(closing, given.end());
    assert_eq!(code, CloseCode::Away);
}

#[tokio::test]
async fn viewers_are_limited_and_other_sites_are_refused() {
    let given = TestDaemon::start("[consoles]\nviewers_per_node = 1\n").await;
    given.enable(true).await;
    let refused = given.look_from(Some("https://evil.example")).await.unwrap_err();
    assert_eq!(refused.0, 403, "{}", refused.1);
    let mut own = given.look_from(Some(&given.url)).await.unwrap();
    reads(&mut own, "This is not a machine").await;
    let refused = given.look().await.unwrap_err();
    assert_eq!(refused.0, 503, "{}", refused.1);
    given.end().await;
}

#[tokio::test]
async fn an_idle_console_outlives_the_idle_timeout_of_connections() {
    let limits = "[api.connections]\nheader_timeout = '200ms'\nidle_timeout = '200ms'\n";
    let given = TestDaemon::start(limits).await;
    given.enable(true).await;
    let mut socket = given.look().await.unwrap();
    reads(&mut socket, "This is not a machine").await;
    // Twice as long as an idle connection is kept.
    for _ in 0..2 {
        let mut other =
            TcpStream::connect(given.url.strip_prefix("http://").unwrap()).await.unwrap();
        other.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        other.read_to_end(&mut Vec::new()).await.unwrap();
    }
    types(&mut socket, "still").await;
    reads(&mut socket, "still").await;
    given.end().await;
}

#[tokio::test]
async fn a_console_ends_with_the_token() {
    let settings = Settings { token_seconds: 4, ..Settings::default() };
    let emulator = Emulator::start(settings).await.unwrap();
    let cloud = emulator.cloud.clone();
    let state = tempfile::tempdir().unwrap();
    let clouds = state.path().join("clouds.yaml");
    std::fs::write(&clouds, cloud.clouds_yaml()).unwrap();
    let user = json!({"name": "admin", "domain": {"id": "default"}, "password": "admin-secret"});
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    let scope = json!({"project": {"name": "admin", "domain": {"id": "default"}}});
    let body = json!({"auth": {"identity": identity, "scope": scope}});
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().build().unwrap();
    // A token expires soon, so each step gets a new one.
    let log_in = async || {
        let asked = client.post(format!("{}/auth/tokens", cloud.auth_url())).json(&body);
        let answer = asked.send().await.unwrap();
        Some(answer.headers()["x-subject-token"].to_str().unwrap().to_owned())
    };
    let more = format!(
        "auth = 'keystone'\n[api.keystone]\nclouds_yaml = {clouds:?}\nname = 'clusterd'\n\
         [consoles]\nviewed_by_one = 1\n"
    );
    let mut given = TestDaemon::serve(state, &more).await;
    given.token = log_in().await;
    given.create_node().await;
    given.token = log_in().await;
    given.enable(true).await;
    given.token = log_in().await;
    let mut socket = given.look().await.unwrap();
    let refused = given.look().await.unwrap_err();
    assert_eq!(refused.0, 503, "{}", refused.1);
    let want = (CloseCode::Policy, "your token has expired".to_owned());
    assert_eq!(closed(&mut socket).await, want);
    given.end().await;
}
