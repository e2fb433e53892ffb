//! `bedplate import`: takes over the nodes of an Ironic, with their ids, times and states, and without a power event.

mod ironic_node;
mod mapping;
mod source;

use std::collections::BTreeSet;
use std::path::PathBuf;

use api_client::baremetald::ImportAnswer;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::ironic_node::{IronicNode, is_quiesced};
use self::mapping::{MovedNode, Replacement, moved};
use self::source::{Shared, Source};
use crate::api::Api;
use crate::bmc_secrets::{Secrets, masked};
use crate::connection::Connection;
use crate::ironic::{BothServices, Ironic, LET_GO_BY_IMPORT, Object, reason, word};
use crate::move_report::{MoveLine, MoveReport, MoveResult};
use crate::output::Format;

/// The subcommands of `bedplate import`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Take over the nodes of an Ironic: with ports, port groups, traits, allocations, volumes, inventory, chassis, deploy templates and
    /// runbooks. --os-cloud selects the cloud of Ironic, --url baremetald. Ids, times and states are kept, and no machine is powered.
    /// Repeating the command changes nothing and continues an interrupted import.
    Ironic(Box<Options>),
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

/// Runs a subcommand.
pub(crate) async fn run(
    command: Command,
    connection: &Connection,
    format: Format,
) -> anyhow::Result<()> {
    let Command::Ironic(options) = command;
    let secrets = Secrets::read(options.secrets.as_deref())?;
    let (ironic, ours) = options.services.connect(connection).await?;
    let source = Source::read(&ironic, &options.node).await?;
    let import = Import { ironic, ours, options: &options, secrets, source: &source };
    let report = import.all().await?;
    if report.has_taken_nodes() {
        eprintln!(
            "warning: baremetald controls these machines now. Ironic at {} must not control them again: leave its nodes in maintenance, or stop its conductors",
            import.ironic.base()
        );
    }
    report.write(format)
}

/// One run of an import.
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
    Refused(String),
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
        for field in ["steps", "extra"] {
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
            Answer::Refused(reason) => MoveResult::refused(reason),
        }))
    }

    /// Imports a node. Ironic keeps a node that is not taken as it was.
    async fn node(&self, found: &IronicNode, taken: &BTreeSet<String>) -> anyhow::Result<MoveLine> {
        let MovedNode { body, losses, obstacles } = self.moved(found);
        let line = |result| MoveLine::new("node", &found.node, result, losses.clone());
        if !obstacles.is_empty() {
            return Ok(line(MoveResult::NotTaken { reasons: obstacles }));
        }
        let parent = word(&found.node, "parent_node");
        if !parent.is_empty() && self.source.has(parent) && !taken.contains(parent) {
            return Ok(line(MoveResult::refused("parent_node: the parent was not taken")));
        }
        let is_controlled = self.source.is_controlled(&found.node);
        let checked = self.put(&path_of(&found.node), &body, Effect::Check).await?;
        Ok(match checked {
            Answer::Refused(reason) => line(MoveResult::refused(reason)),
            Answer::Present if is_controlled && !self.options.quiesce => line(MoveResult::refused(
                "baremetald has the node, and Ironic controls its BMC too: repeat the command with --quiesce",
            )),
            Answer::Present => {
                if is_controlled && !self.options.dry_run {
                    self.quiesce(&found.node).await?;
                }
                line(MoveResult::Present)
            }
            Answer::Imported if is_controlled && !self.options.quiesce => {
                line(MoveResult::refused(
                    "Ironic controls its BMC: use --quiesce, put the node into maintenance in Ironic, or stop Ironic's conductors",
                ))
            }
            Answer::Imported if self.options.dry_run => line(MoveResult::WouldBeTaken),
            Answer::Imported if is_controlled => line(self.take_quiesced(found).await?),
            Answer::Imported => line(self.take(&found.node, &body).await?),
        })
    }

    /// Takes a node after Ironic has let go of its BMC. The node is read again in between, because Ironic may have begun work meanwhile. If
    /// the node is not taken, Ironic controls it again.
    async fn take_quiesced(&self, found: &IronicNode) -> anyhow::Result<MoveResult> {
        if let Err(why) = self.quiesce(&found.node).await {
            return Ok(MoveResult::refused(reason(why)?));
        }
        let path = format!("/v1/nodes/{}", word(&found.node, "uuid"));
        let mut now: Object = self.ironic.get(&path).await?;
        for field in ["maintenance", "maintenance_reason", "updated_at"] {
            now.insert(field.to_owned(), found.node.get(field).cloned().unwrap_or_default());
        }
        let MovedNode { body, obstacles, .. } =
            self.moved(&IronicNode { node: now, ..found.clone() });
        let result = match obstacles.is_empty() {
            true => self.take(&found.node, &body).await?,
            false => MoveResult::NotTaken { reasons: obstacles },
        };
        if matches!(result, MoveResult::NotTaken { .. }) {
            self.ironic.delete(&format!("{path}/maintenance")).await?;
        }
        Ok(result)
    }

    async fn take(&self, node: &Object, body: &Value) -> anyhow::Result<MoveResult> {
        Ok(match self.put(&path_of(node), body, Effect::Write).await? {
            Answer::Imported => MoveResult::Taken,
            Answer::Present => MoveResult::Present,
            Answer::Refused(reason) => MoveResult::refused(reason),
        })
    }

    fn moved(&self, found: &IronicNode) -> MovedNode {
        moved(found, &self.secrets, &self.options.replace)
    }

    /// Puts a node into maintenance in Ironic.
    async fn quiesce(&self, node: &Object) -> anyhow::Result<()> {
        if is_quiesced(node) {
            return Ok(());
        }
        let path = format!("/v1/nodes/{}/maintenance", word(node, "uuid"));
        self.ironic.put(&path, &json!({"reason": LET_GO_BY_IMPORT})).await.map(drop)
    }

    async fn put(&self, path: &str, body: &Value, effect: Effect) -> anyhow::Result<Answer> {
        let query = match effect {
            Effect::Write => "",
            Effect::Check => "?dry_run=true",
        };
        match self.ours.put::<ImportAnswer>(&format!("{path}{query}"), body).await {
            Ok(answer) if answer.result == "present" => Ok(Answer::Present),
            Ok(_) => Ok(Answer::Imported),
            Err(why) => Ok(Answer::Refused(reason(why)?)),
        }
    }
}

fn path_of(node: &Object) -> String {
    format!("/bedplate/v1/import/nodes/{}", word(node, "uuid"))
}
