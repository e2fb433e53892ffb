//! iPXE: downloads a script and runs it, according to <https://ipxe.org/scripting> and <https://ipxe.org/cmd>.

mod command;
mod words;

use std::net::Ipv4Addr;

use url::Url;

use crate::causes::chain;
use crate::event::Event;
use crate::fetch::{self, FetchError};
use crate::handover::Handover;
use crate::machine::Machine;
use crate::rack_context::RackContext;

use command::{Environment, Flow};
use words::Operator;

/// The limit of scripts that start scripts.
const DEEPEST: usize = 8;
/// A script with more commands is in an endless loop.
const MOST_COMMANDS: usize = 100_000;

/// The outcome of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The script started a kernel.
    Kernel(Handover),
    /// The script exited iPXE; the firmware continues with its boot order.
    Exit,
    /// The script boots the disk.
    LocalDisk,
}

/// The reasons why a script failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("iPXE cannot load its script")]
    Load(#[source] FetchError),
    #[error("{url} does not begin with #!ipxe")]
    NoScript { url: Url },
    #[error("the script fails at {line:?}: {why}")]
    Command { line: String, why: String },
    #[error("the script runs in circles")]
    Endless,
}

pub(crate) async fn run(
    machine: &Machine,
    world: &RackContext,
    address: Ipv4Addr,
    url: Url,
) -> Result<Ended, ScriptError> {
    let environment = Environment::new(machine, world, address);
    Interpreter { environment, commands: 0 }.script(url, DEEPEST).await
}

/// iPXE, which counts the commands that it has run.
struct Interpreter<'a> {
    environment: Environment<'a>,
    commands: usize,
}

impl Interpreter<'_> {
    /// Downloads and runs a script, and the scripts that replace it.
    async fn script(&mut self, mut url: Url, depth: usize) -> Result<Ended, ScriptError> {
        loop {
            let text =
                fetch::text(&self.environment.world.http, &url).await.map_err(ScriptError::Load)?;
            if !text.starts_with("#!ipxe") {
                return Err(ScriptError::NoScript { url });
            }
            self.environment.machine.tell(Event::RunsScript);
            match self.lines(&text, depth).await? {
                Flow::Boot(handover) => return Ok(Ended::Kernel(handover)),
                Flow::LocalDisk => return Ok(Ended::LocalDisk),
                Flow::Exit | Flow::Next | Flow::Goto(_) | Flow::Call(_) => return Ok(Ended::Exit),
                Flow::Replace(next) => url = next,
            }
        }
    }

    /// Runs the lines of a script until its end, or until a line ends it.
    async fn lines(&mut self, text: &str, depth: usize) -> Result<Flow, ScriptError> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            if line.is_empty() || line.starts_with('#') || line.starts_with(':') {
                continue;
            }
            match self.line(line, depth).await? {
                Flow::Next => {}
                Flow::Goto(label) => {
                    let wanted = format!(":{label}");
                    let found = lines.iter().position(|line| *line == wanted);
                    at = found.ok_or_else(|| ScriptError::Command {
                        line: (*line).to_owned(),
                        why: format!("there is no label {label}"),
                    })?;
                }
                flow @ (Flow::Boot(_)
                | Flow::LocalDisk
                | Flow::Exit
                | Flow::Replace(_)
                | Flow::Call(_)) => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// Runs a line: commands joined by `||`, `&&` and `;`. A failing line ends its script.
    async fn line(&mut self, line: &str, depth: usize) -> Result<Flow, ScriptError> {
        let mut outcome = Ok(Flow::Next);
        let mut joint = Operator::Always;
        for (words, next) in words::split(line) {
            let wanted = match joint {
                Operator::Always => true,
                Operator::IfFailed => outcome.is_err(),
                Operator::IfDone => outcome.is_ok(),
            };
            if wanted {
                self.commands += 1;
                if self.commands > MOST_COMMANDS {
                    return Err(ScriptError::Endless);
                }
                let words: Vec<String> =
                    words.iter().map(|word| self.environment.expand(word)).collect();
                outcome = match self.environment.command(&words).await {
                    Ok(Flow::Call(url)) => Box::pin(self.call(url, depth)).await,
                    outcome => outcome,
                };
                if let Ok(flow) = &outcome
                    && *flow != Flow::Next
                {
                    return Ok(flow.clone());
                }
            }
            joint = next;
        }
        // An empty command after `||` does nothing and succeeds.
        outcome.or_else(|why| match joint {
            Operator::IfFailed => Ok(Flow::Next),
            Operator::Always | Operator::IfDone => {
                Err(ScriptError::Command { line: line.chars().take(60).collect(), why })
            }
        })
    }

    /// Runs another script, and then the rest of this one.
    async fn call(&mut self, url: Url, depth: usize) -> Result<Flow, String> {
        let deeper = depth.checked_sub(1).ok_or("too many scripts have started scripts")?;
        match self.script(url, deeper).await {
            Ok(Ended::Kernel(handover)) => Ok(Flow::Boot(handover)),
            Ok(Ended::LocalDisk) => Ok(Flow::LocalDisk),
            Ok(Ended::Exit) => Ok(Flow::Next),
            Err(error) => Err(chain(&error)),
        }
    }
}
