//! The commands that the conductor gave to this agent. Only one runs at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_protocol::{Command, CommandError, CommandStatus};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use crate::machine::Machine;
use crate::meter::ProgressMeter;
use crate::steps::{self, Outcome};
use crate::task::Task;

/// More commands than a conductor gives to one boot; the oldest are dropped beyond that.
const KEPT: usize = 256;

/// Why a command is not started.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error("the agent is busy with {0}")]
    Busy(String),
    #[error(
        "{name} was given for version {version} of the node's record, but the agent has a command for version {newest}"
    )]
    Late { name: &'static str, version: i64, newest: i64 },
}

/// All commands so far, oldest first.
#[derive(Default)]
pub struct Commands {
    list: Mutex<Vec<Entry>>,
    /// Notified when a long command has ended, so that a heartbeat is sent at once.
    pub ended: Notify,
}

struct Entry {
    command: Command,
    /// The version of the node's record for which the command was given, if the conductor tells it.
    record_version: Option<i64>,
    meter: Arc<ProgressMeter>,
    done: watch::Receiver<bool>,
}

impl Entry {
    fn shown(&self) -> Command {
        let mut command = self.command.clone();
        let progress = self.meter.read();
        if progress.done_bytes > 0 || progress.total_bytes.is_some() {
            command.command_progress = Some(progress);
        }
        command
    }
}

impl Commands {
    fn list(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a command and returns its id, unless another command is running. A command for a version of the node's record that is not newer
    /// than those of all earlier commands is late: a conductor has sent it that lost the node to another one meanwhile.
    pub fn start(
        self: &Arc<Self>,
        machine: &Arc<Machine>,
        task: Task,
        record_version: Option<i64>,
    ) -> Result<String, NotStarted> {
        let id = uuid::Uuid::new_v4().to_string();
        let meter = Arc::new(ProgressMeter::default());
        let (finish, done) = watch::channel(false);
        {
            let mut list = self.list();
            let newest = list.iter().filter_map(|entry| entry.record_version).max();
            if let (Some(version), Some(newest)) = (record_version, newest)
                && version <= newest
            {
                return Err(NotStarted::Late { name: task.name(), version, newest });
            }
            let running =
                list.iter().find(|entry| entry.command.command_status == CommandStatus::Running);
            if let Some(running) = running {
                return Err(NotStarted::Busy(running.command.command_name.clone()));
            }
            if list.len() >= KEPT {
                list.remove(0);
            }
            let command = Command {
                id: id.clone(),
                command_name: task.name().to_owned(),
                command_status: CommandStatus::Running,
                command_error: None,
                command_result: None,
                command_progress: None,
            };
            list.push(Entry { command, record_version, meter: meter.clone(), done });
        }
        info!(command.id = %id, command.name = task.name(), "running {}", task.name());
        let (commands, machine, own) = (self.clone(), machine.clone(), id.clone());
        tokio::spawn(async move {
            let (name, long) = (task.name(), task.is_long());
            // The command runs in a separate task, so that a panic ends as a failed command.
            let outcome =
                tokio::spawn(async move { steps::run(&machine, task, meter).await }).await;
            let outcome = outcome.unwrap_or_else(|_| Err(defect()));
            match &outcome {
                Ok(_) => info!(command.id = %own, command.name = name, "{name} is done"),
                Err(error) => {
                    warn!(command.id = %own, command.name = name, "{name} failed: {}", error.details)
                }
            }
            commands.finish(&own, outcome);
            let _ = finish.send(true);
            if long {
                commands.ended.notify_one();
            }
        });
        Ok(id)
    }

    fn finish(&self, id: &str, outcome: Result<Outcome, CommandError>) {
        let mut list = self.list();
        let Some(entry) = list.iter_mut().find(|entry| entry.command.id == id) else { return };
        let (status, result, error): (_, Option<Value>, _) = match outcome {
            Ok(Outcome::Done(value)) => (CommandStatus::Succeeded, Some(value), None),
            Ok(Outcome::VersionMismatch) => (CommandStatus::CleanVersionMismatch, None, None),
            Err(error) => (CommandStatus::Failed, None, Some(error)),
        };
        entry.command.command_status = status;
        entry.command.command_result = result;
        entry.command.command_error = error;
    }

    /// Returns every command.
    pub fn all(&self) -> Vec<Command> {
        self.list().iter().map(Entry::shown).collect()
    }

    /// Returns the current state of one command.
    pub fn get(&self, id: &str) -> Option<Command> {
        self.list().iter().find(|entry| entry.command.id == id).map(Entry::shown)
    }

    /// Waits until the command has ended, and returns it.
    pub async fn ended(&self, id: &str) -> Option<Command> {
        let mut done = {
            let list = self.list();
            list.iter().find(|entry| entry.command.id == id)?.done.clone()
        };
        // The sender sends before it is dropped, so an error cannot occur.
        let _ = done.wait_for(|done| *done).await;
        self.get(id)
    }
}

fn defect() -> CommandError {
    crate::error::failure(
        "AgentError",
        "the agent failed",
        "The agent has a defect; collect its logs and report it.",
    )
}
