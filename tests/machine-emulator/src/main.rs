//! `machine-emulator`: emulates machines from a file, from their BMCs to the systems on their disks, until it is stopped.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bmc_emulator::MachineSpec;
use clap::Parser;
use machine_emulator::{AgentKind, Network, Rack, Speed, Systems, serve_control};
use tracing_subscriber::EnvFilter;

/// Emulated machines: their BMCs answer, their firmware boots from the network, their agents do as they are told.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// A YAML or JSON file with a list of machines.
    #[arg(long, value_name = "FILE")]
    machines: PathBuf,
    /// The DHCP server.
    #[arg(long, value_name = "ADDRESS")]
    dhcp: SocketAddr,
    /// The TFTP server [default: the server in the DHCP answer, port 69].
    #[arg(long, value_name = "ADDRESS")]
    tftp: Option<SocketAddr>,
    /// Address of the control API (faults, events and logs), without authentication.
    #[arg(long, value_name = "ADDRESS")]
    control: Option<SocketAddr>,
    /// Where to write the certificates of the BMCs that speak HTTPS.
    #[arg(long, value_name = "FILE")]
    certificate_out: Option<PathBuf>,
    /// How many times faster than real machines these test themselves and wait.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Stores the machines' state in this file, and continues from it after a restart.
    #[arg(long, value_name = "FILE", conflicts_with = "agent")]
    state: Option<PathBuf>,
    /// Runs nova-compute on machines whose config drive has settings for it, once they boot their disks.
    #[arg(long)]
    compute_hosts: bool,
    /// A real agent to run instead of the emulated one, as `AGENT --root FOLDER/NAME --listen ADDRESS`.
    #[arg(long, value_name = "AGENT", requires = "agent_folder")]
    agent: Option<PathBuf>,
    /// Where the disks of machines with a real agent are.
    #[arg(long, value_name = "FOLDER")]
    agent_folder: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("machine_emulator=info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let options = Options::parse();
    let machines = MachineSpec::read_all(&options.machines)?.into_iter().map(|spec| {
        let agent = options.agent_of(&spec);
        (spec, agent)
    });
    let network = Network { dhcp: options.dhcp, tftp: options.tftp };
    let systems = if options.compute_hosts { Systems::ComputeHosts } else { Systems::Inert };
    let mut rack = Rack::start_with(network, Speed::times(options.speed), systems)
        .await
        .context("cannot start the machines' network")?;
    if let Some(path) = options.state.clone() {
        let shown = path.display().to_string();
        rack.keep_in(path).with_context(|| format!("cannot go on with {shown}"))?;
    }
    rack.add(machines.collect()).await.context("cannot serve the machines' BMCs")?;
    let control = match options.control {
        Some(address) => {
            let control = serve_control(address, rack.machines().to_vec()).await;
            Some(control.with_context(|| format!("cannot serve the control API at {address}"))?)
        }
        None => None,
    };
    if let Some(path) = &options.certificate_out {
        write_whole(path, &rack.certificates_pem())
            .with_context(|| format!("cannot write the certificates to {}", path.display()))?;
    }
    announce(control.map(|control| control.address))?;
    tokio::signal::ctrl_c().await.context("cannot wait for a signal")
}

impl Options {
    fn agent_of(&self, spec: &MachineSpec) -> AgentKind {
        match (&self.agent, &self.agent_folder) {
            (Some(path), Some(folder)) => {
                AgentKind::Program { path: path.clone(), folder: folder.join(&spec.name) }
            }
            (Some(_), None) | (None, _) => AgentKind::Light,
        }
    }
}

/// A reader that waits for the file must not find a partial one.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let draft = path.with_extension("new");
    std::fs::write(&draft, text)?;
    std::fs::rename(draft, path)
}

/// The only output on standard output, for which scripts wait.
fn announce(control: Option<SocketAddr>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if let Some(address) = control {
        writeln!(out, "control http://{address}")?;
    }
    writeln!(out, "ready")?;
    Ok(out.flush()?)
}
