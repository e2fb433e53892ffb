//! `bedplate drain` and `bedplate undrain`: drains a compute host, as long as no cluster loses its quorum.

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::Api;
use crate::output::{Answer, Format, counted, draw_table, plain};
use crate::path::element_path;
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

/// A drain in a response.
#[derive(Deserialize)]
struct DrainResponse {
    host: String,
    state: String,
    left: Vec<RemainingServer>,
    foreign: u64,
    problem: Option<String>,
}

/// A server that is still on the host.
#[derive(Deserialize)]
struct RemainingServer {
    server_id: String,
    name: String,
    fate: String,
    why: String,
}

impl DrainResponse {
    fn read(answer: &Value) -> anyhow::Result<DrainResponse> {
        serde_json::from_value(answer.clone()).context("cannot parse the response of the API")
    }

    /// Describes the drain in a sentence.
    fn sentence(&self) -> String {
        let others = match self.foreign {
            0 => String::new(),
            1 => " and 1 other server".to_owned(),
            many => format!(" and {many} other servers"),
        };
        let problem = self.problem.as_ref().map(|why| format!(". {why}")).unwrap_or_default();
        let (host, state, left) = (&self.host, drain_state(&self.state), self.left.len());
        if state == "draining" && left == 0 {
            return plain(&format!("host {host} is draining{problem}"));
        }
        let left = counted(left, "server");
        plain(&format!(
            "host {host} is {state}: {left} managed by clusterd{others} remaining{problem}"
        ))
    }

    fn rows(&self) -> Vec<Row> {
        let row = |left: &RemainingServer| {
            let fate = left.migration();
            let live =
                if left.why.is_empty() { fate.to_owned() } else { format!("{fate}: {}", left.why) };
            let log =
                (left.fate == "stays").then(|| format!("{} cannot move: {}", left.name, left.why));
            Row { key: left.server_id.clone(), label: left.name.clone(), live, log }
        };
        self.left.iter().map(row).collect()
    }
}

impl RemainingServer {
    /// Returns the progress of the server's migration, as shown in the table.
    fn migration(&self) -> &str {
        match self.fate.as_str() {
            "moves" => "moving",
            "waits" => "waiting",
            "stays" => "cannot move",
            "off" => "stopped",
            "emptied" => "drained",
            other => other,
        }
    }
}

/// The state of a drain for people: while a drain ends, the host is being undrained.
pub(crate) fn drain_state(state: &str) -> &str {
    if state == "ending" { "undraining" } else { state }
}

/// Drains a host. With `--wait`, waits until the host is drained or the drain is stuck.
pub(crate) async fn drain(asked: Drain, api: &Api, format: Format) -> anyhow::Result<()> {
    let path = element_path(DRAINS, &asked.host, "")?;
    let granted = api.put(&path, &json!({"force": asked.force})).await?;
    if !asked.patience.wait {
        return answer(granted)?.write(format);
    }
    // clusterd may use another name of the host than the caller.
    let host = DrainResponse::read(&granted)?.host;
    let rests = |state: &str| ["drained", "stuck"].contains(&state);
    let Some(last) = until(api, &host, rests, asked.patience.begin(), format).await? else {
        bail!("{}", plain(&format!("host {host} was undrained")));
    };
    let is_stuck = last["state"] == "stuck";
    answer(last)?.write(format)?;
    if is_stuck {
        bail!("{}", plain(&format!("some servers on host {host} cannot move")));
    }
    Ok(())
}

/// Ends a drain. With `--wait`, waits until the host accepts servers again.
pub(crate) async fn undrain(asked: Undrain, api: &Api, format: Format) -> anyhow::Result<()> {
    let ending = api.delete(&element_path(DRAINS, &asked.host, "")?).await?;
    if !asked.patience.wait {
        return answer(ending)?.write(format);
    }
    let host = DrainResponse::read(&ending)?.host;
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
) -> anyhow::Result<Option<Value>> {
    let path = element_path(DRAINS, host, "")?;
    let begun = Timestamp::now();
    let mut display = format.is_for_people().then(Display::fitting);
    let last = loop {
        let Some(drain) = api.find(&path).await? else { break None };
        if let Some(display) = &mut display {
            display.show(DrainResponse::read(&drain)?.rows(), begun)?;
        }
        if is_wanted(drain["state"].as_str().unwrap_or_default()) {
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
fn answer(drain: Value) -> anyhow::Result<Answer> {
    let shown = DrainResponse::read(&drain)?;
    let mut said = shown.sentence();
    if !shown.left.is_empty() {
        let rows = shown.left.iter().map(|left| {
            [&left.name, &left.server_id, left.migration(), &left.why].map(plain).to_vec()
        });
        said = format!("{said}\n{}", draw_table(&["Server", "ID", "Migration", "Reason"], rows));
    }
    Ok(Answer::sentence(drain, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_is_described_in_a_sentence() {
        let drain = json!({
            "host": "r1u07", "state": "stuck", "foreign": 2, "problem": "no",
            "left": [{"server_id": "1", "name": "a", "fate": "stays", "why": "it is in ERROR"}],
        });
        let shown = DrainResponse::read(&drain).unwrap();
        let begun = json!({"host": "r1u07", "state": "draining", "foreign": 0, "problem": null, "left": []});
        assert_eq!(DrainResponse::read(&begun).unwrap().sentence(), "host r1u07 is draining");
        let want =
            "host r1u07 is stuck: 1 server managed by clusterd and 2 other servers remaining. no";
        assert_eq!(shown.sentence(), want);
        assert_eq!(shown.rows()[0].log.as_deref(), Some("a cannot move: it is in ERROR"));
        let written = answer(drain).unwrap().format(Format::Table).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, want), "{written}");
    }
}
