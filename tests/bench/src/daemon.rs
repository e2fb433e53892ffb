//! Runs a release build of a daemon as a child process.

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

/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with the configuration and the database, for several starts in a row.
pub(crate) struct DaemonFolder {
    folder: TempDir,
    program: &'static str,
}

/// A process that serves the Bare Metal API or the Container Infra API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) api: SocketAddr,
    pub(crate) pid: u32,
    /// The pause between two checks of the states of a few nodes. Each check costs the server time as well.
    pub(crate) check_every: Duration,
}

/// A daemon that answers. Dropping the value kills it.
pub(crate) struct Daemon {
    pub(crate) server: Server,
    pub(crate) listeners: Listeners,
    /// The time from the start of the process to the first answer.
    pub(crate) ready_after: Duration,
    child: Child,
}

/// The addresses of a daemon, read from `listeners.json` in its state folder.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Listeners {
    pub(crate) api: SocketAddr,
    pub(crate) provisioning: Option<SocketAddr>,
    pub(crate) dhcp: Option<SocketAddr>,
    pub(crate) tftp: Option<SocketAddr>,
}

impl DaemonFolder {
    pub(crate) fn new() -> anyhow::Result<DaemonFolder> {
        DaemonFolder::for_program("baremetald")
    }

    pub(crate) fn for_program(program: &'static str) -> anyhow::Result<DaemonFolder> {
        let folder = tempfile::Builder::new().prefix("bedplate-bench-").tempdir()?;
        Ok(DaemonFolder { folder, program })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the daemon with `sections` after the section `[api]` of its configuration, and waits for the first answer.
    pub(crate) async fn start(&self, sections: &str) -> anyhow::Result<Daemon> {
        let (state, name) = (self.path("state"), self.program);
        let config = self.path("daemon.toml");
        fs::write(
            &config,
            format!("state_dir = {state:?}\n[api]\nlisten = \"127.0.0.1:0\"\n{sections}"),
        )?;
        let reported = state.join("listeners.json");
        // The file of the previous start names ports on which nobody listens any more.
        fs::remove_file(&reported).ok();
        let log = fs::File::create(self.path("daemon.log"))?;

        let begun = Instant::now();
        let mut child = Command::new(program(name)?)
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let answers = timeout(PATIENCE, first_answer(&reported, &mut child)).await;
        let listeners = answers
            .with_context(|| format!("{name} does not answer"))
            .flatten()
            .with_context(|| {
                let log = fs::read_to_string(self.path("daemon.log")).unwrap_or_default();
                format!("{name} did not start; its log:\n{log}")
            })?;
        let ready_after = begun.elapsed();
        let pid = child.id().context("it has ended")?;
        let server = Server { api: listeners.api, pid, check_every: Duration::from_millis(10) };
        Ok(Daemon { server, listeners, ready_after, child })
    }
}

impl Server {
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        Client::connect(self.api).await.context("cannot connect to the API")
    }
}

impl Daemon {
    /// Sends SIGTERM and waits until the daemon has ended.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.server.pid).ok().and_then(Pid::from_raw);
        kill_process(pid.context("the daemon has no process id")?, Signal::TERM)?;
        let status = timeout(PATIENCE, self.child.wait()).await.context("it does not stop")??;
        anyhow::ensure!(status.success(), "the daemon ended with {status}");
        Ok(())
    }
}

/// Waits until `GET /v1` succeeds, and returns the addresses of the daemon.
async fn first_answer(reported: &Path, child: &mut Child) -> anyhow::Result<Listeners> {
    loop {
        if let Some(status) = child.try_wait()? {
            anyhow::bail!("it ended with {status}");
        }
        if let Some(listeners) = listening(reported)
            && let Ok(mut client) = Client::connect(listeners.api).await
            && client.get("/v1").await.is_ok()
        {
            return Ok(listeners);
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// The contents of the file. `None` until the file is complete.
fn listening(file: &Path) -> Option<Listeners> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// The path of a program of this workspace, built with the same profile as this program.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    let missing = || {
        format!(
            "{} does not exist: run `cargo build --release -p baremetal -p cluster --bins`",
            path.display()
        )
    };
    anyhow::ensure!(path.is_file(), missing());
    Ok(path)
}
