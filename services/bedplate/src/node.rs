//! `bedplate node`: actions that `openstack baremetal` does not have.

mod console;
mod plan;

use anyhow::{Context, bail};
use api_client::baremetald::{
    Explanation, LastSeen, Node, NodeLease, SensorReading, Sensors, Task,
};
use api_client::{WithJson, element_path};
use clap::Subcommand;
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use crate::api::Api;
use crate::confirmation::Confirmation;
use crate::output::{Answer, Format, elements, plain, text};
use crate::reservation::LeaseEnd;
use crate::values::time;
use crate::watch::Watch;

/// The subcommands of `bedplate node`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List nodes.
    List {
        #[command(flatten)]
        watch: Watch,
    },
    /// Explain the state of a node: reason, last observation, next step.
    Explain {
        /// Name or id of the node.
        node: String,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show the tasks and steps of a change of provision state, before it is requested or while it runs.
    Plan(plan::Options),
    /// Open the serial console of a machine. On a terminal, ~. at the beginning of a line closes it; in a pipe, standard input is sent and
    /// output is printed until the program is interrupted.
    Console(console::Options),
    /// Lease a node to a project.
    Lend {
        /// Name or id of the node.
        node: String,
        /// Id of the project.
        #[arg(long, value_name = "PROJECT")]
        to: String,
        /// Lease duration from now, for example 14d, 36h or 1d12h; default: the configured duration.
        #[arg(long = "for", value_name = "LENGTH")]
        length: Option<String>,
    },
    /// Extend the lease of a node, counted from now.
    Extend {
        /// Name or id of the node.
        node: String,
        #[command(flatten)]
        term: LeaseEnd,
    },
    /// Undo the end of a node's lease before the node is erased; the node stays powered off.
    Undo {
        /// Name or id of the node.
        node: String,
    },
    /// Set a node to maintenance: the service takes no actions on it. A compute host is drained first, unless a cluster would lose its
    /// quorum.
    Maintain {
        /// Name or id of the node.
        node: String,
        /// Reason.
        #[arg(long, value_name = "WORDS")]
        reason: Option<String>,
        /// Name of the node's compute host, or of a cluster on it that may lose its quorum; repeatable.
        #[arg(long, value_name = "NAME")]
        force: Vec<String>,
        /// End the maintenance.
        #[arg(long, conflicts_with_all = ["reason", "force"])]
        end: bool,
    },
    /// Delete the record of a node with its ports and its history; the machine stays unchanged. Undeploy a node in use first.
    Delete {
        /// Name or id of the node.
        node: String,
        /// Name of the node's compute host, or of a cluster on it that may lose its quorum; repeatable.
        #[arg(long, value_name = "NAME")]
        force: Vec<String>,
        #[command(flatten)]
        consent: Confirmation,
    },
    /// Change the password of the account by which the service logs in to the BMC of a node to a new random one. Nobody sees the password; the
    /// history of the node tells the result.
    RotatePassword {
        /// Name or id of the node.
        node: String,
    },
    /// Show sensor readings of a machine.
    Sensors {
        /// Name or id of the node.
        node: String,
        #[command(flatten)]
        watch: Watch,
    },
}

pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::List { watch } => watch.show(format, async || list(api).await).await,
        Command::Explain { node, watch } => {
            watch.show(format, async || explain(api, &node).await).await
        }
        Command::Plan(options) => plan::show(&options, api).await?.write(format),
        Command::Console(options) => console::run(options, api).await,
        Command::Lend { node, to, length } => {
            let mut body = json!({"lessee": to});
            if let Some(length) = length {
                body["for"] = json!(length);
            }
            let answer = api.post(&format!("/bedplate/v1/nodes/{node}/lease"), &body).await?;
            lease(answer).write(format)
        }
        Command::Extend { node, term } => {
            let path = format!("/bedplate/v1/nodes/{node}/lease");
            lease(api.put(&path, &term.body()).await?).write(format)
        }
        Command::Undo { node } => {
            let path = format!("/bedplate/v1/nodes/{node}/lease/undo");
            lease(api.post(&path, &json!({})).await?).write(format)
        }
        Command::Maintain { node, end: true, .. } => {
            api.delete(&element_path("/v1/nodes", &node, "/maintenance")?).await?;
            let said = format!("node {} has left maintenance", plain(&node));
            Answer::sentence(Value::Null, said).write(format)
        }
        Command::Maintain { node, reason, force, end: false } => {
            maintain(api, &node, reason, &force).await?.write(format)
        }
        Command::Delete { node, force, consent } => {
            let one = DeletableNode::find(api, &node).await?;
            consent.to(
                &format!("node {} is deleted with its ports and its history", one.label),
                &node,
            )?;
            one.delete(api, &force).await?;
            Answer::sentence(Value::Null, format!("node {} is deleted", one.label)).write(format)
        }
        Command::RotatePassword { node } => {
            let path = element_path("/bedplate/v1/nodes", &node, "/rotate-bmc-password")?;
            api.post::<IgnoredAny>(&path, &json!({})).await?;
            let node = plain(&node);
            let said = format!(
                "a new BMC password of node {node} is requested; `bedplate node explain {node}` tells the result"
            );
            Answer::sentence(Value::Null, said).write(format)
        }
        Command::Sensors { node, watch } => {
            watch.show(format, async || sensors(api, &node).await).await
        }
    }
}

