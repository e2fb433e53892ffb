#![doc = include_str!("../README.md")]

mod api;
mod audit;
mod bmc_secrets;
mod cluster;
mod conductor;
mod confirmation;
mod connection;
mod dev;
mod discovery;
mod doctor;
mod drain;
mod exit;
mod export;
mod host;
mod image;
mod import;
mod ironic;
mod keys;
mod let_go;
mod location;
mod manual;
mod move_report;
mod node;
mod output;
mod policy;
mod profile;
mod progress;
mod quota;
mod rack;
mod rack_status;
mod reservation;
mod setup;
mod sim;
mod values;
mod vm;
mod wait_options;
mod watch;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use rustls::crypto::ring;

use crate::api::Api;
use crate::connection::Connection;
use crate::exit::Exit;
use crate::output::Format;

/// The version for `--version`, with the commit of a release, as in the services.
const VERSION: &str = match option_env!("BEDPLATE_VERSION") {
    Some(version) => version,
    None => concat!(env!("CARGO_PKG_VERSION"), " (not a release)"),
};

/// Manages bare-metal racks and hosts, Kubernetes clusters and VMs of an OpenStack cloud.
#[derive(Parser)]
#[command(name = "bedplate", version = VERSION, propagate_version = true, after_help = exit::help())]
struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[arg(long, short, global = true, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Racks: enroll, deploy, show progress.
    #[command(subcommand)]
    Rack(rack::Command),
    /// Nodes (enrolled machines).
    #[command(subcommand)]
    Node(node::Command),
    /// Conductors of a service, which share its work.
    #[command(subcommand)]
    Conductor(conductor::Command),
    /// Discovered machines and BMCs that are not enrolled.
    #[command(subcommand)]
    Discovery(discovery::Command),
    /// Compute hosts of the cloud.
    #[command(subcommand)]
    Host(host::Command),
    /// Hypervisor profiles, by which nodes become compute hosts.
    #[command(subcommand)]
    Profile(profile::Command),
    /// Reservations of whole machines.
    #[command(subcommand)]
    Reservation(reservation::Command),
    /// Kubernetes clusters: state, events, lease, backups, kubeconfig.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Virtual machines: create, access, extend, delete.
    #[command(subcommand)]
    Vm(vm::Command),
    /// Show the location of a resource: rack, node, compute host and server.
    Where(location::Options),
    /// Drain a compute host: its servers move to other hosts, unless a cluster would lose its quorum.
    Drain(drain::Drain),
    /// Undrain a compute host.
    Undrain(drain::Undrain),
    /// Quotas: usage and limits of projects and users.
    #[command(subcommand)]
    Quota(quota::Command),
    /// One-time setup of other services.
    #[command(subcommand)]
    Setup(setup::Command),
    /// Show the access policy of the services: the required roles for each route.
    Policy(policy::Options),
    /// Audit trails of the services.
    #[command(subcommand)]
    Audit(audit::Command),
    /// Encryption keys of the services: list, rotate, remove.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Take over nodes and other resources of another service.
    #[command(subcommand)]
    Import(import::Command),
    /// Move nodes to another service.
    #[command(subcommand)]
    Export(export::Command),
    /// Start all services locally with an emulated rack and cloud, and run a demo.
    Dev(dev::Options),
    /// Simulate a whole site under a seed, with faults. Needs a development build.
    Sim(sim::Options),
    /// Check an installation without changing it; list problems with the likeliest cause first, and hints.
    Doctor(Box<doctor::Options>),
    /// Print a shell completion script: `source <(bedplate completion bash)`.
    Completion(manual::Completion),
    /// Write the manual pages, one per command.
    Man(manual::Pages),
}

/// Parses the command line. A user and a cloud that are both typed contradict each other; one that the environment names is ignored.
fn arguments() -> Arguments {
    let matches = Arguments::command().get_matches();
    let is_typed = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
    if is_typed("user") && is_typed("os_cloud") {
        let message = "the argument '--user <USER>' cannot be used with '--os-cloud <NAME>'";
        Arguments::command().error(ErrorKind::ArgumentConflict, message).exit();
    }
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(arguments()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let exit = Exit::of(&error);
            // A closed pipe gets no message. Returning the error from `main` would print a backtrace.
            if exit != Exit::PipeClosed {
                eprintln!("bedplate: {error:#}");
            }
            ExitCode::from(exit.code())
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    // The call fails only if the process already has a provider.
    let _ = ring::default_provider().install_default();
    let (connection, output) = (&arguments.connection, arguments.output);
    let machines = || Api::of_machines(connection);
    let clusters = || Api::of_clusters(connection);
    match arguments.command {
        Command::Rack(command) => rack::run(command, &machines().await?, output).await,
        Command::Node(command) => node::run(command, &machines().await?, output).await,
        Command::Conductor(command) => conductor::run(command, connection, output).await,
        Command::Discovery(command) => discovery::run(command, &machines().await?, output).await,
        Command::Host(command) => host::run(command, &clusters().await?, output).await,
        Command::Profile(command) => profile::run(command, &machines().await?, output).await,
        Command::Reservation(command) => {
            reservation::run(command, &machines().await?, output).await
        }
        Command::Cluster(command) => cluster::run(command, &clusters().await?, output).await,
        Command::Vm(command) => vm::run(command, &clusters().await?, output).await,
        Command::Where(options) => {
            let (machines, clusters) = (machines().await?, clusters().await?);
            location::run(options, (&machines, &clusters), output).await
        }
        Command::Drain(asked) => drain::drain(asked, &clusters().await?, output).await,
        Command::Undrain(asked) => drain::undrain(asked, &clusters().await?, output).await,
        Command::Quota(command) => quota::run(command, &clusters().await?, output).await,
        Command::Setup(command) => setup::run(command, connection).await,
        Command::Policy(options) => policy::run(&options, connection, output).await,
        Command::Audit(command) => audit::run(command, connection, output).await,
        Command::Keys(command) => keys::run(command, connection, output).await,
        Command::Import(command) => import::run(command, connection, output).await,
        Command::Export(command) => export::run(command, connection, output).await,
        Command::Dev(options) => dev::run(&options).await,
        Command::Sim(options) => sim::run(&options),
        Command::Doctor(options) => doctor::run(&options, connection, output).await,
        Command::Completion(options) => manual::complete(&options, Arguments::command()),
        Command::Man(options) => manual::write(&options, Arguments::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// Every command that shows something has `--watch`.
    #[test]
    fn every_list_and_show_has_watch_and_output() {
        let mut command = Arguments::command();
        command.build();
        let mut checked = 0;
        for noun in command.get_subcommands() {
            let shows =
                ["list", "show", "status", "explain", "sensors", "snapshots", "idle", "events"];
            for verb in noun.get_subcommands().filter(|verb| shows.contains(&verb.get_name())) {
                let has = |name: &str| verb.get_arguments().any(|it| it.get_long() == Some(name));
                let called = format!("{} {}", noun.get_name(), verb.get_name());
                assert!(has("watch"), "{called} has no --watch");
                assert!(has("output"), "{called} has no --output");
                checked += 1;
            }
        }
        assert!(checked >= 14, "{checked}");
    }

    #[track_caller]
    fn parses(line: &str, is_right: bool) {
        let words = line.split_whitespace();
        let read = Arguments::try_parse_from(words);
        let why = read.err().map(|why| why.to_string());
        assert_eq!(why.is_none(), is_right, "{line}: {why:?}");
    }

    #[test]
    fn typical_command_lines_are_parsed() {
        parses("bedplate -o yaml node list --watch", true);
        parses("bedplate rack status r1 --wait --timeout 15m -o json", true);
        parses("bedplate rack status r1 --timeout 15m", false);
        parses("bedplate rack up r1 --timeout 1h", true);
        parses("bedplate rack up r1 --detach --timeout 1h", false);
        parses("bedplate vm delete lab-1 --wait --yes", true);
        parses("bedplate node delete r1u7 -y --force blue", true);
        parses("bedplate rack delete r1 --nodes --yes", true);
        parses("bedplate discovery dismiss 52:54:00:00:00:01", true);
        parses("bedplate discovery accept 52:54:00:00:00:01 --name r1u1", true);
        parses("bedplate discovery accept 10.0.0.7:443 --driver redfish --bmc-user admin", true);
        parses("bedplate discovery accept 10.0.0.7:443 --bmc-user admin", false);
        parses("bedplate discovery accept 10.0.0.7:443 --driver-info redfish_address", false);
        parses("bedplate conductor list --watch", true);
        parses("bedplate conductor drain node-1 --wait --timeout 1m", true);
        parses("bedplate conductor undrain", false);
        parses("bedplate conductor list --service clusters", true);
        parses("bedplate conductor drain node-1 --service clusters --wait", true);
        parses("bedplate host list --watch", true);
        parses("bedplate cluster events blue --watch", true);
        parses("bedplate cluster show blue --wait --timeout never", false);
        parses("bedplate cluster backup create blue --wait --timeout 10m", true);
        parses("bedplate cluster backup delete blue", false);
        parses("bedplate cluster restore blue --backup 1 --force --yes --wait", true);
        parses("bedplate cluster restore blue --timeout 1m", false);
        parses("bedplate where blue --watch", true);
        parses("bedplate drain r1u07 --force blue --force green --wait --timeout 1h", true);
        parses("bedplate drain r1u07 --timeout 1h", false);
        parses("bedplate undrain r1u07 --wait", true);
        parses("bedplate completion zsh", true);
        parses("bedplate completion tcsh", false);
        parses("bedplate nodes", false);
        parses("bedplate --output xml node list", false);
    }
}
