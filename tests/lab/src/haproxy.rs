//! Debian's haproxy before several servers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::api::{LOOK_EVERY, TIMEOUT};

/// The place of haproxy in Debian.
const PROGRAM: &str = "/usr/sbin/haproxy";

/// The sections of `deploy/haproxy/haproxy.cfg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyKind {
    /// The API of baremetald.
    Baremetal,
    /// The API of clusterd.
    Clusters,
    /// The console, which is told the client's address by the PROXY protocol.
    Console,
    /// The listener for machines and agents, with the PROXY protocol.
    Provisioning,
    /// The listener for members of clusters, with the PROXY protocol.
    Members,
    /// PostgreSQL with a standby.
    Postgresql,
}

/// An address of haproxy, and the servers behind it.
#[derive(Clone, Debug)]
pub struct Proxy {
    pub kind: ProxyKind,
    pub at: SocketAddr,
    pub servers: Vec<SocketAddr>,
}

/// Whether haproxy uses a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    Up,
    Down,
}

/// Whether haproxy sends requests to a server that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    Sent,
    /// The server gets no new requests, so that it can be stopped.
    Drained,
}

/// A running haproxy, which is killed on drop.
pub struct Haproxy {
    folder: TempDir,
    _process: Child,
}

impl Proxy {
    /// The words of `haproxy.sh`.
    fn argument(&self) -> String {
        let kind = match self.kind {
            ProxyKind::Baremetal => "baremetal",
            ProxyKind::Clusters => "clusters",
            ProxyKind::Console => "console",
            ProxyKind::Provisioning => "provisioning",
            ProxyKind::Members => "members",
            ProxyKind::Postgresql => "postgresql",
        };
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        format!("{kind}={}={}", self.at, servers.join(","))
    }
}

impl Haproxy {
    /// Starts haproxy; returns `None` if it is not installed on this computer.
    pub fn start(proxies: &[Proxy]) -> Option<Haproxy> {
        if !Path::new(PROGRAM).is_file() {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("haproxy-").tempdir();
        let folder = folder.expect("a temporary folder can be made");
        let process = Command::new(script())
            .arg("run")
            .arg(folder.path())
            .args(proxies.iter().map(Proxy::argument))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        Some(Haproxy { folder, _process: process.expect("haproxy starts") })
    }

    /// Sends a server no new requests, or sends it requests again.
    pub async fn set(&self, server: SocketAddr, traffic: Traffic) {
        let word = match traffic {
            Traffic::Sent => "ready",
            Traffic::Drained => "drain",
        };
        let mut script = Command::new(script());
        script.arg("state").arg(self.folder.path()).arg(server.to_string()).arg(word);
        let set = script.output().await.expect("the script runs");
        assert!(set.status.success(), "{server}: {}", String::from_utf8_lossy(&set.stderr));
    }

    /// Waits until haproxy uses the server, or does not use it any more.
    pub async fn sees(&self, server: SocketAddr, state: ServerState) {
        let word = match state {
            ServerState::Up => "UP",
            ServerState::Down => "DOWN",
        };
        let (line, deadline) = (format!(" {server} {word}"), Instant::now() + TIMEOUT);
        loop {
            let said = Command::new(script()).arg("servers").arg(self.folder.path()).output().await;
            let said = String::from_utf8_lossy(&said.expect("the script runs").stdout).into_owned();
            if said.lines().any(|it| it.ends_with(&line)) {
                return;
            }
            assert!(Instant::now() < deadline, "{server} is not {word}:\n{said}");
            sleep(LOOK_EVERY).await;
        }
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../real/haproxy.sh")
}
