//! `bedplate drain` and `bedplate undrain`: drains a compute host, as long as no cluster loses its quorum.

use anyhow::bail;
use api_client::clusterd::{Drain as DrainStatus, RemainingServer};
use api_client::{WithJson, element_path};
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::output::{Answer, Format, counted, draw_table, plain};
use crate::progress::{Display, Row};
use crate::wait_options::{Deadline, WaitOptions};

/// The path of drains in the API.
const DRAINS: &str = "/bedplate/v1/drains";

/// The options of `bedplate drain`.
#[derive(Args)]
pub(crate) struct Drain {
    /// Compute host, as listed by `openstack hypervisor list`.
    host: String,
    /// Cluster that may lose its quorum, by name or id; repeatable.
    #[arg(long, value_name = "CLUSTER")]
    force: Vec<String>,
    #[command(flatten)]
    patience: WaitOptions,
}

/// The options of `bedplate undrain`.
#[derive(Args)]
pub(crate) struct Undrain {
    /// Compute host.
    host: String,
    #[command(flatten)]
    patience: WaitOptions,
}

fn sentence(drain: &DrainStatus) -> String {
    let others = match drain.foreign {
        0 => String::new(),
        1 => " and 1 other server".to_owned(),
        many => format!(" and {many} other servers"),
    };
    let problem = drain.problem.as_ref().map(|why| format!(". {why}")).unwrap_or_default();
    let (host, state, left) = (&drain.host, drain_state(&drain.state), drain.left.len());
    if state == "draining" && left == 0 {
        return plain(&format!("host {host} is draining{problem}"));
    }
    let left = counted(left, "server");
    plain(&format!("host {host} is {state}: {left} managed by clusterd{others} remaining{problem}"))
}

fn rows(drain: &DrainStatus) -> Vec<Row> {
    let row = |left: &RemainingServer| {
        let fate = migration(left);
        let live =
            if left.why.is_empty() { fate.to_owned() } else { format!("{fate}: {}", left.why) };
        let log =
            (left.fate == "stays").then(|| format!("{} cannot move: {}", left.name, left.why));
        Row { key: left.server_id.clone(), label: left.name.clone(), live, log }
    };
    drain.left.iter().map(row).collect()
}

/// The progress of a server's migration, as shown in the table.
fn migration(left: &RemainingServer) -> &str {
    match left.fate.as_str() {
        "moves" => "moving",
        "waits" => "waiting",
        "stays" => "cannot move",
        "off" => "stopped",
        "emptied" => "drained",
        other => other,
    }
}

/// The state of a drain for people: while a drain ends, the host is being undrained.
pub(crate) fn drain_state(state: &str) -> &str {
    if state == "ending" { "undraining" } else { state }
}

/// Drains a host. With `--wait`, waits until the host is drained or the drain is stuck.
pub(crate) async fn drain(asked: Drain, api: &Api, format: Format) -> anyhow::Result<()> {
    let path = element_path(DRAINS, &asked.host, "")?;
    let granted: WithJson<DrainStatus> = api.put(&path, &json!({"force": asked.force})).await?;
    if !asked.patience.wait {
        return answer(granted).write(format);
    }
    // clusterd may use another name of the host than the caller.
    let host = granted.read.host;
    let rests = |state: &str| ["drained", "stuck"].contains(&state);
    let Some(last) = until(api, &host, rests, asked.patience.begin(), format).await? else {
        bail!("{}", plain(&format!("host {host} was undrained")));
    };
    let is_stuck = last.state == "stuck";
    answer(last).write(format)?;
    if is_stuck {
        bail!("{}", plain(&format!("some servers on host {host} cannot move")));
    }
    Ok(())
}

/// Ends a drain. With `--wait`, waits until the host accepts servers again.
pub(crate) async fn undrain(asked: Undrain, api: &Api, format: Format) -> anyhow::Result<()> {
    let ending: WithJson<DrainStatus> =
        api.delete_returning(&element_path(DRAINS, &asked.host, "")?).await?;
    if !asked.patience.wait {
        return answer(ending).write(format);
    }
    let host = ending.read.host;
    let is_wanted = |state: &str| state != "ending";
    match until(api, &host, is_wanted, asked.patience.begin(), format).await? {
        // The API answers 404 for a drain that has ended.
        None => {
            let said = plain(&format!("host {host} is schedulable again"));
            Answer::sentence(Value::Null, said).write(format)
        }
        Some(_) => bail!("{}", plain(&format!("another drain of host {host} was requested"))),
    }
}

/// Shows the progress of a drain until its state is as wanted. Returns `None` if the drain does not exist any more.
async fn until(
    api: &Api,
    host: &str,
    is_wanted: impl Fn(&str) -> bool,
    deadline: Deadline,
    format: Format,
) -> anyhow::Result<Option<WithJson<DrainStatus>>> {
    let path = element_path(DRAINS, host, "")?;
    let begun = Timestamp::now();
    let mut display = format.is_for_people().then(Display::fitting);
    let last = loop {
        let Some(drain) = api.find::<WithJson<DrainStatus>>(&path).await? else { break None };
        if let Some(display) = &mut display {
            display.show(rows(&drain), begun)?;
        }
        if is_wanted(&drain.state) {
            break Some(drain);
        }
        deadline.pause(&plain(&format!("the operation on host {host}"))).await?;
    };
    if let Some(display) = display {
        display.finish();
    }
    Ok(last)
}

/// Describes a drain, with a table of the servers that are left.
fn answer(drain: WithJson<DrainStatus>) -> Answer {
    let mut said = sentence(&drain);
    if !drain.left.is_empty() {
        let rows = drain.left.iter().map(|left| {
            [&left.name, &left.server_id, migration(left), &left.why].map(plain).to_vec()
        });
        said = format!("{said}\n{}", draw_table(&["Server", "ID", "Migration", "Reason"], rows));
    }
    Answer::sentence(drain.json, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_is_described_in_a_sentence() {
        let read = |drain: Value| serde_json::from_value::<WithJson<DrainStatus>>(drain).unwrap();
        let drain = read(json!({
            "host": "r1u07", "state": "stuck", "asked_by": "ann", "foreign": 2, "problem": "no",
            "left": [{"server_id": "1", "name": "a", "fate": "stays", "why": "it is in ERROR"}],
        }));
        let begun = read(json!({
            "host": "r1u07", "state": "draining", "asked_by": "ann", "foreign": 0, "problem": null, "left": [],
        }));
        assert_eq!(sentence(&begun), "host r1u07 is draining");
        let want =
            "host r1u07 is stuck: 1 server managed by clusterd and 2 other servers remaining. no";
        assert_eq!(sentence(&drain), want);
        assert_eq!(rows(&drain)[0].log.as_deref(), Some("a cannot move: it is in ERROR"));
        let written = answer(drain).format(Format::Table).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, want), "{written}");
    }
}
