//! Further baremetald on the database of a lab, as child processes.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use api_client::Service;
use tokio::process::Command;
use url::Url;

use crate::api::Api;
use crate::daemon::ChildDaemon;
use crate::lab::{Lab, configuration};

/// A further baremetald. It is killed on drop.
pub struct Replica {
    daemon: ChildDaemon,
    api: Api,
}

impl Lab {
    /// Starts a further baremetald on the PostgreSQL of the lab, with the lab's keys and listeners of its own. Machines boot from the first
    /// one.
    pub async fn replica(&self, hostname: &str) -> Replica {
        let config = self.prepare_replica(hostname, hostname);
        for key in KEYS {
            self.copy_key(hostname, key);
        }
        let state = self.folder.path().join(state_of(hostname));
        let (daemon, listeners) = ChildDaemon::listening(&config, &state).await;
        let base = Url::parse(&format!("http://{}/", listeners.api));
        let api = Api::new(Service::Baremetald, base.expect("an address makes a URL"));
        Replica { daemon, api }
    }

    /// Starts a further baremetald with the host name of another one, and returns its log.
    pub async fn replica_named_as(&self, name: &str, hostname: &str) -> String {
        let config = self.prepare_replica(name, hostname);
        for key in KEYS {
            self.copy_key(name, key);
        }
        log_of(&config).await
    }

    /// Starts a further baremetald with a service key of its own, and returns its log.
    pub async fn replica_with_own_key(&self, hostname: &str) -> String {
        let config = self.prepare_replica(hostname, hostname);
        self.copy_key(hostname, SEAL_KEYS);
        log_of(&config).await
    }

    /// Makes the state folder and the configuration of a further baremetald.
    fn prepare_replica(&self, name: &str, hostname: &str) -> PathBuf {
        let (folder, state) = (self.folder.path(), state_of(name));
        std::fs::create_dir(folder.join(&state)).expect("a state folder can be made");
        let config = folder.join(format!("{name}.toml"));
        let text = configuration(&self.settings, &self.folder, (hostname, &state), None);
        std::fs::write(&config, text).expect("the configuration can be written");
        config
    }

    fn copy_key(&self, name: &str, key: &str) {
        let folder = self.folder.path();
        let copy = folder.join(state_of(name)).join(key);
        std::fs::copy(folder.join("state").join(key), copy).expect("the keys can be copied");
    }
}

const SEAL_KEYS: &str = "seal.keys";
const KEYS: [&str; 2] = ["service.key", SEAL_KEYS];

fn state_of(name: &str) -> String {
    format!("state-{name}")
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
    /// A client of its API.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Sends a signal: `KILL`, `TERM`, `STOP` or `CONT`.
    pub async fn signal(&self, name: &str) {
        self.daemon.signal(name).await;
    }
}
