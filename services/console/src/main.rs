//! `consoled`: reads its configuration, starts, and stops on a signal.

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use console::{Config, Service};

/// The web console of baremetald and clusterd.
#[derive(Parser)]
#[command(name = "consoled", version = daemon::VERSION)]
struct Arguments {
    /// Configuration file.
    #[arg(long, default_value = "/etc/bedplate/console.toml")]
    config: PathBuf,
    /// Check the configuration and the files that it names, then exit.
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let config: Config = daemon::load(&arguments.config)?;
    if arguments.check {
        return Service::check(&config);
    }
    daemon::log_to_stderr(config.log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    runtime.block_on(async {
        let stop = daemon::stop_on_signal().context("cannot listen for signals")?;
        let service = Service::start(config).await?;
        daemon::notify_ready();
        service.run(stop).await
    })
}
