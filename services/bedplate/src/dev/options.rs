//! The options of `bedplate dev`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::children::ChildArguments;

/// The options of `bedplate dev`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// Folder with baremetald.toml, machines.yaml, rack.yaml, clusterd.toml, template.json, cluster.json and console.toml.
    #[arg(long, default_value = "deploy/dev")]
    pub(super) from: PathBuf,
    /// Folder for logs, disks and databases; must match baremetald.toml and clusterd.toml.
    #[arg(long, default_value = ".state/dev")]
    pub(super) state: PathBuf,
    /// Start from the beginning, as after `bedplate dev reset`; default: continue where the last run ended.
    #[arg(long)]
    pub(super) reset: bool,
    /// Speed of the emulated machines and the emulated cloud, from 0.1 to 10; 1 is the default, 0.2 is slow enough to watch.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(super) speed: f64,
    /// Exit when all steps are complete.
    #[arg(long)]
    pub(super) once: bool,
}

/// The subcommands of `bedplate dev`.
#[derive(Subcommand)]
pub(super) enum Command {
    /// Remove the state of earlier runs; refused while `bedplate dev` runs.
    Reset {
        /// State folder.
        #[arg(long, default_value = ".state/dev")]
        state: PathBuf,
    },
    /// Run a program that ends with its parent process.
    #[command(hide = true)]
    Child(ChildArguments),
}

fn factor(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.parse().ok();
    factor
        .filter(|factor| (0.1..=10.0).contains(factor))
        .ok_or_else(|| "must be a number from 0.1 to 10".to_owned())
}

impl Options {
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.state.join(format!("{name}.log"))
    }
}
