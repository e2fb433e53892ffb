//! A released daemon, run as a child.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::client::Client;

/// How long a start or a stop may take before it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with a configuration and a database, for one start after the other.
pub(crate) struct Home {
    folder: TempDir,
    program: &'static str,
}

/// A daemon that answers. Dropped, it is killed.
pub(crate) struct Daemon {
    /// Its API.
    pub(crate) api: SocketAddr,
    /// Where else it listens.
    pub(crate) listeners: Listeners,
    /// Its process.
    pub(crate) pid: u32,
    /// From the start of the process to the first answer.
    pub(crate) ready_after: Duration,
    child: Child,
}

/// Where it listens: `listeners.json` in its state folder.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Listeners {
    pub(crate) api: SocketAddr,
    pub(crate) provisioning: Option<SocketAddr>,
    pub(crate) dhcp: Option<SocketAddr>,
    pub(crate) tftp: Option<SocketAddr>,
}

impl Home {
    /// For baremetald.
    pub(crate) fn new() -> anyhow::Result<Home> {
        Home::of("baremetald")
    }

    /// For that program.
    pub(crate) fn of(program: &'static str) -> anyhow::Result<Home> {
        let folder = tempfile::Builder::new().prefix("bedplate-bench-").tempdir()?;
        Ok(Home { folder, program })
    }

    /// Where a file of that name is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the daemon with these lines and sections after `[api]` in its configuration, and waits for its first answer.
    pub(crate) async fn start(&self, sections: &str) -> anyhow::Result<Daemon> {
        let (state, name) = (self.path("state"), self.program);
        let config = self.path("daemon.toml");
        fs::write(
            &config,
            format!("state_dir = {state:?}\n[api]\nlisten = \"127.0.0.1:0\"\n{sections}"),
        )?;
        let told = state.join("listeners.json");
        // That of the start before names a port nobody listens on.
        fs::remove_file(&told).ok();
        let log = fs::File::create(self.path("daemon.log"))?;

        let begun = Instant::now();
        let mut child = Command::new(program(name)?)
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let answers = timeout(PATIENCE, first_answer(&told, &mut child)).await;
        let listeners = answers
            .with_context(|| format!("{name} does not answer"))
            .flatten()
            .with_context(|| {
                let log = fs::read_to_string(self.path("daemon.log")).unwrap_or_default();
                format!("{name} did not start; it says:\n{log}")
            })?;
        let ready_after = begun.elapsed();
        let pid = child.id().context("it has ended")?;
        Ok(Daemon { api: listeners.api, listeners, pid, ready_after, child })
    }
}

impl Daemon {
    /// Connects to it.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        Client::connect(self.api).await.context("cannot connect to the daemon")
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        kill_process(pid.context("the daemon has no process id")?, Signal::TERM)?;
        let status = timeout(PATIENCE, self.child.wait()).await.context("it does not stop")??;
        anyhow::ensure!(status.success(), "the daemon ended with {status}");
        Ok(())
    }
}

/// Waits for `GET /v1` to answer well, and tells where.
async fn first_answer(told: &Path, child: &mut Child) -> anyhow::Result<Listeners> {
    loop {
        if let Some(status) = child.try_wait()? {
            anyhow::bail!("it ended with {status}");
        }
        if let Some(listeners) = listening(told)
            && let Ok(mut client) = Client::connect(listeners.api).await
            && client.get("/v1").await.is_ok()
        {
            return Ok(listeners);
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// What the file says, once it is there and whole.
fn listening(file: &Path) -> Option<Listeners> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// The path of one of this workspace's programs, built with the same profile as this one.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    let missing = || {
        format!(
            "{} is not there: run `cargo build --release -p baremetal -p cluster --bins`",
            path.display()
        )
    };
    anyhow::ensure!(path.is_file(), missing());
    Ok(path)
}
