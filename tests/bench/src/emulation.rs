//! This program once more, as a process of its own that emulates machines. Its first line of output says that they
//! answer; from then on it answers each line that it is told with one.

use std::io::Write;
use std::process::Stdio;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A process that emulates, until this is dropped.
pub(crate) struct Emulation {
    /// Its process.
    pub(crate) pid: u32,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Emulation {
    /// Starts the process, and waits for its first line.
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

    /// Tells the process something, and waits until it has understood.
    pub(crate) async fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes()).await?;
        self.output.next_line().await?.context("the emulation has ended")?;
        Ok(())
    }
}

/// The other side: says a line.
pub(crate) fn say(line: &str) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
