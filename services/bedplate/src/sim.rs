//! `bedplate sim`: simulates a whole site under a seed.
//!
//! The simulation is a program of its own, in the folder of this program. It is not linked into this program, so only a development build has
//! it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;
use clap::Args;

/// Options of `bedplate sim`.
#[derive(Args)]
pub(crate) struct Options {
    /// Arguments of the simulation: `--seed 7` for one, `--seeds 200` for many.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<OsString>,
}

/// Becomes the program `sim`.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let program = own.with_file_name("sim");
    let why = Command::new(&program).args(&options.arguments).exec();
    let hint = "`bedplate sim` needs a development build (`cargo build --workspace --bins`)";
    Err(why).with_context(|| format!("cannot start {}: {hint}", program.display()))
}
