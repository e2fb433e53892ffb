#![doc = include_str!("../README.md")]

mod api;
mod attack;
mod client;
mod clusters;
mod daemon;
mod emulation;
mod ironic;
mod load;
mod machines;
mod process;
mod racks;
mod refresh;
mod report;
mod sizes;
mod write;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use machine_emulator::Network;

use crate::clusters::cloud::{self, CloudPace};
use crate::clusters::replay;
use crate::machines::{MachinePace, MachineSet};
use crate::report::Report;
use crate::sizes::Sizes;

/// A fast allocator, because the emulators share the processors with the measured daemon.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures baremetald and clusterd against their budgets.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// The phases to measure, in this order; default: all.
    #[arg(value_enum)]
    phases: Vec<Phase>,
    #[command(flatten)]
    sizes: Sizes,
}

/// A phase of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// Start, and memory at rest.
    Start,
    /// Nodes created, shown, listed and changed.
    Api,
    /// Large documents, listed by many clients that do not read the answers.
    Attack,
    /// Nodes of fake hardware from enroll to active.
    Life,
    /// The same requests to baremetald and to a real Ironic, compared.
    Ironic,
    /// Emulated machines enrolled, inspected, cleaned and deployed.
    Machines,
    /// Power states of emulated BMCs, first read and refreshed.
    Refresh,
    /// Clusters in an emulated cloud, and the memory that clusterd needs for them.
    Clusters,
    /// An image written to a disk by the agent, compared with dd.
    Write,
}

#[derive(Subcommand)]
enum Role {
    /// Emulates BMCs until its input ends; started by the bench itself.
    #[command(hide = true)]
    Racks {
        /// Number of machines.
        count: usize,
    },
    /// Emulates whole machines until its input ends; started by the bench itself.
    #[command(hide = true)]
    WholeMachines {
        /// Number of machines.
        count: usize,
        /// Number of BMCs whose machines stay off.
        witnesses: usize,
        /// Speed of the machines.
        pace: MachinePace,
        /// The DHCP server.
        dhcp: SocketAddr,
        /// The TFTP server.
        tftp: SocketAddr,
    },
    /// Emulates a cloud until its input ends; started by the bench itself.
    #[command(hide = true)]
    Cloud {
        /// Speed of the cloud.
        pace: CloudPace,
    },
    /// Replays the calls of clusters without clusterd; started by the bench itself.
    #[command(hide = true)]
    Replay {
        /// The clouds.yaml of the cloud.
        clouds_yaml: PathBuf,
        /// Number of clusters.
        count: usize,
        /// Control-plane members of each cluster.
        masters: usize,
        /// Workers of each cluster.
        workers: usize,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    process::allow_many_files();
    if let Some(role) = arguments.role {
        match role {
            Role::Racks { count } => racks::serve(count)?,
            Role::Cloud { pace } => cloud::emulate(pace)?,
            Role::Replay { clouds_yaml, count, masters, workers } => {
                replay::run(&clouds_yaml, count, masters, workers)?;
            }
            Role::WholeMachines { count, witnesses, pace, dhcp, tftp } => {
                let network = Network { dhcp, tftp: Some(tftp) };
                machines::emulate(MachineSet { count, witnesses, pace }, network)?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    // One thread for all clients leaves the processors to the measured daemon.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    let phases = match arguments.phases.is_empty() {
        true => Phase::value_variants().to_vec(),
        false => arguments.phases,
    };
    runtime.block_on(measure(&phases, &arguments.sizes))
}

async fn measure(phases: &[Phase], sizes: &Sizes) -> anyhow::Result<ExitCode> {
    let mut report = Report::begin()?;
    for phase in phases {
        match phase {
            Phase::Start => api::start(&mut report).await?,
            Phase::Api => api::nodes(sizes, &mut report).await?,
            Phase::Attack => attack::measure(&mut report).await?,
            Phase::Life => api::lives(sizes, &mut report).await?,
            Phase::Ironic => ironic::compare(sizes, &mut report).await?,
            Phase::Machines => machines::measure(sizes, &mut report).await?,
            Phase::Refresh => refresh::measure(sizes, &mut report).await?,
            Phase::Clusters => clusters::measure(sizes, &mut report).await?,
            Phase::Write => write::measure(sizes, &mut report).await?,
        }
    }
    report.end()
}
