//! Waits for all children of the first process: its own children, and every orphan of the machine.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// The running children, and the results of children that have ended.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    children: Mutex<HashMap<Pid, Option<bool>>>,
    ended: Condvar,
}

impl Reaper {
    /// Starts a program. `outcome` waits for its end.
    pub(crate) fn spawn(&self, command: &mut Command) -> Result<Pid> {
        let program = Path::new(command.get_program()).to_owned();
        // Checked before the start, because the library would wait for a child whose exec failed, while this process reaps all children.
        let executable =
            program.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
        if !executable {
            bail!("program not found: {}", program.display());
        }
        // The lock is held until the child is registered, so that its end cannot be missed.
        let mut children = self.children();
        let child =
            command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let id = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("a process has an id")?;
        children.insert(id, None);
        Ok(id)
    }

    /// Waits for the child and returns whether it succeeded. The child is killed when `until` passes.
    pub(crate) fn outcome(&self, child: Pid, until: Option<Instant>) -> bool {
        let mut children = self.children();
        loop {
            if let Some(Some(success)) = children.get(&child) {
                let success = *success;
                children.remove(&child);
                return success;
            }
            if until.is_some_and(|until| until < Instant::now()) {
                let _ = kill_process(child, Signal::KILL);
            }
            let waited = self.ended.wait_timeout(children, Duration::from_secs(1));
            children = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reaps children for ever.
    pub(crate) fn run(&self) -> ! {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((child, status))) => {
                    let success = status.exit_status() == Some(0);
                    if let Some(known) = self.children().get_mut(&child) {
                        *known = Some(success);
                    }
                    self.ended.notify_all();
                }
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn children(&self) -> MutexGuard<'_, HashMap<Pid, Option<bool>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
