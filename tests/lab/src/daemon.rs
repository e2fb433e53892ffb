//! Runs baremetald inside the test process, or as a child process that can be killed.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baremetal::{Listeners, Service};
use tokio::fs;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::api::TIMEOUT;
use crate::programs::Programs;
use crate::trap::Trap;

/// A running service, which stops on drop.
pub(crate) enum Daemon {
    /// Runs in the test process.
    Inside { stop: CancellationToken, _running: JoinSet<()> },
    /// Runs as a child process.
    Child(ChildDaemon),
    /// Runs in the test process, on a runtime of its own that can be dropped at any moment.
    Mortal(KillableDaemon),
    /// The lab has several replicas, which the test holds.
    Elsewhere,
}

/// A service that dies at the points selected by its trap.
pub(crate) struct KillableDaemon {
    config: PathBuf,
    pub(crate) trap: Arc<Trap>,
    life: Option<(Runtime, JoinHandle<()>)>,
}

/// A service in a child process.
#[derive(Default)]
pub(crate) struct ChildDaemon {
    config: PathBuf,
    /// The programs of the next start.
    pub(crate) programs: Programs,
    environment: Vec<(&'static str, OsString)>,
    pid: Option<u32>,
    log: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    /// Reads the log of the service until the service is dead; returns whether the service was killed at its line.
    reading: JoinSet<KillResult>,
}

/// Whether a service was killed at the requested line of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillResult {
    AtLine,
    /// The service never wrote as many lines.
    Never,
}

impl Daemon {
    /// Starts the service inside the test process.
    pub(crate) async fn inside(config: &Path) -> (Daemon, Listeners) {
        let config = baremetal::config::load(config).expect("the lab's configuration is valid");
        let service = Service::start(config).await.expect("baremetald starts");
        let listeners = service.listeners().clone();
        let stop = CancellationToken::new();
        let mut running = JoinSet::new();
        let until = stop.clone();
        running.spawn(async move { service.run(until).await.expect("baremetald runs") });
        (Daemon::Inside { stop, _running: running }, listeners)
    }

    /// Starts the service as a child process.
    pub(crate) async fn child(config: &Path, state: &Path) -> (Daemon, Listeners) {
        let programs = Programs::default();
        let (outside, listeners) =
            ChildDaemon::listening(config, state, programs, Vec::new()).await;
        (Daemon::Child(outside), listeners)
    }
}

impl Daemon {
    /// Starts the service inside the test process, ready to be killed.
    pub(crate) async fn mortal(config: &Path, database: &str) -> (Daemon, Listeners) {
        let trap = Trap::new(database);
        let mut mortal = KillableDaemon { config: config.to_owned(), trap, life: None };
        let listeners = mortal.live().await.expect("baremetald listens");
        (Daemon::Mortal(mortal), listeners)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        match self {
            Daemon::Inside { stop, .. } => stop.cancel(),
            Daemon::Child(outside) if std::thread::panicking() => {
                let log = outside.log.lock().unwrap_or_else(PoisonError::into_inner);
                let last = log[log.len().saturating_sub(60)..].join("\n");
                eprintln!("baremetald said last:\n{last}");
            }
            Daemon::Child(_) | Daemon::Elsewhere => {}
            Daemon::Mortal(mortal) => {
                // Does not wait for the end of the runtime, because drop may run inside a runtime, where waiting is not possible.
                if let Some((runtime, _)) = mortal.life.take() {
                    runtime.shutdown_background();
                }
            }
        }
    }
}

impl KillableDaemon {
    /// Starts the service again.
    pub(crate) fn live(&mut self) -> oneshot::Receiver<Listeners> {
        let (reported, listening) = oneshot::channel();
        let config = baremetal::config::load(&self.config).expect("the configuration is valid");
        let trap = self.trap.clone();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let living = runtime.spawn(async move {
            let began = Instant::now();
            let service = loop {
                match Service::start_with(config.clone(), trap.tripwire()).await {
                    Ok(service) => break service,
                    // While the service was dead, another test may have got one of its ports.
                    Err(error) if lacks_a_port(&error) && began.elapsed() < TIMEOUT / 2 => {
                        sleep(Duration::from_millis(100)).await;
                    }
                    Err(error) => panic!("baremetald starts: {error:?}"),
                }
            };
            // The receiver is gone if the caller knows the addresses from the first start.
            let _ = reported.send(service.listeners().clone());
            service.run(CancellationToken::new()).await.expect("baremetald runs");
        });
        self.life = Some((runtime, living));
        listening
    }

    /// Kills the service at once, without finishing anything in progress.
    pub(crate) async fn die(&mut self) {
        let Some((runtime, living)) = self.life.take() else { return };
        let ended = living.is_finished();
        let dropped = spawn_blocking(move || runtime.shutdown_timeout(TIMEOUT)).await;
        dropped.expect("a runtime can be dropped");
        if ended {
            living.await.expect("baremetald lives until it is killed");
        }
    }
}

