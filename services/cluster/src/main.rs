//! `clusterd`: reads its configuration, starts, and stops on a signal.

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use cluster::{Config, Service, check};

/// Serves the Container Infra API: Kubernetes clusters and VMs in an OpenStack cloud.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Configuration file.
    #[arg(long, default_value = "/etc/bedplate/clusterd.toml")]
    config: PathBuf,
    /// Check the configuration and the files that it names, then exit.
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let config: Config = daemon::load(&arguments.config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    if arguments.check {
        return runtime.block_on(check(&config));
    }
    daemon::log_to_stderr(config.log);
    // The start runs in a task, and so on the worker threads: glibc then reuses memory that the start freed for these threads. On the main
    // thread, which only waits from now on, glibc would keep the memory.
    let service = runtime.spawn(async {
        let stop = daemon::stop_on_signal().context("cannot listen for signals")?;
        let service = Service::start(config).await?;
        daemon::notify_ready();
        service.run(stop).await
    });
    runtime.block_on(service).context("the service panicked")?
}
