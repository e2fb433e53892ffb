//! The service under test: a separate daemon for each test, `baremetald` with only fake hardware, or `clusterd`.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, mem, process};

use serde_json::Value;

use crate::program;
use crate::wait::wait_for;
use crate::wire::{Reply, Request};

/// Names another service to test instead of ours: `http://HOST:PORT`.
const URL_VARIABLE: &str = "BEDPLATE_COMPAT_URL";

/// How long a daemon may take to listen, on a machine that compiles at the same time.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A service that answers.
pub struct Service {
    /// `http://HOST:PORT`, without a trailing slash.
    pub url: String,
    /// Our own daemon, which ends with the test. `None` is another service, which is left as empty as it was.
    daemon: Option<Daemon>,
}

struct Daemon {
    program: &'static str,
    process: Child,
    folder: PathBuf,
}

impl Service {
    /// Starts our own service, or uses the one in the environment variable, which must be empty.
    #[track_caller]
    pub fn start() -> Self {
        let Ok(url) = env::var(URL_VARIABLE) else { return Service::start_own("baremetald", "") };
        let service = Service { url: url.trim_end_matches('/').to_owned(), daemon: None };
        let nodes = service.nodes();
        if !nodes.is_empty() {
            // `ManuallyDrop` prevents the clean-up, which would delete nodes that are not ours.
            let url = mem::ManuallyDrop::new(service).url.clone();
            panic!("{url} has {} nodes: the tests want an empty service", nodes.len());
        }
        service
    }

    /// Starts our own bare metal service, with these lines below `[api]` in its configuration.
    #[track_caller]
    pub fn machines_with(tables: &str) -> Self {
        Service::start_own("baremetald", tables)
    }

    /// Starts our own container infra service.
    #[track_caller]
    pub fn clusters() -> Self {
        Service::clusters_with("")
    }

    /// Starts our own container infra service, with these tables in its configuration.
    #[track_caller]
    pub fn clusters_with(tables: &str) -> Self {
        Service::start_own("clusterd", tables)
    }

    /// Whether this is our own daemon.
    pub fn is_ours(&self) -> bool {
        self.daemon.is_some()
    }

    /// Returns the address of a listener of our own daemon, by its name in `listeners.json`.
    #[track_caller]
    pub fn listener(&self, name: &str) -> String {
        let daemon = self.daemon.as_ref().expect("another service has no listeners.json");
        let text = fs::read(daemon.folder.join("listeners.json")).expect("the daemon listens");
        let listeners: Value = serde_json::from_slice(&text).expect("listeners.json is JSON");
        listeners[name].as_str().expect("the daemon has this listener").to_owned()
    }

    fn nodes(&self) -> Vec<String> {
        let list = self.ask("GET", "/v1/nodes?fields=uuid").json();
        let nodes = list["nodes"].as_array().into_iter().flatten();
        nodes.filter_map(|node| node["uuid"].as_str()).map(str::to_owned).collect()
    }

    #[track_caller]
    fn start_own(name: &'static str, tables: &str) -> Self {
        let folder = new_folder();
        let config = folder.join("daemon.toml");
        let state = folder.display();
        let text = format!("state_dir = '{state}'\n[api]\nlisten = '127.0.0.1:0'\n{tables}");
        fs::write(&config, text).expect("a file can be written");
        let log = fs::File::create(folder.join("log")).expect("a file can be written");
        let mut process = Command::new(program(name))
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("the daemon can be started");
        let address = wait_for("the daemon to listen", START_TIMEOUT, || {
            if let Ok(Some(status)) = process.try_wait() {
                let said = fs::read_to_string(folder.join("log")).unwrap_or_default();
                panic!("{name} ended with {status}:\n{said}");
            }
            let listeners = fs::read_to_string(folder.join("listeners.json")).ok()?;
            let listeners: Value = serde_json::from_str(&listeners).ok()?;
            listeners["api"].as_str().map(str::to_owned)
        });
        Service {
            url: format!("http://{address}"),
            daemon: Some(Daemon { program: name, process, folder }),
        }
    }

    /// Sends a request with the newest microversion.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str) -> Reply {
        Request::new(method, path).version("latest").send(&self.url)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.is_ours() {
            return;
        }
        for node in self.nodes() {
            // In maintenance, a node can be deleted in any state.
            self.ask("PUT", &format!("/v1/nodes/{node}/maintenance"));
            self.ask("DELETE", &format!("/v1/nodes/{node}"));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let said = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines.len().saturating_sub(40);
            eprintln!("{} said last:\n{}", self.program, lines[last..].join("\n"));
        }
        left::keep(&self.folder, self.program);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn new_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("bedplate-compat-{}-{number}", process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    folder
}
