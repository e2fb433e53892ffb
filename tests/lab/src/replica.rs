//! One of several baremetald on one database, as a child process.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use api_client::Service;
use baremetal::Listeners;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::Mutex;
use url::Url;

use crate::api::Api;
use crate::daemon::ChildDaemon;
use crate::lab::{FIRST, Lab, ReplicaClocks, Settings, configuration};
use crate::programs::Programs;

/// One of several baremetald. It is killed on drop.
pub struct Replica {
    hostname: String,
    daemon: Mutex<ChildDaemon>,
    servers: Vec<SocketAddr>,
    api: Api,
    clock: PathBuf,
}

impl Lab {
    /// Starts a further baremetald on the PostgreSQL of the lab, with the lab's keys and listeners of its own. Machines boot from the first
    /// one.
    pub async fn replica(&self, hostname: &str) -> Replica {
        for key in KEYS {
            self.copy_key(hostname, key);
        }
        Replica::start(&self.settings, &self.folder, (hostname, &state_of(hostname)), None).await
    }

    /// Starts a further baremetald with the host name of another one, and returns its log.
    pub async fn replica_named_as(&self, name: &str, hostname: &str) -> String {
        for key in KEYS {
            self.copy_key(name, key);
        }
        let state = state_of(name);
        log_of(&write(&self.settings, &self.folder, (hostname, &state), None)).await
    }

    /// Starts a further baremetald with a service key of its own, and returns its log.
    pub async fn replica_with_own_key(&self, hostname: &str) -> String {
        self.copy_key(hostname, SEAL_KEYS);
        let state = state_of(hostname);
        log_of(&write(&self.settings, &self.folder, (hostname, &state), None)).await
    }

    fn copy_key(&self, name: &str, key: &str) {
        copy_key(&self.folder, name, key);
    }
}

pub(crate) const SEAL_KEYS: &str = "seal.keys";
pub(crate) const KEYS: [&str; 2] = ["service.key", SEAL_KEYS];

/// The folder with libfaketime for this architecture.
const FAKED_CLOCK: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// The name of the state folder of a further baremetald.
pub(crate) fn state_of(name: &str) -> String {
    format!("state-{name}")
}

/// Copies a key of the lab's first baremetald into the state folder of a further one.
pub(crate) fn copy_key(folder: &TempDir, name: &str, key: &str) {
    let state = folder.path().join(state_of(name));
    std::fs::create_dir_all(&state).expect("a state folder can be made");
    let first = folder.path().join(FIRST.1);
    std::fs::copy(first.join(key), state.join(key)).expect("the keys can be copied");
}

/// Writes the configuration of a baremetald, and returns its file.
fn write(
    settings: &Settings,
    folder: &TempDir,
    (hostname, state): (&str, &str),
    at: Option<&Listeners>,
) -> PathBuf {
    let config = folder.path().join(format!("{state}.toml"));
    let text = configuration(settings, folder.path(), (hostname, state), at);
    std::fs::write(&config, text).expect("the configuration can be written");
    config
}

/// Runs a baremetald until it fails, and returns its log.
async fn log_of(config: &Path) -> String {
    let mut program = Command::new(compat::program("baremetald"));
    let ended =
        program.arg("--config").arg(config).stdin(Stdio::null()).kill_on_drop(true).output();
    let ended = ended.await.expect("baremetald runs");
    assert!(!ended.status.success(), "baremetald ended as it should not");
    left::keep_text("children", &ended.stderr);
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

impl Replica {
    /// Starts a baremetald with this host name and state folder, on free ports or on those of `at`.
    pub(crate) async fn start(
        settings: &Settings,
        folder: &TempDir,
        (hostname, state): (&str, &str),
        at: Option<&Listeners>,
    ) -> Replica {
        let config = write(settings, folder, (hostname, state), at);
        let clock = folder.path().join(format!("{state}.clock"));
        let environment = match settings.clocks {
            ReplicaClocks::OfComputer => Vec::new(),
            ReplicaClocks::Faked => faked_clock(&clock),
        };
        let state = folder.path().join(state);
        let programs = settings.programs.clone();
        let (daemon, listeners) =
            ChildDaemon::listening(&config, &state, programs, environment).await;
        let servers = [listeners.api].into_iter().chain(listeners.provisioning).collect();
        let base = Url::parse(&format!("http://{}/", listeners.api));
        let api = Api::new(Service::Baremetald, base.expect("an address makes a URL"));
        Replica { hostname: hostname.to_owned(), daemon: Mutex::new(daemon), servers, api, clock }
    }

    /// Its host name, by which the API names the conductor.
    pub fn hostname(&self) -> &str {
        &self.hostname
    }

    /// The addresses of its API and of its provisioning listener.
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// A client of its API.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Sends a signal: `KILL`, `TERM`, `STOP` or `CONT`.
    pub async fn signal(&self, name: &str) {
        self.daemon.lock().await.signal(name).await;
    }

    /// Returns whether it has logged a line with this text.
    pub async fn says(&self, text: &str) -> bool {
        self.daemon.lock().await.says(text)
    }

    /// Kills it (SIGKILL) if it still runs, and waits until it is gone.
    pub async fn kill(&self) {
        self.daemon.lock().await.kill().await;
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&self) {
        self.daemon.lock().await.ended().await;
    }

    /// Starts it again after its end, on the same ports.
    pub async fn start_again(&self) {
        self.daemon.lock().await.start(usize::MAX);
    }

    /// Chooses the programs of the next start.
    pub async fn replace(&self, programs: &Programs) {
        self.daemon.lock().await.programs = programs.clone();
    }

    /// Sets its clock so many seconds before or behind that of this computer. The process takes a second to notice.
    pub fn set_clock(&self, seconds: i32) {
        // The process reads the file at any moment, so it must not find it empty.
        let new = self.clock.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}\n")).expect("a file can be written");
        std::fs::rename(&new, &self.clock).expect("a file can be replaced");
    }
}

/// The environment of a process with a clock of its own, which follows this file. Its monotonic clock goes on as that of a computer does
/// whose clock is set.
fn faked_clock(file: &Path) -> Vec<(&'static str, OsString)> {
    std::fs::write(file, "+0\n").expect("a file can be written");
    vec![
        ("LD_PRELOAD", FAKED_CLOCK.into()),
        ("FAKETIME_TIMESTAMP_FILE", file.into()),
        ("FAKETIME_CACHE_DURATION", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ("FAKETIME_DONT_RESET", "1".into()),
    ]
}

/// Whether libfaketime is installed.
pub fn clocks_can_be_faked() -> bool {
    Path::new(FAKED_CLOCK).is_file()
}
