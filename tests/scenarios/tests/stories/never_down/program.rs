//! A service with fixed addresses, as a process that can be killed and started again.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use lab::Programs;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::own_vm::until;
use crate::services::signal;

/// A service, which is killed on drop.
pub(super) struct Program {
    program: &'static str,
    /// Its host name.
    pub(super) name: String,
    folder: PathBuf,
    /// The address of its listener.
    pub(super) at: SocketAddr,
    /// The programs of the next start.
    programs: Mutex<Programs>,
    running: Mutex<Option<Child>>,
}

impl Program {
    /// Starts a program of a build with this configuration, and waits until it listens.
    pub(super) async fn start(
        (program, programs): (&'static str, &Programs),
        name: &str,
        folder: PathBuf,
        at: SocketAddr,
        config: &str,
    ) -> Program {
        let (name, programs) = (name.to_owned(), Mutex::new(programs.clone()));
        let started = Program { program, name, folder, at, programs, running: Mutex::default() };
        std::fs::write(started.file("toml"), config).expect("a file");
        started.start_again().await;
        started
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}-{}.{kind}", self.program, self.name))
    }

    /// Chooses the programs of the next start.
    pub(super) async fn replace(&self, programs: &Programs) {
        *self.programs.lock().await = programs.clone();
    }

    /// Starts it again after its end, and waits until it listens.
    pub(super) async fn start_again(&self) {
        self.launch().await;
        self.listens().await;
    }

    /// Waits until it listens.
    pub(super) async fn listens(&self) {
        until(&self.name, async || TcpStream::connect(self.at).await.ok()).await;
    }

    /// Returns whether it has logged a line with this text.
    pub(super) fn says(&self, text: &str) -> bool {
        std::fs::read_to_string(self.file("log")).is_ok_and(|log| log.contains(text))
    }

    /// Starts it again after its end.
    pub(super) async fn launch(&self) {
        let log = std::fs::File::options().create(true).append(true).open(self.file("log"));
        let program = self.programs.lock().await.path(self.program);
        let child = Command::new(program)
            .arg("--config")
            .arg(self.file("toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log"))
            .kill_on_drop(true)
            .spawn();
        *self.running.lock().await = Some(child.expect("the program starts"));
    }

    /// Kills it (SIGKILL), and waits until it is gone.
    pub(super) async fn kill(&self) {
        if let Some(mut child) = self.running.lock().await.take() {
            child.kill().await.expect("a child can be killed");
        }
    }

    /// Waits until it has ended by itself.
    pub(super) async fn ended(&self) {
        if let Some(mut child) = self.running.lock().await.take() {
            child.wait().await.expect("a child can be waited for");
        }
    }

    /// Sends a signal: `TERM`, `STOP` or `CONT`.
    pub(super) async fn signal(&self, name: &str) {
        signal(self.running.lock().await.as_ref().expect("it runs"), name).await;
    }

    /// The lines of its log, for the reader of a failed test and for the search for secrets.
    fn keep_log(&self) {
        let said = std::fs::read_to_string(self.file("log")).unwrap_or_default();
        left::keep_text("children", said.as_bytes());
        if std::thread::panicking() {
            let lines: Vec<&str> = said.lines().collect();
            let last = &lines[lines.len().saturating_sub(30)..];
            eprintln!("{} {}:\n{}", self.program, self.name, last.join("\n"));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.keep_log();
    }
}
