//! Confirmations: before something is erased or deleted, asks for its name on a terminal, and requires `--yes` elsewhere.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::Context;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output::plain;

/// Whether the caller confirmed beforehand.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Confirmation {
    /// Skip the confirmation; required without a terminal.
    #[arg(long, short)]
    yes: bool,
}

impl Confirmation {
    /// Returns if the caller confirmed beforehand or types `name` on the terminal. `what` describes the consequences.
    ///
    /// # Errors
    ///
    /// Returns an error if nobody can be asked, or another name is typed. The caller of this function must not have changed anything yet.
    pub(crate) fn to(self, what: &str, name: &str) -> anyhow::Result<()> {
        if self.yes {
            return Ok(());
        }
        let what = plain(what);
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let sentence = format!(
                "{what}. Nothing was changed: there is no terminal for the confirmation. Hint: add --yes"
            );
            return Err(Failure::usage(sentence).into());
        }
        let written = ask(&mut io::stderr(), &mut io::stdin().lock(), &what, name)?;
        if written == name {
            return Ok(());
        }
        let sentence = format!("nothing was changed: {written:?} was typed instead of {name:?}");
        Err(Failure::new(Exit::Failed, sentence).into())
    }
}

fn ask(
    screen: &mut impl Write,
    input: &mut impl BufRead,
    what: &str,
    name: &str,
) -> anyhow::Result<String> {
    write!(screen, "{what}.\nType \"{}\" to confirm: ", plain(name))
        .context("cannot write to the terminal")?;
    screen.flush().context("cannot write to the terminal")?;
    let mut line = String::new();
    input.read_line(&mut line).context("cannot read from the terminal")?;
    Ok(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_consequences_are_shown_before_the_name_is_asked_for() {
        let mut screen = Vec::new();
        let mut typed: &[u8] = b" n1\nmore\n";
        let written = ask(&mut screen, &mut typed, "node n1 is erased", "n1").unwrap();
        assert_eq!(written, "n1");
        let shown = String::from_utf8(screen).unwrap();
        assert_eq!(shown, "node n1 is erased.\nType \"n1\" to confirm: ");
        let mut closed: &[u8] = b"";
        assert_eq!(ask(&mut Vec::new(), &mut closed, "", "n1").unwrap(), "");
    }
}
