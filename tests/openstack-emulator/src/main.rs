//! `openstack-emulator`: serves a cloud until stopped.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use openstack_emulator::{Emulator, Settings, kubernetes};
use tracing_subscriber::EnvFilter;

/// Emulates the APIs of an OpenStack cloud on one address.
#[derive(Debug, Parser)]
struct Options {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Writes a clouds.yaml with the accounts admin, alice, bob and clusterd.
    #[arg(long, value_name = "FILE")]
    clouds_out: Option<PathBuf>,
    /// The settings of the cloud, as YAML; see `Settings`.
    #[arg(long, value_name = "FILE", conflicts_with = "realistic")]
    settings: Option<PathBuf>,
    /// Uses durations measured in a real cloud on two cores.
    #[arg(long)]
    realistic: bool,
    /// Divides the time until servers, load balancers and other objects are ready by this number; below 1 is slower.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Keeps the cloud in this file and continues from it if it exists. No other process may use the cloud's addresses.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Starts without compute hosts. Hosts appear when they report.
    #[arg(long)]
    no_hosts: bool,
    /// Adds a shared network, on which every project may put servers: NAME=CIDR.
    #[arg(long, value_name = "NAME=CIDR", value_parser = pair)]
    shared_network: Vec<(String, String)>,
    /// Adds a further service to the catalog: TYPE=URL, in which %(project_id)s is replaced.
    #[arg(long, value_name = "TYPE=URL", value_parser = pair)]
    endpoint: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let options = Options::parse();
    let mut settings = match &options.settings {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            serde_saphyr::from_str(&text)
                .with_context(|| format!("cannot use {}", path.display()))?
        }
        None if options.realistic => Settings::realistic(),
        None => Settings::default(),
    };
    settings.endpoints.extend(options.endpoint);
    if options.no_hosts {
        settings.hypervisors.clear();
        settings.enable_new_services = false;
    }
    settings.shared_networks.extend(options.shared_network);
    settings.times = settings.times.faster(options.speed);
    let guest = Arc::new(kubernetes::Nodes::default());
    let emulator = match options.state {
        Some(path) => {
            let shown = path.display().to_string();
            let started = Emulator::start_kept(settings, options.listen, guest, path).await;
            started.with_context(|| format!("cannot go on at {} with {shown}", options.listen))?
        }
        None => {
            let started = Emulator::start_with(settings, options.listen, guest).await;
            started.with_context(|| format!("cannot listen on {}", options.listen))?
        }
    };
    if let Some(path) = &options.clouds_out {
        write_whole(path, &emulator.cloud.clouds_yaml())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "identity {}", emulator.cloud.auth_url())?;
    writeln!(out, "control {}/_control", emulator.cloud.url())?;
    out.flush()?;
    drop(out);
    tokio::signal::ctrl_c().await.context("cannot wait for a signal")
}

/// Writes the file atomically, so that a process that waits for the file never reads a part.
fn write_whole(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(std::path::Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
