//! A PostgreSQL server for one test, which can stop, freeze and start again; one with a standby; and a proxy that loses answers of a server.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, spawn_blocking};

use crate::haproxy::{Haproxy, Proxy, ProxyKind, ServerState};
use crate::ports::free_ports;

/// A server with its data in a folder, until this is dropped.
pub struct Postgres {
    folder: TempDir,
    port: u16,
}

impl Postgres {
    /// Starts a server with these databases; returns `None` if PostgreSQL is not installed on this computer.
    pub async fn start(databases: &[&str]) -> Option<Postgres> {
        let server = Postgres::new();
        let mut up = Command::new(script());
        up.arg("--up").arg(server.folder.path()).arg(server.port.to_string()).args(databases);
        match spawn_blocking(move || run(up)).await.expect("it can be waited for") {
            Ok(()) => Some(server),
            Err(said) => {
                eprintln!("no PostgreSQL: {said}");
                None
            }
        }
    }

    /// A server that was not started yet.
    fn new() -> Postgres {
        let folder = tempfile::Builder::new().prefix("postgres-").tempdir();
        let [at] = free_ports();
        Postgres { folder: folder.expect("a temporary folder can be made"), port: at.port() }
    }

    /// Starts a standby of this server. From then on, each commit waits until the standby has it too.
    async fn standby(&self) -> Postgres {
        let standby = Postgres::new();
        let mut up = Command::new(script());
        up.arg("--standby").arg(standby.folder.path()).arg(standby.port.to_string());
        up.arg(self.folder.path());
        let done = spawn_blocking(move || run(up)).await.expect("it can be waited for");
        done.unwrap_or_else(|said| panic!("no standby: {said}"));
        standby
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.address())
    }

    /// Stops the server: sessions end, and nobody listens any more.
    pub async fn stop(&self) {
        self.does("--stop").await;
    }

    /// Starts the server again.
    pub async fn start_again(&self) {
        self.does("--start").await;
    }

    /// Freezes the server: connections stay and are accepted, and nothing is answered.
    pub async fn freeze(&self) {
        self.does("--freeze").await;
    }

    /// Lets the server go on.
    pub async fn thaw(&self) {
        self.does("--thaw").await;
    }

    async fn does(&self, what: &str) {
        let mut command = Command::new(script());
        command.arg(what).arg(self.folder.path());
        let done = spawn_blocking(move || run(command)).await.expect("it can be waited for");
        done.unwrap_or_else(|said| panic!("{what}: {said}"));
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut down = Command::new(script());
        down.arg("--down").arg(self.folder.path());
        if let Err(said) = run(down) {
            eprintln!("PostgreSQL is not down: {said}");
        }
    }
}

/// A server with a synchronous standby, behind haproxy, which passes connections to the one that writes.
pub struct ReplicatedPostgres {
    writes: Postgres,
    standby: Postgres,
    haproxy: Haproxy,
    at: SocketAddr,
}

impl ReplicatedPostgres {
    /// Starts both servers with these databases; returns `None` if PostgreSQL or haproxy is not installed on this computer.
    pub async fn start(databases: &[&str]) -> Option<ReplicatedPostgres> {
        let writes = Postgres::start(databases).await?;
        let standby = writes.standby().await;
        let ([at], servers) = (free_ports(), vec![writes.address(), standby.address()]);
        let haproxy = Haproxy::start(&[Proxy { kind: ProxyKind::Postgresql, at, servers }])?;
        haproxy.sees(standby.address(), ServerState::Down).await;
        haproxy.sees(writes.address(), ServerState::Up).await;
        Some(ReplicatedPostgres { writes, standby, haproxy, at })
    }

    /// The URL of a database at haproxy.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.at)
    }

    /// The server that writes until a failover.
    pub fn writes(&self) -> &Postgres {
        &self.writes
    }

    /// The standby until a failover.
    pub fn standby(&self) -> &Postgres {
        &self.standby
    }

    /// Kills the server that writes, and lets the standby write.
    pub async fn fail_over(&self) {
        self.writes.does("--kill").await;
        self.standby.does("--promote").await;
        self.haproxy.sees(self.standby.address(), ServerState::Up).await;
    }
}

