//! `baremetald`: reads its configuration, starts, stops when told.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use baremetal::{Config, Service, check};
use clap::Parser;

/// The Bare Metal service: enrolls, inspects, cleans and installs machines.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The configuration file.
    #[arg(long, default_value = "/etc/bedplate/baremetald.toml")]
    config: PathBuf,
    /// Reads the configuration, says whether it and the database file are valid, and ends.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not by `Result`'s own way out: it would show a backtrace, which tells an administrator nothing.
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
    // In a task, and so by the threads that do the work: what the start has no more use for is theirs to use again, where glibc
    // would keep it for this thread, which from now on does nothing.
    let service = runtime.spawn(async {
        let stop = daemon::stop_on_signal().context("cannot listen for signals")?;
        let service = Service::start(config).await?;
        daemon::is_ready();
        service.run(stop).await
    });
    runtime.block_on(service).context("the service panicked")?
}
