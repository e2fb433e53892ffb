//! `--watch`: repeats a list or a resource whenever it changes.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use rustix::termios::tcgetwinsize;

use crate::exit::Exit;
use crate::output::{Answer, Format, line};

/// How often the service is asked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// ECMA-48, CUP and ED: moves the cursor to the upper left corner and clears the screen.
const CLEARED: &str = "\x1b[H\x1b[J";

/// Whether the output is repeated when it changes.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    /// Show the answer again after each change, until interrupted.
    #[arg(long)]
    watch: bool,
}

impl Watch {
    /// Shows the result of `look`: once, or with `--watch` whenever it changes.
    pub(crate) async fn show(
        self,
        format: Format,
        look: impl AsyncFn() -> anyhow::Result<Answer>,
    ) -> anyhow::Result<()> {
        let pause = async || tokio::time::sleep(LOOK_EVERY).await;
        self.show_between(format, look, pause).await
    }

    /// Shows the result of `look` once, or with `--watch` after each end of `pause` if it changed.
    pub(crate) async fn show_between(
        self,
        format: Format,
        look: impl AsyncFn() -> anyhow::Result<Answer>,
        mut pause: impl AsyncFnMut(),
    ) -> anyhow::Result<()> {
        let mut shown = look().await?;
        if !self.watch {
            return shown.write(format);
        }
        let screen = Screen::of(format);
        screen.show(&shown, format, true)?;
        let mut is_away = false;
        loop {
            pause().await;
            match look().await {
                Ok(now) => {
                    if screen == Screen::Terminal || now.is_news_after(&shown) || is_away {
                        screen.show(&now, format, false)?;
                    }
                    (shown, is_away) = (now, false);
                }
                // A restart of the service must not end the command.
                Err(why) if Exit::of(&why) == Exit::Unreachable => {
                    if !is_away {
                        eprintln!("bedplate: {why:#}; retrying");
                    }
                    is_away = true;
                }
                Err(why) => return Err(why),
            }
        }
    }
}

/// Where successive answers are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// Each answer replaces the one before.
    Terminal,
    /// Each answer follows the one before.
    Pipe,
}

impl Screen {
    fn of(format: Format) -> Screen {
        let is_screen = format.is_for_people() && io::stdout().is_terminal();
        if is_screen { Screen::Terminal } else { Screen::Pipe }
    }

    fn show(self, answer: &Answer, format: Format, is_first: bool) -> anyhow::Result<()> {
        match self {
            Screen::Pipe => line(&answer.written_again(format, is_first)?),
            Screen::Terminal => {
                let rows = tcgetwinsize(io::stdout()).map_or(24, |size| size.ws_row);
                let shown = answer.format(format)?;
                let fitting = fitting(&shown, usize::from(rows.max(4)) - 2);
                let mut out = io::stdout().lock();
                write!(out, "{CLEARED}{fitting}\n(watching; Ctrl-C to stop)")?;
                out.flush().map_err(Into::into)
            }
        }
    }
}

/// The first lines of a text that fit, and the number of the remaining lines.
fn fitting(text: &str, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= rows {
        return text.to_owned();
    }
    let left = lines.len() - (rows - 1);
    format!("{}\n… {left} more lines", lines[..rows - 1].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        assert_eq!(fitting("a\nb", 2), "a\nb");
        assert_eq!(fitting("a\nb\nc", 2), "a\n… 2 more lines");
    }
}
