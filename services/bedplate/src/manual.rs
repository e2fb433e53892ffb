//! `bedplate completion` and `bedplate man`: shell completions and manual pages of this command line.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::builder::{Resettable, StyledStr};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit::EXITS;
use crate::output::line;

/// The options of `bedplate completion`.
#[derive(Args)]
pub(crate) struct Completion {
    /// Shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// The options of `bedplate man`.
#[derive(Args)]
pub(crate) struct Pages {
    /// Folder, for example /usr/local/share/man/man1; created if it does not exist.
    folder: PathBuf,
}

/// Prints the completion script of a shell.
pub(crate) fn complete(options: &Completion, mut command: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "bedplate", &mut script);
    line(String::from_utf8(script).context("the completion script is not UTF-8")?.trim_end())
}

pub(crate) fn write(options: &Pages, command: Command) -> anyhow::Result<()> {
    let folder = &options.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // The end of the help text, the exit statuses, becomes a section of its own in the manual.
    let none = || Resettable::<StyledStr>::Reset;
    let mut command = command.after_help(none()).after_long_help(none());
    command.build();
    let count = write_all(&command, folder)?;
    line(&format!("wrote {count} pages to {}", folder.display()))
}

fn write_all(command: &Command, folder: &Path) -> anyhow::Result<usize> {
    let man = Man::new(command.clone());
    let file = folder.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page).context("cannot write a page")?;
    exit_status(&mut page)?;
    fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
    let others =
        command.get_subcommands().filter(|one| one.get_name() != "help" && !one.is_hide_set());
    others.map(|one| write_all(one, folder)).try_fold(1, |sum, count| Ok(sum + count?))
}

/// man-pages(7), "EXIT STATUS"; a hyphen is escaped so that it stays one (groff_char(7)).
fn exit_status(page: &mut Vec<u8>) -> anyhow::Result<()> {
    writeln!(page, ".SH \"EXIT STATUS\"")?;
    for (code, meaning) in EXITS {
        writeln!(page, ".TP\n\\fB{code}\\fR\n{}", meaning.replace('-', "\\-"))?;
    }
    Ok(())
}
