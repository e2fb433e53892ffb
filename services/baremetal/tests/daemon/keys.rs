//! Keys are rotated while the daemon works and is killed in between: no secret is lost.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baremetal_core::{Driver, Node, NodeIdent, NodeUuid};
use baremetal_store::Store;
use jiff::Timestamp;
use reqwest::{Client, Method, StatusCode};
use sealing::Keyring;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

/// More nodes than one transaction of a rotation re-encrypts.
const NODES: usize = 300;
/// When the daemon is killed: after this many log lines about re-encrypted nodes. 0 means right after the new key is in the file.
const POINTS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 2];

/// The state folder and configuration of a daemon, and the passwords stored there.
struct Installation {
    folder: tempfile::TempDir,
    known: Vec<(NodeUuid, String)>,
}

/// A running daemon, which is killed when this value is dropped.
struct Daemon {
    child: Child,
    url: String,
    client: Client,
}

impl Installation {
    async fn new() -> Installation {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let text = format!(
            "state_dir = {:?}\n[api]\nlisten = \"127.0.0.1:0\"\n",
            folder.path().join("state")
        );
        fs::write(folder.path().join("baremetald.toml"), text).unwrap();
        let mut given = Installation { folder, known: Vec::new() };
        let store = given.store().await;
        for number in 0..NODES {
            let now = Timestamp::UNIX_EPOCH;
            let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, now);
            let secret = format!("password {number}");
            node.driver_info.insert("redfish_password".to_owned(), json!(secret));
            store.insert_node(&node).await.unwrap();
            given.known.push((node.id, secret));
        }
        given
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn key_file(&self) -> PathBuf {
        self.state().join("seal.keys")
    }

    /// Opens the daemon's store with the keys in the file, like another process.
    async fn store(&self) -> Store {
        let url = format!("sqlite://{}", self.state().join("baremetal.db").display());
        let keys = Keyring::open(&self.key_file(), &[]).unwrap();
        Store::open(&url).await.unwrap().with_keys(Arc::new(keys)).await.unwrap()
    }

    async fn everything_opens(&self) {
        let store = self.store().await;
        for (id, secret) in &self.known {
            let node = store.find_node(&NodeIdent::Id(*id)).await.unwrap().unwrap();
            let opened = store.secrets().text(&node, "redfish_password").unwrap().unwrap();
            assert_eq!(opened.expose_secret(), secret);
        }
    }

    async fn start(&self) -> Daemon {
        let listeners = self.state().join("listeners.json");
        let _ = fs::remove_file(&listeners);
        let child = Command::new(env!("CARGO_BIN_EXE_baremetald"))
            .arg("--config")
            .arg(self.folder.path().join("baremetald.toml"))
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        let mut daemon = Daemon { child, url: String::new(), client };
        daemon.url = until(async || {
            let text = fs::read(&listeners).ok()?;
            let told: Value = serde_json::from_slice(&text).ok()?;
            Some(format!("http://{}", told["api"].as_str()?))
        })
        .await;
        daemon
    }
}

/// Waits until `look` returns a value, or fails after a timeout.
async fn until<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "it does not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl Daemon {
    async fn ask(&self, method: Method, path: &str) -> (StatusCode, Value) {
        let url = format!("{}/bedplate/v1/keys{path}", self.url);
        let answer = self.client.request(method, url).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    /// Returns the keys, each with the number of records that it seals.
    async fn keys(&self) -> Vec<(String, u64)> {
        let (status, answer) = self.ask(Method::GET, "").await;
        assert_eq!(status, 200, "{answer}");
        let read = |key: &Value| {
            (key["id"].as_str().unwrap().to_owned(), key["records"].as_u64().unwrap())
        };
        answer["keys"].as_array().unwrap().iter().map(read).collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn inode(file: &Path) -> u64 {
    fs::metadata(file).unwrap().ino()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_killed_at_any_point_loses_nothing_and_completes() {
    let given = Installation::new().await;
    for point in POINTS {
        let mut daemon = given.start().await;
        let before = inode(&given.key_file());
        let mut lines = BufReader::new(daemon.child.stderr.take().unwrap()).lines();
        let sealed = |line: &String| line.contains("re-encrypted") && line.contains("nodes");
        let heard = tokio::task::spawn_blocking(move || {
            let heard = lines.by_ref().map_while(Result::ok).filter(sealed).take(point).count();
            (heard, lines)
        });
        let asked = daemon.client.post(format!("{}/bedplate/v1/keys/rotate", daemon.url)).send();
        let asked = tokio::spawn(asked);
        let key_file = given.key_file();
        until(async || (inode(&key_file) != before).then_some(())).await;
        // The log is read until the kill, because a full pipe would block the daemon.
        let (heard, _lines) = heard.await.unwrap();
        assert_eq!(heard, point, "it ended before it was killed");
        drop(daemon);
        let _ = asked.await.unwrap();
        given.everything_opens().await;
    }

    let daemon = given.start().await;
    let rest = until(async || {
        let keys = daemon.keys().await;
        let (current, others) = keys.split_first().unwrap();
        let done = others.iter().all(|(_, records)| *records == 0);
        (done && current.1 >= NODES as u64).then(|| others.to_vec())
    });
    let rest = rest.await;
    assert_eq!(rest.len(), POINTS.len());
    for (id, records) in rest {
        assert_eq!(records, 0, "key {id}");
        assert_eq!(daemon.ask(Method::DELETE, &format!("/{id}")).await.0, 204);
        assert_eq!(daemon.ask(Method::DELETE, &format!("/{id}")).await.0, 404);
    }
    let left = daemon.keys().await;
    assert_eq!(daemon.ask(Method::DELETE, &format!("/{}", left[0].0)).await.0, 409);
    drop(daemon);
    assert_eq!(fs::read_to_string(given.key_file()).unwrap().lines().count(), 1);
    given.everything_opens().await;
}
