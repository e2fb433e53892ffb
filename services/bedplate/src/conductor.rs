//! `bedplate conductor`: the conductors that share the work of a service, and the drain of one before it is stopped.

use anyhow::bail;
use api_client::shared::ConductorProgress;
use api_client::{WithJson, baremetald, clusterd, element_path};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::api::Api;
use crate::connection::Connection;
use crate::output::{Answer, Format, counted, plain};
use crate::policy::Service;
use crate::wait_options::WaitOptions;
use crate::watch::Watch;

const CONDUCTORS: &str = "/bedplate/v1/conductors";

/// The subcommands of `bedplate conductor`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List conductors: their states and their shares of the work.
    List {
        #[command(flatten)]
        of: ServiceOption,
        #[command(flatten)]
        watch: Watch,
    },
    /// Let a conductor take no work, so that its process can be stopped; others take its work.
    Drain(Drain),
    /// Let a conductor take work again.
    Undrain {
        /// Host name of the conductor.
        hostname: String,
        #[command(flatten)]
        of: ServiceOption,
    },
}

/// The selected service.
#[derive(Args)]
pub(crate) struct ServiceOption {
    /// Service of the conductor.
    #[arg(long, value_enum, default_value = "machines")]
    service: Service,
}

/// The options of `bedplate conductor drain`.
#[derive(Args)]
pub(crate) struct Drain {
    /// Host name of the conductor.
    hostname: String,
    #[command(flatten)]
    of: ServiceOption,
    #[command(flatten)]
    patience: WaitOptions,
}

pub(crate) async fn run(
    command: Command,
    connection: &Connection,
    format: Format,
) -> anyhow::Result<()> {
    match command {
        Command::List { of, watch } => {
            let api = &of.service.api(connection).await?;
            watch
                .show(format, async || match of.service {
                    Service::Machines => list_of_machines(api).await,
                    Service::Clusters => list_of_clusters(api).await,
                })
                .await
        }
        Command::Drain(options) => {
            let api = options.of.service.api(connection).await?;
            drain(options, &api, format).await
        }
        Command::Undrain { hostname, of } => {
            let api = of.service.api(connection).await?;
            let path = element_path(CONDUCTORS, &hostname, "/drain")?;
            let undrained: WithJson<ConductorProgress> = api.delete_returning(&path).await?;
            answer(undrained).write(format)
        }
    }
}

async fn list_of_machines(api: &Api) -> anyhow::Result<Answer> {
    let found = api.all(CONDUCTORS).await?;
    let row = |one: &baremetald::Conductor| {
        let groups: Vec<&str> = one.conductor_groups.iter().map(|it| named(it)).collect();
        let (nodes, busy) = (one.nodes.to_string(), one.busy_nodes.to_string());
        let seen = readable::time(one.last_seen_at);
        let (state, version) = (plain(&one.state), plain(&one.version));
        vec![plain(&one.hostname), plain(&groups.join(", ")), state, version, nodes, busy, seen]
    };
    let heads = ["Conductor", "Groups", "State", "Version", "Nodes", "Busy", "Last seen"];
    Ok(Answer::list("conductors", found, &heads, row))
}

async fn list_of_clusters(api: &Api) -> anyhow::Result<Answer> {
    let found = api.all(CONDUCTORS).await?;
    let row = |one: &clusterd::Conductor| {
        let counts = [one.clusters, one.machines, one.snapshots, one.drains];
        let [clusters, vms, snapshots, drains] = counts.map(|count| count.to_string());
        let seen = readable::time(one.last_seen_at);
        let (name, state, version) = (&one.hostname, &one.state, &one.version);
        let [name, state, version] = [name, state, version].map(|text| plain(text));
        vec![name, state, version, clusters, vms, snapshots, drains, seen]
    };
    let heads =
        ["Conductor", "State", "Version", "Clusters", "VMs", "Snapshots", "Drains", "Last seen"];
    Ok(Answer::list("conductors", found, &heads, row))
}

/// The default group has an empty name.
fn named(group: &str) -> &str {
    if group.is_empty() { "(default)" } else { group }
}

/// Drains a conductor. With `--wait`, waits until it works on nothing any more.
async fn drain(options: Drain, api: &Api, format: Format) -> anyhow::Result<()> {
    let Drain { hostname, patience, .. } = options;
    let path = element_path(CONDUCTORS, &hostname, "/drain")?;
    let mut now: WithJson<ConductorProgress> = api.put(&path, &json!({})).await?;
    if patience.wait {
        let (path, deadline) = (element_path(CONDUCTORS, &hostname, "")?, patience.begin());
        while now.state == "draining" {
            deadline.pause(&plain(&format!("the drain of conductor {hostname}"))).await?;
            now = api.get(&path).await?;
        }
        if !["drained", "dead"].contains(&&*now.state) {
            bail!("{}", plain(&format!("conductor {hostname} was undrained")));
        }
    }
    answer(now).write(format)
}

fn answer(conductor: WithJson<ConductorProgress>) -> Answer {
    let ConductorProgress { hostname, state, turns_of_others } = &*conductor;
    let left = match (state.as_str(), usize::try_from(*turns_of_others)) {
        ("draining", Ok(turns @ 1..)) => format!(": {} in progress", counted(turns, "action")),
        (_, Ok(_) | Err(_)) => String::new(),
    };
    let said = plain(&format!("conductor {hostname} is {state}{left}"));
    Answer::sentence(conductor.json, said)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_drain_is_described_in_a_sentence() {
        let said = |state: &str, turns: u32| {
            let conductor: Value =
                json!({"hostname": "a", "state": state, "nodes": 0, "turns_of_others": turns});
            let read: WithJson<ConductorProgress> = serde_json::from_value(conductor).unwrap();
            answer(read).format(Format::Table).unwrap()
        };
        assert_eq!(
            said("draining", 2).trim_end(),
            "conductor a is draining: 2 actions in progress"
        );
        assert_eq!(said("draining", 0).trim_end(), "conductor a is draining");
        assert_eq!(said("drained", 0).trim_end(), "conductor a is drained");
    }
}
