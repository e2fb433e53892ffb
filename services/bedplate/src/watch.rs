//! `--watch`: what is listed or shown, again whenever it changes.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use rustix::termios::tcgetwinsize;

use crate::exit::Exit;
use crate::output::{Answer, Format, line};

/// How often the service is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Clears the screen from its upper left corner on (ECMA-48: CUP, ED).
const CLEARED: &str = "\x1b[H\x1b[J";

/// Whether what is shown is followed.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    /// Shows it again whenever it changes, until interrupted.
    #[arg(long)]
    watch: bool,
}

impl Watch {
    /// Shows what `look` finds: once, or whenever it changed.
    pub(crate) async fn show(
        self,
        format: Format,
        look: impl AsyncFn() -> anyhow::Result<Answer>,
    ) -> anyhow::Result<()> {
        let pause = async || tokio::time::sleep(LOOK_EVERY).await;
        self.show_between(format, look, pause).await
    }

    /// The same, and looks whenever `pause` is over.
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
                // A service that is started again is no reason to stop looking.
                Err(why) if Exit::of(&why) == Exit::Unreachable => {
                    if !is_away {
                        eprintln!("bedplate: {why:#}; trying again");
                    }
                    is_away = true;
                }
                Err(why) => return Err(why),
            }
        }
    }
}

/// Where answers that follow each other are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// In place of each other.
    Terminal,
    /// After each other.
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
                let shown = answer.written(format)?;
                let fitting = fitting(&shown, usize::from(rows.max(4)) - 2);
                let mut out = io::stdout().lock();
                write!(out, "{CLEARED}{fitting}\n(as it changes; Ctrl-C ends)")?;
                out.flush().map_err(Into::into)
            }
        }
    }
}

/// As much of a text as has room, and how much has not.
fn fitting(text: &str, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= rows {
        return text.to_owned();
    }
    let left = lines.len() - (rows - 1);
    format!("{}\n… and {left} lines more", lines[..rows - 1].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_counted() {
        assert_eq!(fitting("a\nb", 2), "a\nb");
        assert_eq!(fitting("a\nb\nc", 2), "a\n… and 2 lines more");
    }
}