async fn list(api: &Api) -> anyhow::Result<Answer> {
    let fields = "uuid,name,driver,provision_state,power_state,maintenance";
    let nodes = api.all::<WithJson<Node>>(&format!("/v1/nodes?fields={fields}")).await?;
    let rows = nodes.iter().map(|node| {
        let Node { uuid, name, driver, provision_state, power_state, .. } = &node.read;
        let maintenance = if node.maintenance { "yes" } else { "" };
        let texts = [name, uuid, driver, provision_state, power_state];
        let texts = texts.map(|it| text(it.as_deref()));
        texts.into_iter().chain([maintenance.to_owned()]).collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let header = ["Name", "UUID", "Driver", "State", "Power", "Maintenance"];
    Ok(Answer::table(elements(nodes), &header, rows))
}

/// Puts a node into maintenance, and names the compute host that the node is.
async fn maintain(
    api: &Api,
    node: &str,
    reason: Option<String>,
    force: &[String],
) -> anyhow::Result<Answer> {
    let path = element_path("/v1/nodes", node, "/maintenance")?;
    let forced = Serializer::new(String::new()).append_pair("force", &force.join(",")).finish();
    let path = if force.is_empty() { path } else { format!("{path}?{forced}") };
    api.put::<IgnoredAny>(&path, &json!({"reason": reason})).await?;
    let shown: WithJson<Node> = api.get(&element_path("/v1/nodes", node, "")?).await?;
    let explanation: Explanation =
        api.get(&element_path("/bedplate/v1/nodes", node, "/explain")?).await?;
    let joined = explanation.hypervisor.as_ref().map(|hypervisor| hypervisor.host.as_str());
    let host = joined.or(shown.hypervisor_hostname()).map(|host| {
        format!("; it is compute host {host}: list its servers with `bedplate where {host}`")
    });
    let said = format!("node {node} is in maintenance{}", host.unwrap_or_default());
    Ok(Answer::sentence(shown.json, plain(&said)))
}

/// A node that can be deleted, as far as its state tells.
pub(crate) struct DeletableNode {
    id: String,
    /// The name for people.
    pub(crate) label: String,
}

impl DeletableNode {
    /// Finds the node with this name or id.
    ///
    /// # Errors
    ///
    /// Returns an error if the node does not exist, or if another action is needed first, which the error names.
    pub(crate) async fn find(api: &Api, node: &str) -> anyhow::Result<DeletableNode> {
        let shown: Node = api.get(&element_path("/v1/nodes", node, "")?).await?;
        let id = shown.uuid.as_deref().context("the response of the API has no id")?;
        let label = plain(shown.name.as_deref().unwrap_or(node));
        let state = shown.state();
        if let Some(first) = needed_first(state, shown.maintenance, &label) {
            bail!("node {label} cannot be deleted in state {state}. Hint: {first}");
        }
        Ok(DeletableNode { id: id.to_owned(), label })
    }

    /// Deletes the node. `force` names the host or clusters that may be disrupted.
    pub(crate) async fn delete(&self, api: &Api, force: &[String]) -> anyhow::Result<()> {
        let path = element_path("/v1/nodes", &self.id, "")?;
        let forced = Serializer::new(String::new()).append_pair("force", &force.join(",")).finish();
        let path = if force.is_empty() { path } else { format!("{path}?{forced}") };
        api.delete(&path).await
    }
}

/// The action that brings a node into a state in which it can be deleted; `None` if none is needed. The API may still refuse for other
/// reasons.
fn needed_first(state: &str, is_in_maintenance: bool, node: &str) -> Option<String> {
    let verb = |verb: &str| {
        Some(format!("`openstack baremetal node {verb} {node} --wait`, then delete it"))
    };
    match state {
        "verifying" | "inspecting" | "cleaning" | "deploying" | "deleting" | "adopting"
        | "servicing" | "rescuing" | "unrescuing" => {
            Some("wait for the operation to complete, then delete it".to_owned())
        }
        "clean wait" | "inspect wait" | "wait call-back" | "clean hold" | "deploy hold"
        | "service wait" | "service hold" | "rescue wait" => {
            Some(format!("`openstack baremetal node abort {node}`, then delete it"))
        }
        _ if is_in_maintenance => None,
        "active" | "deploy failed" | "error" | "service failed" | "rescue" | "rescue failed"
        | "unrescue failed" => verb("undeploy"),
        "clean failed" | "inspect failed" => verb("manage"),
        _ => None,
    }
}

async fn explain(api: &Api, node: &str) -> anyhow::Result<Answer> {
    let explanation: WithJson<Explanation> =
        api.get(&format!("/bedplate/v1/nodes/{node}/explain")).await?;
    let words = explained(&explanation, Timestamp::now());
    Ok(Answer::sentence(explanation.json, words))
}

/// Explains a node line by line.
fn explained(explanation: &Explanation, now: Timestamp) -> String {
    let mut lines = vec![
        format!("{}.", capital(&plain(&explanation.summary))),
        format!("In state:  {}", since(explanation.since, now)),
    ];
    if let Some(Task { number, of, what, .. }) = &explanation.task {
        lines.push(format!("Step:      {number} of {of}, {}", plain(what)));
    }
    if let Some(hypervisor) = &explanation.hypervisor {
        let host = plain(&hypervisor.host);
        let state = plain(&hypervisor.state).replace('_', " ");
        lines.push(format!("Host:      {host}, {state} for {}", since(hypervisor.since, now)));
    }
    let LastSeen { bmc, dhcp, tftp, http, agent } = &explanation.last_seen;
    for (seen, label) in
        [(bmc, "BMC"), (dhcp, "DHCP"), (tftp, "TFTP"), (http, "HTTP"), (agent, "Agent")]
    {
        let seen = match seen {
            Some(seen) => format!("{}, at {}", plain(&seen.what), ago(seen.at, now)),
            None => "not seen since the service started".to_owned(),
        };
        lines.push(format!("{:10} {seen}", format!("{label}:")));
    }
    lines.push(format!("Next:      {}.", plain(&explanation.next)));
    lines.join("\n")
}

fn lease(answer: WithJson<NodeLease>) -> Answer {
    let until = time(answer.lease.as_ref().map(|lease| lease.until));
    let said = format!("Leased to {} until {until}.", text(answer.lessee.as_deref()));
    Answer::sentence(answer.json, said)
}

async fn sensors(api: &Api, node: &str) -> anyhow::Result<Answer> {
    let answer: WithJson<Sensors> = api.get(&format!("/bedplate/v1/nodes/{node}/sensors")).await?;
    let row = |reading: &SensorReading| {
        let value = reading.value.map_or(String::new(), |value| format!("{value}"));
        vec![plain(&reading.name), value, plain(&reading.unit), plain(&reading.health)]
    };
    let rows: Vec<_> = answer.sensors.iter().map(|reading| row(reading)).collect();
    Ok(Answer::table(answer.json, &["Sensor", "Value", "Unit", "Health"], rows))
}

/// A time to the second, and how long ago it was.
fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ({} ago)", readable::time(at), readable::duration(now.duration_since(at)))
}

/// The duration since a time, and the time.
fn since(at: Timestamp, now: Timestamp) -> String {
    format!("{}, since {}", readable::duration(now.duration_since(at)), readable::time(at))
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn deleting_a_node_in_use_names_the_action_that_is_needed_first() {
        let first = |state, maintained| needed_first(state, maintained, "n1");
        for free in ["enroll", "manageable", "available", "adopt failed"] {
            assert_eq!(first(free, false), None, "{free}");
        }
        assert!(first("active", false).unwrap().contains("node undeploy n1 --wait"));
        assert!(first("clean failed", false).unwrap().contains("node manage n1"));
        assert!(first("rescue", false).unwrap().contains("node undeploy n1 --wait"));
        assert!(first("clean hold", true).unwrap().contains("node abort n1"));
        assert!(first("clean wait", true).unwrap().contains("node abort n1"));
        assert!(first("deploying", true).unwrap().contains("wait for the operation"));
        assert_eq!(first("active", true), None);
    }

    #[test]
    fn a_node_is_explained_line_by_line() {
        let explanation = json!({
            "summary": "dev-1 waits for its agent", "since": "2026-01-02T03:04:05Z",
            "task": {"number": 2, "of": 5, "what": "boot the ramdisk", "since": "2026-01-02T03:04:05Z", "progress": null},
            "place": null, "hypervisor": null,
            "last_seen": {
                "bmc": {"what": "power on", "at": "2026-01-02T03:04:06.5Z"},
                "dhcp": {"what": "an address\u{1b}[2J", "at": "2026-01-02T03:04:07Z"},
                "tftp": null, "http": null, "agent": null,
            },
            "next": "wait, or look at its console",
        });
        let now = "2026-01-02T03:05:05Z".parse().unwrap();
        let want = expect![[r#"
            Dev-1 waits for its agent.
            In state:  1 min, since 2026-01-02T03:04:05Z
            Step:      2 of 5, boot the ramdisk
            BMC:       power on, at 2026-01-02T03:04:06Z (58 s ago)
            DHCP:      an address [2J, at 2026-01-02T03:04:07Z (58 s ago)
            TFTP:      not seen since the service started
            HTTP:      not seen since the service started
            Agent:     not seen since the service started
            Next:      wait, or look at its console."#]];
        let explanation = serde_json::from_value(explanation).unwrap();
        want.assert_eq(&explained(&explanation, now));
    }
}
