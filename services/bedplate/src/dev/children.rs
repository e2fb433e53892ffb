//! Child processes that live no longer than this one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::{self, Command};
use tokio::time::{Instant, sleep};

/// How often a child is asked whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A program that was started.
pub(super) struct Child {
    name: &'static str,
    log: PathBuf,
    process: process::Child,
}

impl Child {
    /// Starts the program `name`, which lies beside this one; what it prints goes to `log`.
    pub(super) fn start(
        name: &'static str,
        log: &Path,
        arguments: impl FnOnce(&mut Command),
    ) -> anyhow::Result<Self> {
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
        Ok(Child { name, log: log.to_owned(), process })
    }

    /// Waits until `ready` says so; an error if the program ends before that.
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
            if self.process.try_wait().context("cannot tell whether a child runs")?.is_some() {
                return self.ended().await;
            }
            if Instant::now() > deadline {
                bail!(
                    "{} is not ready after {} s: see {}",
                    self.name,
                    limit.as_secs(),
                    self.log.display()
                );
            }
            sleep(ASK_EVERY).await;
        }
        Ok(())
    }

    /// Waits for the program's end, which is an error: it was to stay.
    pub(super) async fn ended(&mut self) -> anyhow::Result<()> {
        let status = self.process.wait().await.context("cannot wait for a child")?;
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        bail!("{} ended with {status}; it said last:\n{last}", self.name);
    }
}
