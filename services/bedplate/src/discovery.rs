//! `bedplate discovery`: machines and BMCs that were seen and are not enrolled.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use api_client::baremetald::{AcceptedDiscovery, Discovery, Neighbour};
use api_client::{WithJson, element_path};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::output::{Answer, Format, plain};
use crate::watch::Watch;

const DISCOVERIES: &str = "/bedplate/v1/discoveries";

/// The subcommands of `bedplate discovery`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List machines that requested a network boot, and BMCs that the crawler found, and that are not enrolled.
    List {
        #[command(flatten)]
        watch: Watch,
    },
    /// Accept a machine or a BMC into a node. Without credentials the node gets those that the service is configured with for the address of
    /// the BMC.
    Accept(Options),
    /// Remove a machine or a BMC from the list; the next network boot, or the next crawl, lists it again.
    Dismiss {
        /// MAC address of the machine, or address and port of the BMC.
        id: String,
    },
}

/// The options of `bedplate discovery accept`.
#[derive(Args)]
pub(crate) struct Options {
    /// MAC address of the machine, or address and port of the BMC.
    id: String,
    /// Name of the node.
    #[arg(long)]
    name: Option<String>,
    /// Driver of the node; default: the protocol that the BMC speaks, else the configured driver.
    #[arg(long)]
    driver: Option<Protocol>,
    /// Address of the BMC; default: the address that was discovered.
    #[arg(long, value_name = "ADDRESS", requires = "driver")]
    bmc_address: Option<String>,
    /// User name at the BMC.
    #[arg(long, value_name = "NAME", requires = "driver")]
    bmc_user: Option<String>,
    /// File whose first line is the password of the BMC.
    #[arg(long, value_name = "FILE", requires = "driver")]
    bmc_password_file: Option<PathBuf>,
    /// Further entry of driver_info; repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    driver_info: Vec<(String, String)>,
    #[arg(long, value_name = "CLASS")]
    resource_class: Option<String>,
}

/// A protocol of BMCs, which names the driver and the keys of `driver_info`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Protocol {
    Redfish,
    Ipmi,
}

impl Protocol {
    const fn as_str(self) -> &'static str {
        match self {
            Protocol::Redfish => "redfish",
            Protocol::Ipmi => "ipmi",
        }
    }
}

fn pair(raw: &str) -> Result<(String, String), String> {
    let (key, value) = raw.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::List { watch } => watch.show(format, async || list(api).await).await,
        Command::Accept(options) => accept(&options, api).await?.write(format),
        Command::Dismiss { id } => {
            api.delete(&element_path(DISCOVERIES, &id, "")?).await?;
            let said = plain(&format!("{id} was removed from the list"));
            Answer::sentence(Value::Null, said).write(format)
        }
    }
}

async fn list(api: &Api) -> anyhow::Result<Answer> {
    let found = api.all(DISCOVERIES).await?;
    let row = |one: &Discovery| {
        let [first, last] = [one.first_seen_at, one.last_seen_at].map(readable::time);
        let switches: Vec<String> = one.neighbours.iter().map(Neighbour::label).collect();
        let (bmc, switches) = (one.bmc_addresses.join(", "), switches.join(", "));
        let refused = one.refused.as_ref().map(|why| format!("not accepted: {why}"));
        let details = [Some(one.model()), refused].into_iter().flatten();
        let details: Vec<String> = details.filter(|text| !text.is_empty()).collect();
        let details = plain(&details.join("; "));
        vec![plain(&one.id), first, last, plain(&bmc), plain(&switches), details]
    };
    let heads = ["Discovery", "First seen", "Last seen", "BMC", "Switch ports", "Details"];
    Ok(Answer::list("discoveries", found, &heads, row))
}

async fn accept(options: &Options, api: &Api) -> anyhow::Result<Answer> {
    let body = body(options)?;
    let path = element_path(DISCOVERIES, &options.id, "/accept")?;
    let accepted: WithJson<AcceptedDiscovery> = api.post(&path, &body).await?;
    let node = accepted.name.as_ref().unwrap_or(&accepted.uuid);
    let said = match &*accepted.result {
        "present" => format!("{} was accepted before: node {node}", options.id),
        _ => format!("{} is now node {node}; request \"manage\" to verify its BMC", options.id),
    };
    let said = plain(&said);
    Ok(Answer::sentence(accepted.json, said))
}

/// The request: the fields that were given.
fn body(options: &Options) -> anyhow::Result<Value> {
    let mut info: Map<String, Value> =
        options.driver_info.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let mut body = json!({});
    if let Some(driver) = options.driver {
        let prefix = driver.as_str();
        body["driver"] = json!(prefix);
        let password = options.bmc_password_file.as_ref().map(|file| {
            let text = fs::read_to_string(file);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            anyhow::Ok(text.lines().next().unwrap_or_default().to_owned())
        });
        let given = [
            ("address", options.bmc_address.clone()),
            ("username", options.bmc_user.clone()),
            ("password", password.transpose()?),
        ];
        let given = given.into_iter().filter_map(|(key, value)| Some((key, value?)));
        info.extend(given.map(|(key, value)| (format!("{prefix}_{key}"), json!(value))));
    }
    body["driver_info"] = Value::Object(info);
    for (key, value) in [("name", &options.name), ("resource_class", &options.resource_class)] {
        if let Some(value) = value {
            body[key] = json!(value);
        }
    }
    Ok(body)
}
