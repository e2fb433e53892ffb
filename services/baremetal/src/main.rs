//! The program `baremetald`: reads its configuration, then serves until a signal stops it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use baremetal::{Config, Service, check};
use clap::Parser;

/// The Bare Metal service: enrolls, inspects, cleans and installs machines.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Path of the configuration file
    #[arg(long, default_value = "/etc/bedplate/baremetald.toml")]
    config: PathBuf,
    /// Check the configuration and the database file, and exit
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Printed here, because returning the error from `main` would print a backtrace, which does not help an administrator.
            eprintln!("baremetald: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let config: Config = daemon::load(&arguments.config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    if arguments.check {
        return runtime.block_on(check(&config));
    }
    daemon::log_to_stderr(config.log);
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok()
        .context("another TLS provider is installed")?;
    // The service starts in a task, and so on a worker thread: the workers can reuse memory that the start has freed. glibc would keep such
    // memory for the main thread, which does nothing from now on.
    let service = runtime.spawn(async {
        let stop = daemon::stop_on_signal().context("cannot listen for signals")?;
        let service = Service::start(config).await?;
        daemon::notify_ready();
        service.run(stop).await
    });
    runtime.block_on(service).context("the service panicked")?
}
