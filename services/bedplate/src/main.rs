#![doc = include_str!("../README.md")]

mod api;
mod audit;
mod cluster;
mod connection;
mod consent;
mod dev;
mod discovery;
mod doctor;
mod drain;
mod exit;
mod host;
mod image;
mod keys;
mod machines;
mod node;
mod output;
mod pages;
mod patience;
mod place;
mod policy;
mod profile;
mod progress;
mod quota;
mod rack;
mod reservation;
mod setup;
mod vm;
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

/// Turns racks of bare metal into installed machines, and clouds into Kubernetes clusters.
#[derive(Parser)]
#[command(name = "bedplate", version, propagate_version = true, after_help = exit::help())]
struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// How answers are written.
    #[arg(long, short, global = true, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
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
    /// Machines that asked for a boot and that nobody enrolled.
    #[command(subcommand)]
    Discovery(discovery::Command),
    /// Compute hosts of the cloud, and which of them are drained.
    #[command(subcommand)]
    Host(host::Command),
    /// Hypervisor profiles: what makes machines compute hosts of the cloud.
    #[command(subcommand)]
    Profile(profile::Command),
    /// Whole machines of one's own, for a time.
    #[command(subcommand)]
    Reservation(reservation::Command),
    /// Kubernetes clusters: which there are, how far they are, and how to reach them.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Virtual machines of one's own: asked for, reached, lent for longer, given back.
    #[command(subcommand)]
    Vm(vm::Command),
    /// Shows the chain from rack to node, compute host and server, whatever of it is named.
    Where(place::Options),
    /// Takes a compute host out: what is on it moves, unless a cluster would lose its quorum by it.
    Drain(drain::Drain),
    /// Lets a compute host that was drained take servers again.
    Undrain(drain::Undrain),
    /// What projects and people have of the cloud, and may have.
    #[command(subcommand)]
    Quota(quota::Command),
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
    /// Says what is wrong with an installation, the likeliest cause first, and what to do. Changes nothing.
    Doctor(Box<doctor::Options>),
    /// Prints what a shell needs to complete this command line: `source <(bedplate completion bash)`.
    Completion(pages::Completion),
    /// Writes the manual: a page for each command.
    Man(pages::Pages),
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
    match arguments.command {
        Command::Rack(command) => {
            let api = Api::of_machines(&arguments.connection).await?;
            rack::run(command, &api, arguments.output).await
        }
        Command::Node(command) => {
            let api = Api::of_machines(&arguments.connection).await?;
            node::run(command, &api, arguments.output).await
        }
        Command::Discovery(command) => {
            let api = Api::of_machines(&arguments.connection).await?;
            discovery::run(command, &api, arguments.output).await
        }
        Command::Host(command) => {
            let api = Api::of_clusters(&arguments.connection).await?;
            host::run(command, &api, arguments.output).await
        }
        Command::Profile(command) => {
            let api = Api::of_machines(&arguments.connection).await?;
            profile::run(command, &api, arguments.output).await
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
        Command::Where(options) => {
            let machines = Api::of_machines(&arguments.connection).await?;
            let clusters = Api::of_clusters(&arguments.connection).await?;
            place::run(options, (&machines, &clusters), arguments.output).await
        }
        Command::Drain(asked) => {
            let api = Api::of_clusters(&arguments.connection).await?;
            drain::drain(asked, &api, arguments.output).await
        }
        Command::Undrain(asked) => {
            let api = Api::of_clusters(&arguments.connection).await?;
            drain::undrain(asked, &api, arguments.output).await
        }
        Command::Quota(command) => {
            let api = Api::of_clusters(&arguments.connection).await?;
            quota::run(command, &api, arguments.output).await
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
        Command::Doctor(options) => {
            doctor::run(&options, &arguments.connection, arguments.output).await
        }
        Command::Completion(options) => pages::complete(&options, Arguments::command()),
        Command::Man(options) => pages::write(&options, Arguments::command()),
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
        parses("bedplate host list --watch", true);
        parses("bedplate cluster events blue --watch", true);
        parses("bedplate cluster show blue --wait --timeout never", false);
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
