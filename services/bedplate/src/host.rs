//! `bedplate host`: the cloud's compute hosts and their drains.

use clap::Subcommand;
use serde_json::Value;

use crate::api::Api;
use crate::drain::drain_state;
use crate::output::{Answer, Format, text};
use crate::paging;
use crate::watch::Watch;

/// The subcommands of `bedplate host`. `bedplate where` lists the servers on a host.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List compute hosts with their scheduling state and the progress of drains.
    List {
        #[command(flatten)]
        watch: Watch,
    },
}

/// Runs a subcommand.
pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::List { watch } => watch.show(format, async || list(api).await).await,
    }
}

async fn list(api: &Api) -> anyhow::Result<Answer> {
    let hosts = paging::all(api, "/bedplate/v1/hosts", "hosts").await?;
    Ok(listed(paging::whole("hosts", hosts)))
}

fn listed(answer: Value) -> Answer {
    let hosts = answer["hosts"].as_array().cloned().unwrap_or_default();
    let rows: Vec<Vec<String>> = hosts.iter().map(row).collect();
    let header = [
        "Host",
        "Service",
        "Schedulable",
        "Drain",
        "Remaining servers",
        "Requested by",
        "Status detail",
    ];
    Answer::table(answer, &header, rows)
}

fn row(host: &Value) -> Vec<String> {
    let (service, drain) = (&host["service"], &host["drain"]);
    let takes = match service["status"].as_str() {
        Some("enabled") => "yes",
        Some(_) => "no",
        None => "",
    };
    let left = drain["left"].as_array().map(|left| {
        let foreign = drain["foreign"].as_u64().unwrap_or_default();
        (left.len() as u64 + foreign).to_string()
    });
    let [name, state] = [&host["host"], &service["state"]].map(text);
    let [phase, by, problem] = [&drain["state"], &drain["asked_by"], &drain["problem"]].map(text);
    let phase = drain_state(&phase).to_owned();
    vec![name, state, takes.to_owned(), phase, left.unwrap_or_default(), by, problem]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_and_its_drain_are_a_row() {
        let up = json!({"status": "enabled", "state": "up", "disabled_reason": null});
        let free = json!({"host": "r1u1", "zone": "r1", "service": up, "drain": null});
        assert_eq!(row(&free), ["r1u1", "up", "yes", "", "", "", ""]);
        let off =
            json!({"status": "disabled", "state": "up", "disabled_reason": "bedplate: drained"});
        let drain = json!({"state": "stuck", "left": [{}], "foreign": 2, "asked_by": "ann", "problem": "one stays"});
        let drained = json!({"host": "r1u2", "zone": null, "service": off, "drain": drain});
        assert_eq!(row(&drained), ["r1u2", "up", "no", "stuck", "3", "ann", "one stays"]);
        let drain = json!({"state": "ending", "left": [], "foreign": 0, "asked_by": "ann", "problem": null});
        let gone = json!({"host": "r1u3", "zone": null, "service": null, "drain": drain});
        assert_eq!(row(&gone), ["r1u3", "", "", "undraining", "0", "ann", ""]);
    }
}
