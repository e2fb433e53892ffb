//! `bmc-emulator`: serves the BMCs of machines from a file, or of one machine from flags, until stopped.

mod options;
mod stand_in;

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use bmc_emulator::{Machine, Served, serve, serve_control};
use clap::Parser;
use options::Options;
use tokio::task::JoinSet;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let options = Options::parse();
    let machines: Vec<Machine> = options.machines()?.into_iter().map(Machine::new).collect();

    let served = serve(machines.clone()).await.context("cannot serve the machines")?;
    let control = match options.control {
        Some(address) => {
            let control = serve_control(address, machines.clone()).await;
            Some(control.with_context(|| format!("cannot serve the control API at {address}"))?)
        }
        None => None,
    };
    if let Some(path) = &options.certificate {
        std::fs::write(path, &served.certificate_pem)
            .with_context(|| format!("cannot write the certificates to {}", path.display()))?;
    }
    let mut guests = JoinSet::new();
    for machine in machines {
        guests.spawn(stand_in::run(machine, Duration::from_millis(options.shutdown_millis)));
    }
    announce(&served, control.as_ref().map(|control| control.address))?;
    tokio::signal::ctrl_c().await.context("cannot wait for a signal")
}

/// Prints one line for each machine in the order of the file, then one for the control API, for scripts to read.
fn announce(served: &Served, control: Option<std::net::SocketAddr>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for machine in &served.machines {
        if let Some(address) = machine.redfish {
            let scheme = if machine.certificate_pem.is_some() { "https" } else { "http" };
            writeln!(out, "{} {scheme}://{address}", machine.name)?;
        }
        if let Some(address) = machine.ipmi {
            writeln!(out, "{} ipmi://{address}", machine.name)?;
        }
    }
    if let Some(address) = control {
        writeln!(out, "control http://{address}")?;
    }
    Ok(out.flush()?)
}
