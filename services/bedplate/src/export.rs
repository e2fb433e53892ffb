//! `bedplate export`: the way back. Creates nodes of baremetald in an Ironic, under their ids and without a power event.

mod mapping;
mod steps;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::mapping::{Exported, OurNode, exported, is_quiesced, unsupported};
use self::steps::create;
use crate::api::Api;
use crate::bmc_secrets::Secrets;
use crate::connection::Connection;
use crate::ironic::{BothServices, Ironic, Nodes, Object, PortGroups, Ports, is_set, reason, word};
use crate::move_report::{MoveLine, MoveReport, MoveResult};
use crate::output::Format;

/// The subcommands of `bedplate export`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create nodes of baremetald in an Ironic, with ports, port groups and traits. --os-cloud selects the cloud of Ironic, --url
    /// baremetald. A node in use is adopted, and a free node becomes available without cleaning: no machine is powered. Repeating the
    /// command continues an interrupted export.
    Ironic(Box<Options>),
}

/// The options of `bedplate export ironic`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    services: BothServices,
    /// YAML or JSON file with the secrets that baremetald masks, by the name or id of the node: `r1u1: {redfish_password: SECRET}`.
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
    /// Export only this node, by name or id. Repeatable; default: all nodes.
    #[arg(long, value_name = "NODE")]
    node: Vec<String>,
    /// Put each node into maintenance in baremetald before Ironic gets it. The servers of a compute host are drained then.
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
    let Command::Ironic(options) = command;
    let secrets = Secrets::read(options.secrets.as_deref())?;
    let (ironic, ours) = options.services.connect(connection).await?;
    let export = Export { ironic, ours, options: &options, secrets };
    let mut report = MoveReport::default();
    for node in export.nodes().await? {
        report.add(export.node(&node).await?);
    }
    if report.has_taken_nodes() {
        eprintln!(
            "warning: Ironic controls these machines now. baremetald at {} must not control them again: delete its nodes, or leave them in maintenance",
            export.ours.base()
        );
    }
    report.write(format)
}

struct Export<'a> {
    ironic: Ironic,
    ours: Api,
    options: &'a Options,
    secrets: Secrets,
}

impl Export<'_> {
    async fn nodes(&self) -> anyhow::Result<Vec<OurNode>> {
        let (mut found, wanted) = (Vec::new(), &self.options.node);
        let all = self.ours.all::<Nodes>("/v1/nodes/detail?include_children=true").await?;
        for Nodes(node) in all {
            let names = [word(&node, "uuid"), word(&node, "name")];
            if !wanted.is_empty() && !wanted.iter().any(|it| names.contains(&it.as_str())) {
                continue;
            }
            let path = format!("/v1/nodes/{}", word(&node, "uuid"));
            let groups = self.ours.all::<PortGroups>(&format!("{path}/portgroups/detail")).await?;
            let ports = self.ours.all::<Ports>(&format!("{path}/ports/detail")).await?;
            let groups = groups.into_iter().map(Object::from).collect();
            let ports = ports.into_iter().map(Object::from).collect();
            found.push(OurNode { node, groups, ports });
        }
        Ok(found)
    }

    async fn node(&self, ours: &OurNode) -> anyhow::Result<MoveLine> {
        let mut plan = exported(ours, &self.secrets);
        plan.obstacles.extend(self.unsupported(&ours.node).await?);
        let line = |result| MoveLine::new("node", &ours.node, result, plan.losses.clone());
        if !plan.obstacles.is_empty() {
            return Ok(line(MoveResult::NotTaken { reasons: plan.obstacles.clone() }));
        }
        let is_controlled = !is_set(&ours.node, "maintenance") && !is_quiesced(&ours.node);
        if is_controlled && !self.options.quiesce {
            let why = "baremetald controls its BMC: use --quiesce, or put the node into maintenance in baremetald";
            return Ok(line(MoveResult::refused(why)));
        }
        if self.options.dry_run {
            let path = format!("/v1/nodes/{}", word(&ours.node, "uuid"));
            let there = self.ironic.find::<Object>(&path).await?;
            let is_done = there.is_some_and(|it| word(&it, "provision_state") == plan.goal.state());
            let result = if is_done { MoveResult::Present } else { MoveResult::WouldBeTaken };
            return Ok(line(result));
        }
        let result = self.take(&ours.node, &plan, is_controlled).await;
        Ok(line(match result {
            Ok(result) => result,
            Err(why) => MoveResult::refused(reason(why)?),
        }))
    }

    async fn take(
        &self,
        node: &Object,
        plan: &Exported,
        is_controlled: bool,
    ) -> anyhow::Result<MoveResult> {
        if is_controlled {
            let path = format!("/v1/nodes/{}/maintenance", word(node, "uuid"));
            self.ours.put::<Value>(&path, &json!({"reason": mapping::QUIESCED})).await?;
        }
        create(&self.ironic, plan).await
    }

    /// The driver and the interfaces of the node that Ironic has not enabled.
    async fn unsupported(&self, node: &Object) -> anyhow::Result<Vec<String>> {
        let name = word(node, "driver");
        let driver: Option<Object> = self.ironic.find(&format!("/v1/drivers/{name}")).await?;
        Ok(match driver {
            Some(driver) => unsupported(node, &driver),
            None => vec![format!("driver: Ironic has not enabled {name}")],
        })
    }
}
