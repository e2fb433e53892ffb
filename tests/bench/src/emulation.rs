//! Runs this program again as a process that emulates machines. The first line of its output means that the machines answer. Afterwards the
//! process answers each input line with one output line.

use std::io::Write;
use std::process::Stdio;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A process that emulates machines or a cloud. Dropping the value stops it.
pub(crate) struct Emulation {
    pub(crate) pid: u32,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Emulation {
    /// Starts the process and waits for its first line.
    pub(crate) async fn start(arguments: &[String]) -> anyhow::Result<(Emulation, String)> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().context("no input")?;
        let mut output = BufReader::new(child.stdout.take().context("no output")?).lines();
        let first = output.next_line().await?.context("the emulation did not start")?;
        let pid = child.id().context("the emulation has ended")?;
        Ok((Emulation { pid, input, output, _child: child }, first))
    }

    /// Sends a line to the process and waits for its answer.
    pub(crate) async fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        self.ask(line).await.map(drop)
    }

    /// Sends a line to the process and returns its answer.
    pub(crate) async fn ask(&mut self, line: &str) -> anyhow::Result<String> {
        self.input.write_all(format!("{line}\n").as_bytes()).await?;
        self.output.next_line().await?.context("the emulation has ended")
    }
}

/// Prints a line, called in the emulating process.
pub(crate) fn say(line: &str) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
