//! Child processes that live no longer than this one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::{self, Command};
use tokio::time::{Instant, sleep};

/// How often children are asked whether they are ready, or have ended.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// The programs that were started.
#[derive(Default)]
pub(super) struct Children(Vec<Child>);

struct Child {
    name: &'static str,
    log: PathBuf,
    process: process::Child,
}

impl Children {
    /// Starts the program `name`, which lies beside this one; what it prints goes to `log`.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        log: &Path,
        arguments: impl FnOnce(&mut Command),
    ) -> anyhow::Result<()> {
        let own = std::env::current_exe().context("cannot tell where this program is")?;
        let program = own.with_file_name(name);
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(&program);
        arguments(&mut command);
        command
            .stdin(std::process::Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true);
        let process = command.spawn().with_context(|| {
            format!("cannot start {}: build it first by `make build`", program.display())
        })?;
        self.0.push(Child { name, log: log.to_owned(), process });
        Ok(())
    }

    /// Waits until `ready` says so of the program started last; an error if any ends before that.
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
            if let Some(last) = self.0.last().filter(|_| Instant::now() > deadline) {
                let (name, secs, log) = (last.name, limit.as_secs(), last.log.display());
                bail!("{name} is not ready after {secs} s: see {log}");
            }
            sleep(ASK_EVERY).await;
        }
        Ok(())
    }

    /// Waits for the end of any program, which is an error: they were to stay.
    pub(super) async fn ended(&mut self) -> anyhow::Result<()> {
        loop {
            self.all_run()?;
            sleep(ASK_EVERY).await;
        }
    }

    /// Ends all of them, and waits until they have.
    pub(super) async fn end(mut self) {
        for child in self.0.iter_mut().rev() {
            // Fails only where it has ended already.
            let _ = child.process.kill().await;
        }
    }

    fn all_run(&mut self) -> anyhow::Result<()> {
        for child in &mut self.0 {
            let ended = child.process.try_wait().context("cannot tell whether a child runs")?;
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
        bail!("{} ended with {status}; it said last:\n{last}", self.name);
    }
}
