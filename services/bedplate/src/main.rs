#![doc = include_str!("../README.md")]

mod api;
mod audit;
mod cluster;
mod connection;
mod dev;
mod image;
mod keys;
mod machines;
mod node;
mod output;
mod policy;
mod progress;
mod rack;
mod reservation;
mod setup;
mod vm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rustls::crypto::ring;

use crate::api::Api;
use crate::connection::Connection;
use crate::output::Format;

/// Turns racks of bare metal into installed machines, and clouds into Kubernetes clusters.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// How answers are written.
    #[arg(long, short, global = true, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Racks: enroll them, bring them up, see how far they are.
    #[command(subcommand)]
    Rack(rack::Command),
    /// Single machines.
    #[command(subcommand)]
    Node(node::Command),
    /// Whole machines of one's own, for a time.
    #[command(subcommand)]
    Reservation(reservation::Command),
    /// Kubernetes clusters: which there are, how far they are, and how to reach them.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Virtual machines of one's own: asked for, reached, lent for longer, given back.
    #[command(subcommand)]
    Vm(vm::Command),
    /// What others have to be told once.
    #[command(subcommand)]
    Setup(setup::Command),
    /// Who may use which route of the services: the table that their gates read.
    Policy(policy::Options),
    /// What was asked of the services, by whom, and what came of it.
    #[command(subcommand)]
    Audit(audit::Command),
    /// The keys by which the services seal secrets: which there are, a new one, an old one away.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Starts everything here, with an emulated rack and cloud, and tells their story.
    Dev(dev::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not by `Result`'s own way out: it would show a backtrace, which tells an operator nothing.
            eprintln!("bedplate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    // Fails only when one is installed already, and nobody else does.
    let _ = ring::default_provider().install_default();
    match arguments.command {
        Command::Rack(command) => {
            let api = Api::of_machines(&arguments.connection).await?;
            rack::run(command, &api, arguments.output).await
        }
        Command::Node(command) => {
            let api = Api::of_machines(&arguments.connection).await?;
            node::run(command, &api, arguments.output).await
        }
        Command::Reservation(command) => {
            let api = Api::of_machines(&arguments.connection).await?;
            reservation::run(command, &api, arguments.output).await
        }
        Command::Cluster(command) => {
            let api = Api::of_clusters(&arguments.connection).await?;
            cluster::run(command, &api, arguments.output).await
        }
        Command::Vm(command) => {
            let api = Api::of_clusters(&arguments.connection).await?;
            vm::run(command, &api, arguments.output).await
        }
        Command::Setup(command) => setup::run(command, &arguments.connection).await,
        Command::Policy(options) => {
            policy::run(&options, &arguments.connection, arguments.output).await
        }
        Command::Audit(command) => {
            audit::run(command, &arguments.connection, arguments.output).await
        }
        Command::Keys(command) => keys::run(command, &arguments.connection, arguments.output).await,
        Command::Dev(options) => dev::run(&options).await,
    }
}
