//! `bedplate host`: the cloud's compute hosts and their drains.

use api_client::clusterd::HostSummary;
use clap::Subcommand;

use crate::api::Api;
use crate::drain::drain_state;
use crate::output::{Answer, Format, plain, text};
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

pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::List { watch } => watch.show(format, async || list(api).await).await,
    }
}

async fn list(api: &Api) -> anyhow::Result<Answer> {
    let hosts = api.all("/bedplate/v1/hosts").await?;
    let header = [
        "Host",
        "Service",
        "Schedulable",
        "Drain",
        "Remaining servers",
        "Requested by",
        "Status detail",
    ];
    Ok(Answer::list("hosts", hosts, &header, row))
}

fn row(host: &HostSummary) -> Vec<String> {
    let (service, drain) = (host.service.as_ref(), host.drain.as_ref());
    let takes = match service.map(|service| service.status.as_str()) {
        Some("enabled") => "yes",
        Some(_) => "no",
        None => "",
    };
    let left = drain.map(|drain| (drain.left.len() as u64 + drain.foreign).to_string());
    vec![
        plain(&host.host),
        text(service.map(|service| service.state.as_str())),
        takes.to_owned(),
        text(drain.map(|drain| drain_state(&drain.state))),
        left.unwrap_or_default(),
        text(drain.map(|drain| drain.asked_by.as_str())),
        text(drain.and_then(|drain| drain.problem.as_deref())),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(host: Value, want: [&str; 7]) {
        assert_eq!(row(&serde_json::from_value(host).unwrap()), want);
    }

    #[test]
    fn a_host_and_its_drain_are_a_row() {
        let up = json!({"status": "enabled", "state": "up", "disabled_reason": null});
        let free = json!({"host": "r1u1", "zone": "r1", "service": up, "drain": null});
        check(free, ["r1u1", "up", "yes", "", "", "", ""]);
        let off =
            json!({"status": "disabled", "state": "up", "disabled_reason": "bedplate: drained"});
        let left = json!({"server_id": "1", "name": "a", "fate": "stays", "why": "it is in ERROR"});
        let drain = json!({"host": "r1u2", "state": "stuck", "left": [left], "foreign": 2, "asked_by": "ann", "problem": "one stays"});
        let drained = json!({"host": "r1u2", "zone": null, "service": off, "drain": drain});
        check(drained, ["r1u2", "up", "no", "stuck", "3", "ann", "one stays"]);
        let drain = json!({"host": "r1u3", "state": "ending", "left": [], "foreign": 0, "asked_by": "ann", "problem": null});
        let gone = json!({"host": "r1u3", "zone": null, "service": null, "drain": drain});
        check(gone, ["r1u3", "", "", "undraining", "0", "ann", ""]);
    }
}