/// Whether somebody else listens on an address of the service.
fn lacks_a_port(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::AddrInUse)
}

impl ChildDaemon {
    /// Starts the program of a build with further variables in its environment, and waits until it listens.
    pub(crate) async fn listening(
        config: &Path,
        state: &Path,
        programs: Programs,
        environment: Vec<(&'static str, OsString)>,
    ) -> (ChildDaemon, Listeners) {
        let config = config.to_owned();
        let mut outside = ChildDaemon { config, programs, environment, ..ChildDaemon::default() };
        outside.start(usize::MAX);
        let listeners = outside.listeners(state).await;
        (outside, listeners)
    }

    /// Sends a signal to the program.
    pub(crate) async fn signal(&self, name: &str) {
        let pid = self.pid.expect("the program was started").to_string();
        let sent = Command::new("kill").arg(format!("-{name}")).arg(pid).status().await;
        assert!(sent.expect("kill runs").success(), "no process gets {name}");
    }

    /// Starts the program and kills it (SIGKILL) as soon as it has logged `lines` lines that report an action or a state.
    pub(crate) fn start(&mut self, lines: usize) {
        let mut child = Command::new(self.programs.path("baremetald"))
            .arg("--config")
            .arg(&self.config)
            .env(
                "RUST_LOG",
                "info,baremetal_conductor=debug,baremetal_api=debug,redfish=debug,ipmi=debug",
            )
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("baremetald starts");
        // Every user of the machine can read the command line, so it must contain no secret.
        self.pid = child.id();
        let shown = child.id().map(|id| format!("/proc/{id}/cmdline"));
        let shown = shown.and_then(|file| std::fs::read(file).ok());
        left::keep_text("command-lines", &shown.unwrap_or_default());
        self.stop = CancellationToken::new();
        let (log, stop) = (self.log.clone(), self.stop.clone());
        self.reading.spawn(async move {
            let killed = tokio::select! {
                killed = read(&mut child, &log, lines) => killed,
                () = stop.cancelled() => KillResult::Never,
            };
            // Waits until the process is gone and its ports are free.
            child.kill().await.expect("a child can be killed");
            killed
        });
    }

    /// Waits until the program was killed at its line.
    pub(crate) async fn killed(&mut self) {
        let ended = self.reading.join_next().await.expect("a child is there");
        let killed = ended.expect("reading does not panic");
        assert_eq!(killed, KillResult::AtLine, "baremetald ended by itself");
    }

    /// Waits until the program has ended by itself.
    pub(crate) async fn ended(&mut self) {
        while let Some(ended) = self.reading.join_next().await {
            ended.expect("reading does not panic");
        }
    }

    /// Returns whether a line of the program's log contains this text.
    pub(crate) fn says(&self, text: &str) -> bool {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().any(|line| line.contains(text))
    }

    /// Kills the program now, unless it is dead already; returns whether it was killed at its line before.
    pub(crate) async fn kill(&mut self) -> KillResult {
        self.stop.cancel();
        let mut killed = KillResult::Never;
        while let Some(ended) = self.reading.join_next().await {
            killed = ended.expect("reading does not panic");
        }
        killed
    }

    /// The logged lines that report an action or a state.
    pub(crate) fn steps(&self) -> Vec<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().filter(|line| is_step(line)).cloned().collect()
    }

    /// The addresses of the listeners, once the service listens.
    async fn listeners(&self, state: &Path) -> Listeners {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let text = fs::read(state.join("listeners.json")).await.unwrap_or_default();
            if let Ok(listeners) = serde_json::from_slice(&text) {
                return listeners;
            }
            assert!(Instant::now() < deadline, "baremetald does not listen: {:?}", self.log);
            sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

/// Reads the log until it has `lines` lines that report an action or a state, or until the program ends.
async fn read(child: &mut Child, log: &Mutex<Vec<String>>, lines: usize) -> KillResult {
    let output = child.stderr.take().expect("its output is piped");
    let mut output = BufReader::new(output).lines();
    let mut reported = 0;
    while let Ok(Some(line)) = output.next_line().await {
        reported += usize::from(is_step(&line));
        left::keep_text("children", line.as_bytes());
        log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        if reported >= lines {
            return KillResult::AtLine;
        }
    }
    KillResult::Never
}

/// Whether a line of the log reports the start of an action or a new state, of a node or of its host that joins the cloud.
fn is_step(line: &str) -> bool {
    let node = line.contains(": node ") && (line.contains(" is now ") || line.contains(": host "));
    node || line.contains(": performing ") || line.contains(": asking the cloud for host ")
}