/// Runs the script. On failure, shows its output.
fn run(mut command: Command) -> Result<(), String> {
    // The server stays, and would keep a pipe open.
    let log = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    let output = log.reopen().expect("it can be opened");
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(std::fs::read_to_string(log.path()).unwrap_or_default()),
        Err(error) => Err(error.to_string()),
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../real/postgres.sh")
}

/// A proxy to a server that can lose the answer to a commit.
pub struct LossyWay {
    at: SocketAddr,
    loss: Arc<Mutex<Loss>>,
    _passing: JoinSet<()>,
}

#[derive(Default)]
struct Loss {
    /// The proxy loses the answer to the commit of the first transaction in which the client sends this text.
    said: Option<Vec<u8>>,
    is_lost: bool,
}

/// More bytes than a client sends in one transaction.
const MOST_KEPT: usize = 1 << 20;
/// `COMMIT`, as a simple query (PostgreSQL's frontend/backend protocol, 55.7).
const COMMIT: &[u8] = b"Q\x00\x00\x00\x0bCOMMIT\x00";

impl LossyWay {
    /// Opens a proxy to this server. It loses nothing yet.
    pub async fn to(server: &Postgres) -> LossyWay {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let at = listener.local_addr().expect("it has an address");
        let (loss, port) = (Arc::new(Mutex::new(Loss::default())), server.port);
        let mut passing = JoinSet::new();
        let shared = loss.clone();
        passing.spawn(async move {
            let mut ways = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                while ways.try_join_next().is_some() {}
                let loss = shared.clone();
                ways.spawn(async move {
                    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
                    // Without a server, the proxy closes the connection.
                    let Ok(server) = server else { return };
                    // Either side may close the connection.
                    let _ = pass(client, server, &loss).await;
                });
            }
        });
        LossyWay { at, loss, _passing: passing }
    }

    /// Returns the URL of a database through this proxy.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.at)
    }

    /// Loses the answer to the commit of the next transaction in which the client sends `text`, and closes that connection.
    pub fn lose_commit_of(&self, text: &str) {
        *lock(&self.loss) = Loss { said: Some(text.as_bytes().to_vec()), is_lost: false };
    }

    /// Returns whether an answer was lost since then.
    pub fn has_lost(&self) -> bool {
        lock(&self.loss).is_lost
    }
}

fn lock(loss: &Mutex<Loss>) -> MutexGuard<'_, Loss> {
    loss.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forwards both directions until one side closes the connection or an answer is to be lost.
async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    loss: &Mutex<Loss>,
) -> std::io::Result<()> {
    let (mut from_client, mut from_server) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let mut said = Vec::new();
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let text = &from_client[..read?];
                said.extend_from_slice(text);
                server.write_all(text).await?;
                if text.is_empty() {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                let old = said.len().saturating_sub(MOST_KEPT);
                said.drain(..old);
                if said.ends_with(COMMIT) {
                    if is_lost(loss, &said) {
                        // The server has committed when it answers.
                        let answer = server.read(&mut from_server).await?;
                        return if answer > 0 { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) };
                    }
                    said.clear();
                }
            }
            read = server.read(&mut from_server) => {
                let text = &from_server[..read?];
                if text.is_empty() {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                client.write_all(text).await?;
            }
        }
    }
}

/// Returns whether to lose the answer to the commit of the transaction in which the client sent `said`. Only one answer is lost.
fn is_lost(loss: &Mutex<Loss>, said: &[u8]) -> bool {
    let mut loss = lock(loss);
    let is_wanted =
        loss.said.as_ref().is_some_and(|text| said.windows(text.len()).any(|it| it == text));
    if is_wanted {
        *loss = Loss { said: None, is_lost: true };
    }
    is_wanted
}
