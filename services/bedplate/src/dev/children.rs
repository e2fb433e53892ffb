//! Child processes that do not outlive this process.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::process::{self, Command};
use tokio::time::{Instant, sleep};

/// The timeout for a child process to become ready.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How often child processes are checked for readiness and their end.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// The programs that are started.
pub(super) const PROGRAMS: [&str; 5] =
    ["openstack-emulator", "machine-emulator", "baremetald", "clusterd", "consoled"];

/// The running child processes.
pub(super) struct Children {
    all: Vec<Child>,
    /// Every child process inherits the lock, so the next `bedplate dev` waits until the last of them has ended.
    lock: File,
}

struct Child {
    name: &'static str,
    log: PathBuf,
    process: process::Child,
}

/// The arguments of a child process before it executes its program.
#[derive(Args)]
pub(crate) struct ChildArguments {
    /// Process id of the parent.
    parent: u32,
    /// Program and its arguments.
    #[arg(last = true)]
    program: Vec<OsString>,
}

/// Executes a program that the kernel kills when the parent ends: prctl(2), `PR_SET_PDEATHSIG`, which survives execve(2).
pub(super) fn become_program(ward: &ChildArguments) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot tie this process to its parent")?;
    ensure!(parent_id() == ward.parent, "the parent has ended");
    let (program, arguments) = ward.program.split_first().context("no program is named")?;
    let why = std::process::Command::new(program).args(arguments).exec();
    Err(why).with_context(|| format!("cannot start {}", program.display()))
}

/// The path of the program `name`, which is in the same folder as this program.
pub(super) fn program(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    Ok(own.with_file_name(name))
}

impl Children {
    /// Makes an empty list whose future child processes inherit `lock`.
    pub(super) fn new(lock: File) -> Children {
        Children { all: Vec::new(), lock }
    }

    /// Starts the program `name` from the folder of this program. Its output goes to `log`.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        log: &Path,
        arguments: impl FnOnce(&mut Command),
    ) -> anyhow::Result<()> {
        let program = program(name)?;
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let own = std::env::current_exe().context("cannot find the path of this program")?;
        let mut command = Command::new(own);
        command.args(["dev", "child", &std::process::id().to_string(), "--"]).arg(&program);
        arguments(&mut command);
        command
            .stdin(self.lock.try_clone()?)
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true);
        let process = command.spawn();
        let process = process.with_context(|| format!("cannot start {}", program.display()))?;
        self.all.push(Child { name, log: log.to_owned(), process });
        Ok(())
    }

    /// Waits until `ready` returns true for the program that was started last. Returns an error if a program ends before.
    pub(super) async fn ready<F>(
        &mut self,
        limit: Duration,
        ready: impl Fn() -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = bool>,
    {
        let deadline = Instant::now() + limit;
        while !ready().await {
            self.all_run()?;
            if let Some(last) = self.all.last().filter(|_| Instant::now() > deadline) {
                let (name, secs, log) = (last.name, limit.as_secs(), last.log.display());
                bail!("{name} is not ready after {secs} s: see {log}");
            }
            sleep(ASK_EVERY).await;
        }
        Ok(())
    }

    /// Waits for the end of any program, which is an error.
    pub(super) async fn ended(&mut self) -> anyhow::Result<()> {
        loop {
            self.all_run()?;
            sleep(ASK_EVERY).await;
        }
    }

    /// Kills all child processes, and waits until they have ended.
    pub(super) async fn end(mut self) {
        for child in self.all.iter_mut().rev() {
            // The call fails only if the process has already ended.
            let _ = child.process.kill().await;
        }
    }

    fn all_run(&mut self) -> anyhow::Result<()> {
        for child in &mut self.all {
            let ended =
                child.process.try_wait().context("cannot get the state of a child process")?;
            if let Some(status) = ended {
                return child.has_ended(status);
            }
        }
        Ok(())
    }
}

impl Child {
    fn has_ended(&self, status: ExitStatus) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        bail!("{} ended with {status}; last output:\n{last}", self.name);
    }
}
