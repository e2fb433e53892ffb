//! `bedplate import`: takes over the nodes of an Ironic, with their ids, times and states, and without a power event; and the templates of a
//! Magnum.

mod history;
mod ironic_node;
mod magnum;
mod mapping;
mod nodes;
mod source;

use std::collections::BTreeSet;
use std::path::PathBuf;

use api_client::baremetald::ImportAnswer;
use clap::{Args, Subcommand};
use serde_json::Value;

use self::mapping::Replacement;
use self::source::{Shared, Source};
use crate::api::Api;
use crate::bmc_secrets::{Secrets, masked};
use crate::connection::Connection;
use crate::ironic::{BothServices, Ironic, is_set, reason, word};
use crate::move_report::{MoveLine, MoveReport, MoveResult};
use crate::output::Format;

/// The subcommands of `bedplate import`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Take over the nodes of an Ironic: with ports, port groups, VIFs, traits, allocations, volumes, inventory, history, chassis, deploy
    /// templates, runbooks and inspection rules. --os-cloud selects the cloud of Ironic, --url baremetald. Ids, times and states are kept,
    /// and no machine is powered. Repeating the command changes nothing and continues an interrupted import.
    Ironic(Box<Options>),
    /// Take over the cluster templates of a Magnum, with their ids, owners and times, and create clusters like those of --cluster beside
    /// them. --os-cloud selects the cloud of Magnum, --clusters-url clusterd. Requires an administrator of both. Repeating the command
    /// changes nothing.
    Magnum(Box<magnum::Options>),
}

/// The options of `bedplate import ironic`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    services: BothServices,
    /// YAML or JSON file with the secrets that Ironic masks, by the name or id of the node: `r1u1: {redfish_password: SECRET}`.
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
    /// Import only this node, by name or id. Repeatable; default: all nodes.
    #[arg(long, value_name = "NODE")]
    node: Vec<String>,
    /// Replace an interface that baremetald does not have, for example `network_interface:neutron=flat`. Repeatable.
    #[arg(long, value_name = "FIELD:OLD=NEW", value_parser = Replacement::parse)]
    replace: Vec<Replacement>,
    /// Put each node into maintenance in Ironic before it is taken, so that Ironic no longer controls its BMC.
    #[arg(long)]
    quiesce: bool,
    /// Print the report, and change nothing in either service.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(
    command: Command,
    connection: &Connection,
    format: Format,
) -> anyhow::Result<()> {
    match command {
        Command::Ironic(options) => ironic(&options, connection, format).await,
        Command::Magnum(options) => magnum::run(&options, connection, format).await,
    }
}

async fn ironic(options: &Options, connection: &Connection, format: Format) -> anyhow::Result<()> {
    let secrets = Secrets::read(options.secrets.as_deref())?;
    let (ironic, ours) = options.services.connect(connection).await?;
    let source = Source::read(&ironic, &options.node).await?;
    let import = Import { ironic, ours, options, secrets, source: &source };
    let report = import.all().await?;
    if report.has_taken_nodes() {
        eprintln!(
            "warning: baremetald controls these machines now. Ironic at {} must not control them again: leave its nodes in maintenance, or stop its conductors",
            import.ironic.base()
        );
    }
    report.write(format)
}

struct Import<'a> {
    ironic: Ironic,
    ours: Api,
    options: &'a Options,
    secrets: Secrets,
    source: &'a Source,
}

/// The answer of baremetald to one record.
enum Answer {
    Imported,
    Present,
    Refused(Vec<String>),
}

/// Whether baremetald writes a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Write,
    Check,
}

impl Import<'_> {
    async fn all(&self) -> anyhow::Result<MoveReport> {
        let mut report = MoveReport::default();
        for shared in &self.source.shared {
            report.add(self.shared(shared).await?);
        }
        let mut taken = BTreeSet::new();
        for node in &self.source.nodes {
            let line = self.node(node, &taken).await?;
            if line.is_there() {
                taken.insert(word(&node.node, "uuid").to_owned());
            }
            report.add(line);
        }
        Ok(report)
    }

    /// Imports a resource that belongs to no node.
    async fn shared(&self, shared: &Shared) -> anyhow::Result<MoveLine> {
        let (mut body, mut missing) = (shared.object.clone(), Vec::new());
        for field in ["steps", "extra", "conditions", "actions"] {
            missing.extend(self.secrets.unmask(&mut body, field));
        }
        let line = |result| MoveLine::new(shared.kind, &shared.object, result, Vec::new());
        if !missing.is_empty() {
            return Ok(line(MoveResult::NotTaken { reasons: masked(&missing) }));
        }
        let path = format!("{}/{}", shared.path, word(&body, "uuid"));
        let effect = if self.options.dry_run { Effect::Check } else { Effect::Write };
        Ok(line(match self.put(&path, &Value::Object(body), effect).await? {
            Answer::Imported if self.options.dry_run => MoveResult::WouldBeTaken,
            Answer::Imported => MoveResult::Taken,
            Answer::Present => MoveResult::Present,
            Answer::Refused(_) if is_set(&shared.object, "sensitive") => MoveResult::refused(
                "sensitive: Ironic does not show the conditions and actions of a sensitive rule: create the rule in baremetald",
            ),
            Answer::Refused(reasons) => MoveResult::NotTaken { reasons },
        }))
    }

    async fn put(&self, path: &str, body: &Value, effect: Effect) -> anyhow::Result<Answer> {
        let query = match effect {
            Effect::Write => "",
            Effect::Check => "?dry_run=true",
        };
        match self.ours.put::<ImportAnswer>(&format!("{path}{query}"), body).await {
            Ok(answer) if answer.result == "present" => Ok(Answer::Present),
            Ok(_) => Ok(Answer::Imported),
            Err(why) => Ok(Answer::Refused(vec![reason(why)?])),
        }
    }
}
