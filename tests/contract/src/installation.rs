//! A daemon as a process: its folder, its configuration, and its end by SIGKILL.

use std::fs::{self, File};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Client;
use serde_json::Value;
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The differences between the daemons.
pub trait Daemon {
    const PROGRAM: &'static str;
    /// The name of the database file in the state folder.
    const DATABASE: &'static str;
    /// A key file that version 0.1 wrote.
    const EARLIER_KEYS: &'static str;
    /// The words of the log line that the daemon writes after each transaction of a key rotation.
    const PROGRESS: [&'static str; 2];
    /// Stored records with secrets.
    type Records;

    fn store_records(state: &Path, count: usize) -> impl Future<Output = Self::Records>;

    /// Fails unless every secret of the records can be decrypted.
    fn check_records(state: &Path, records: &Self::Records) -> impl Future<Output = ()>;
}

/// The state folder and the configuration of a daemon that does not run.
pub struct Installation<D> {
    folder: TempDir,
    daemon: PhantomData<D>,
}

impl<D: Daemon> Installation<D> {
    pub(crate) fn new() -> Self {
        let installation =
            Installation { folder: tempfile::tempdir().unwrap(), daemon: PhantomData };
        fs::create_dir(installation.state()).unwrap();
        installation.configure("[api]\nlisten = \"127.0.0.1:0\"\n");
        installation
    }

    /// Replaces the configuration by the state folder and these lines.
    pub(crate) fn configure(&self, lines: &str) {
        let text = format!("state_dir = {:?}\n{lines}", self.state());
        fs::write(self.config(), text).unwrap();
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.state().join("seal.keys")
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("daemon.toml")
    }

    /// Starts the daemon, whose log the caller reads.
    pub(crate) async fn start(&self) -> DaemonProcess {
        DaemonProcess::start(D::PROGRAM, self.config(), &self.state(), Output::Piped).await
    }

    /// Starts the daemon in a state folder whose `listeners.json` an earlier daemon wrote.
    pub(crate) async fn start_after_crash(&self) -> DaemonProcess {
        DaemonProcess::spawn(D::PROGRAM, self.config(), &self.state(), Output::Kept).await
    }

    /// Returns the daemon's error output. Fails if the daemon starts.
    pub(crate) fn refusal(&self, options: &[&str]) -> String {
        let (code, said) = self.run(options);
        assert_eq!(code, Some(1), "it started: {said}");
        said
    }

    /// Runs the daemon until it ends by itself, and returns its exit code and its error output.
    pub(crate) fn run(&self, options: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new("timeout");
        command.arg("60").arg(D::PROGRAM).args(options).arg("--config").arg(self.config());
        let run = command.stdin(Stdio::null()).output().unwrap();
        (run.status.code(), String::from_utf8(run.stderr).unwrap())
    }
}

/// The destination of the log of a daemon.
#[derive(Clone, Copy, Debug)]
pub enum Output {
    /// To the test, at level `info`.
    Piped,
    /// To the file `log` in the state folder.
    Kept,
}

/// A running daemon. The process is killed when this value is dropped.
pub struct DaemonProcess {
    pub(crate) child: Child,
    pub url: String,
    program: &'static str,
    config: PathBuf,
    state: PathBuf,
    output: Output,
}

impl DaemonProcess {
    /// Starts the daemon, and waits until its API answers.
    pub async fn start(
        program: &'static str,
        config: PathBuf,
        state: &Path,
        output: Output,
    ) -> Self {
        fs::create_dir_all(state).unwrap();
        let _ = fs::remove_file(state.join("listeners.json"));
        DaemonProcess::spawn(program, config, state, output).await
    }

    async fn spawn(program: &'static str, config: PathBuf, state: &Path, output: Output) -> Self {
        let child = spawn(program, &config, state, output);
        let state = state.to_owned();
        let mut process =
            DaemonProcess { child, url: String::new(), program, config, state, output };
        process.wait_for_api().await;
        process
    }

    async fn wait_for_api(&mut self) {
        let client = client();
        self.url = until(async || {
            let text = fs::read(self.state.join("listeners.json")).ok()?;
            let listeners: Value = serde_json::from_slice(&text).ok()?;
            let url = format!("http://{}", listeners["api"].as_str()?);
            client.get(format!("{url}/")).send().await.ok().map(|_| url)
        })
        .await;
    }

    /// Kills the process with SIGKILL and starts another one.
    pub async fn kill_and_start(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        fs::remove_file(self.state.join("listeners.json")).unwrap();
        self.child = spawn(self.program, &self.config, &self.state, self.output);
        self.wait_for_api().await;
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &str, config: &Path, state: &Path, output: Output) -> Child {
    let mut command = Command::new(program);
    command.arg("--config").arg(config).stdin(Stdio::null()).stdout(Stdio::null());
    match output {
        Output::Piped => command.env("RUST_LOG", "info").stderr(Stdio::piped()),
        Output::Kept => {
            let log = File::options().create(true).append(true).open(state.join("log"));
            command.stderr(log.unwrap())
        }
    };
    command.spawn().unwrap()
}

/// Makes a client that uses no proxy.
pub fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

/// Repeats `look` until it returns a value, or fails after a minute.
pub async fn until<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap()
}
