//! The `main` of every service: reads the configuration, then serves until a signal stops the service.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Arg, ArgAction, Command, value_parser};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::{LogFormat, load, log_to_stderr, stop_on_signal};

/// The version for `--version`, with the commit of a release: the build of a release sets the variable (`deploy/packages/release.sh`).
pub const VERSION: &str = match option_env!("BEDPLATE_VERSION") {
    Some(version) => version,
    None => concat!(env!("CARGO_PKG_VERSION"), " (not a release)"),
};

/// A program with the configuration `Config`.
#[derive(Clone, Copy, Debug)]
pub struct Program<Config> {
    pub name: &'static str,
    /// The purpose of the program, for `--help`.
    pub about: &'static str,
    /// The path of the configuration file if `--config` names no other.
    pub config_file: &'static str,
    pub log_format: fn(&Config) -> LogFormat,
}

impl<Config: DeserializeOwned + Send + 'static> Program<Config> {
    /// Reads the arguments and the configuration. Then calls `check` if the caller only asked for a check, otherwise `serve`, which has to
    /// end when the token is cancelled. An error is printed.
    pub fn main<Checking, Serving>(
        self,
        check: impl FnOnce(Config) -> Checking,
        serve: impl FnOnce(Config, CancellationToken) -> Serving + Send + 'static,
    ) -> ExitCode
    where
        Checking: Future<Output = anyhow::Result<()>>,
        Serving: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        match self.run(check, serve) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // Printed here, because returning the error from `main` would print a backtrace, which does not help an administrator.
                eprintln!("{}: {error:#}", self.name);
                ExitCode::FAILURE
            }
        }
    }

    fn run<Checking, Serving>(
        &self,
        check: impl FnOnce(Config) -> Checking,
        serve: impl FnOnce(Config, CancellationToken) -> Serving + Send + 'static,
    ) -> anyhow::Result<()>
    where
        Checking: Future<Output = anyhow::Result<()>>,
        Serving: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let arguments = self.command().get_matches();
        let file: &PathBuf = arguments.get_one("config").context("--config has a default")?;
        let config: Config = load(file)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("cannot start threads")?;
        if arguments.get_flag("check") {
            return runtime.block_on(check(config));
        }
        log_to_stderr((self.log_format)(&config));
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok()
            .context("another TLS provider is installed")?;
        // The service starts in a task, and so on a worker thread: the workers can reuse memory that the start has freed. glibc would keep
        // such memory for the main thread, which does nothing from now on.
        let service = runtime.spawn(async {
            let stop = stop_on_signal().context("cannot listen for signals")?;
            serve(config, stop).await
        });
        runtime.block_on(service).context("the service panicked")?
    }

    fn command(&self) -> Command {
        let file = Arg::new("config").long("config").value_name("CONFIG");
        let file = file.value_parser(value_parser!(PathBuf)).default_value(self.config_file);
        let check = Arg::new("check").long("check").action(ArgAction::SetTrue);
        Command::new(self.name)
            .about(self.about)
            .version(VERSION)
            .arg(file.help("Path of the configuration file"))
            .arg(check.help("Check the configuration and the files that it names, and exit"))
    }
}
