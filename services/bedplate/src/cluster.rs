//! `bedplate cluster`: lists, shows, upgrades, backs up and restores clusters; their events, ledger, lease and kubeconfig.

mod backup;
mod events;
mod stream;
mod upgrade;

use anyhow::bail;
use api_client::WithJson;
use api_client::clusterd::{Cluster, ClusterLease, ClusterStatus, Condition, Ledger, LedgerEntry};
use api_client::shared::Lease;
use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::output::{Answer, Format, draw_table, line, plain, text};
use crate::progress::{Display, Row};
use crate::wait_options::{Deadline, WaitOptions};
use crate::watch::Watch;

use self::events::ChangeWatcher;

pub(crate) use self::events::event_row;

/// The subcommands of `bedplate cluster`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List clusters.
    List {
        #[command(flatten)]
        watch: Watch,
    },
    /// Show a cluster and its conditions; with --wait, until all conditions are true.
    Show {
        /// Name or id of the cluster.
        cluster: String,
        #[command(flatten)]
        watch: Watch,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// List the events of a cluster, oldest first.
    Events {
        /// Name or id of the cluster.
        cluster: String,
        /// Follow new events until the cluster is deleted.
        #[arg(long)]
        watch: bool,
    },
    /// List the cloud objects of a cluster.
    Ledger {
        /// Name or id of the cluster.
        cluster: String,
        /// Forget all objects, for a deleted cluster whose project clusterd can no longer access. The listed objects may remain in the
        /// cloud, and clusterd no longer manages them.
        #[arg(long)]
        forget: bool,
    },
    /// Extend the lease of a cluster; between the end of the lease and the deletion, this also restarts the cluster.
    Extend {
        /// Name or id of the cluster.
        cluster: String,
        /// Lease duration from now, for example 14d or 36h; default: the configured duration.
        #[arg(long = "for", value_name = "LENGTH", conflicts_with = "until")]
        length: Option<String>,
        /// End of the lease, for example 2030-01-31T12:00:00Z.
        #[arg(long, value_name = "TIME")]
        until: Option<Timestamp>,
    },
    /// Undo the end of a cluster's lease: the members are switched on again.
    Undo {
        /// Name or id of the cluster.
        cluster: String,
    },
    /// Upgrade a cluster to another template: shows the plan, then replaces the members one after the other, the control plane first.
    Upgrade(upgrade::Upgrade),
    /// Backups of a cluster's etcd.
    #[command(subcommand)]
    Backup(backup::Command),
    /// Replace all control-plane servers of a cluster by new ones that start from a backup; with --wait, until all conditions are true.
    Restore(backup::RestoreOptions),
    /// Print a kubeconfig with administrator rights. The kubeconfig contains a private key.
    Kubeconfig {
        /// Name or id of the cluster.
        cluster: String,
    },
}

fn describe(lease: &Lease) -> String {
    let next = lease.next.as_ref().map(|next| {
        let what = match next.step.as_str() {
            "warn" => "the owner is warned",
            "shut_off" => "the cluster is switched off",
            "warn_of_deletion" => "the owner gets a last warning",
            "delete" => "the cluster is deleted",
            other => other,
        };
        format!("; {what} at {}", readable::time(next.at))
    });
    let next = next.unwrap_or_default();
    match (lease.ended_at, lease.deleted_at) {
        (_, Some(at)) => {
            format!("the lease has ended, and the deletion began at {}", readable::time(at))
        }
        (Some(at), None) => format!("the lease ended at {}{next}", readable::time(at)),
        (None, None) => format!("leased until {}{next}", readable::time(lease.until)),
    }
}

/// Why a condition is not true, and what to do.
fn why(condition: &Condition) -> String {
    if condition.next_action.is_empty() {
        return condition.message.clone();
    }
    format!("{}. Hint: {}", condition.message, condition.next_action)
}

fn progress(condition: &Condition) -> Row {
    let Condition { kind, status, .. } = condition;
    // A condition that is merely awaited changes often. A log shows a condition when it becomes true or when a person has to act.
    let log = match (condition.is_true(), condition.next_action.is_empty()) {
        (true, _) => Some(kind.clone()),
        (false, true) => None,
        (false, false) => Some(format!("{kind} is {status}: {}", why(condition))),
    };
    let live = if condition.is_true() { status.clone() } else { why(condition) };
    Row { key: kind.clone(), label: kind.clone(), live, log }
}

/// The rows of a progress display: the upgrade, if one is in progress, and the conditions.
fn rows(status: &ClusterStatus) -> Vec<Row> {
    let of_upgrade = |upgrade| {
        let (key, live) = ("Upgrade".to_owned(), upgrade::progress(upgrade));
        Row { label: key.clone(), key, live, log: None }
    };
    let upgrade = status.upgrade.as_ref().map(of_upgrade);
    upgrade.into_iter().chain(status.conditions.iter().map(progress)).collect()
}

pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::List { watch } => watch.show(format, async || list(api).await).await,
        Command::Show { cluster, patience, .. } if patience.wait => {
            settled(api, &cluster, patience.begin(), format).await
        }
        Command::Show { cluster, watch, .. } => {
            let mut news = ChangeWatcher::of(api, &cluster);
            let look = async || show(api, &cluster).await;
            watch.show_between(format, look, async || news.wait().await).await
        }
        Command::Events { cluster, watch: false } => {
            events::list(api, &cluster).await?.write(format)
        }
        Command::Events { cluster, watch: true } => events::follow(api, &cluster, format).await,
        Command::Ledger { cluster, forget } => {
            let path = format!("/bedplate/v1/clusters/{cluster}/ledger");
            let answer =
                if forget { api.delete_returning(&path).await? } else { api.get(&path).await? };
            ledger(answer).write(format)
        }
        Command::Extend { cluster, length, until } => {
            let path = format!("/bedplate/v1/clusters/{cluster}/lease");
            let mut body = Map::new();
            body.extend(length.map(|length| ("for".to_owned(), Value::from(length))));
            body.extend(until.map(|until| ("until".to_owned(), Value::from(until.to_string()))));
            lease_answer(&cluster, api.put(&path, &body).await?).write(format)
        }
        Command::Undo { cluster } => {
            let path = format!("/bedplate/v1/clusters/{cluster}/lease/undo");
            lease_answer(&cluster, api.post(&path, &json!({})).await?).write(format)
        }
        Command::Upgrade(asked) => match upgrade::run(&asked, api, format).await? {
            true => settled(api, &asked.cluster, asked.patience.begin(), format).await,
            false => Ok(()),
        },
        Command::Backup(command) => backup::run(command, api, format).await,
        Command::Restore(options) => {
            backup::restore(&options, api, format).await?;
            match options.patience.wait {
                true => settled(api, &options.cluster, options.patience.begin(), format).await,
                false => Ok(()),
            }
        }
        Command::Kubeconfig { cluster } => line(kubeconfig(api, &cluster).await?.trim_end()),
    }
}

fn lease_answer(cluster: &str, answer: WithJson<ClusterLease>) -> Answer {
    let lease = answer.lease.as_ref().map_or_else(|| "no lease".to_owned(), describe);
    Answer::sentence(answer.json, plain(&format!("cluster {cluster}: {lease}")))
}

pub(crate) async fn list(api: &Api) -> anyhow::Result<Answer> {
    let clusters = api.all("/v1/clusters").await?;
    let row = |cluster: &Cluster| {
        vec![
            plain(&cluster.name),
            cluster.master_count.to_string(),
            cluster.node_count.to_string(),
            plain(&cluster.status),
            plain(&cluster.health_status),
        ]
    };
    let header = ["Cluster", "Control plane", "Workers", "Status", "Health"];
    Ok(Answer::list("clusters", clusters, &header, row))
}

fn ledger(answer: WithJson<Ledger>) -> Answer {
    let row = |entry: &LedgerEntry| {
        let LedgerEntry { object, name, cloud_id, state } = entry;
        vec![plain(object), plain(name), text(cloud_id.as_deref()), plain(state)]
    };
    let rows: Vec<_> = answer.ledger.iter().map(row).collect();
    Answer::table(answer.json, &["Object", "Name", "Cloud ID", "State"], rows)
}

async fn show(api: &Api, cluster: &str) -> anyhow::Result<Answer> {
    let found = fetch(api, cluster).await?;
    let said = shown(&found, cluster);
    Ok(Answer::sentence(found.json, said))
}

/// Describes a cluster for people.
fn shown(status: &ClusterStatus, cluster: &str) -> String {
    let mut lines = vec![plain(&format!("cluster {cluster}: {}", status.status))];
    lines.extend(status.lease.as_ref().map(|lease| plain(&describe(lease))));
    lines.extend(status.upgrade.as_ref().map(upgrade::progress));
    let rows = status.conditions.iter().map(|condition| {
        let why = if condition.is_true() { String::new() } else { why(condition) };
        vec![plain(&condition.kind), plain(&condition.status), plain(&why)]
    });
    lines.push(draw_table(&["Condition", "Status", "Message"], rows));
    lines.join("\n")
}

async fn fetch(api: &Api, cluster: &str) -> anyhow::Result<WithJson<ClusterStatus>> {
    api.get(&format!("/bedplate/v1/clusters/{cluster}")).await
}

/// Shows the cluster's conditions until all of them are true. Returns an error if the cluster fails.
pub(crate) async fn settled(
    api: &Api,
    cluster: &str,
    deadline: Deadline,
    format: Format,
) -> anyhow::Result<()> {
    let begun = Timestamp::now();
    let mut display = format.is_for_people().then(Display::fitting);
    let ClusterStatus { status, status_reason, .. } = loop {
        let explained = fetch(api, cluster).await?.read;
        if let Some(display) = &mut display {
            display.show(rows(&explained), begun)?;
        }
        let all = explained.conditions.iter().all(Condition::is_true);
        let is_complete = explained.status.ends_with("_COMPLETE") && all;
        if is_complete || explained.status.ends_with("_FAILED") {
            break explained;
        }
        deadline.pause(&plain(&first_missing_condition(cluster, &explained.conditions))).await?;
    };
    match display {
        Some(display) => {
            display.finish();
            let elapsed = readable::duration(Timestamp::now().duration_since(begun));
            line(&plain(&format!("cluster {cluster}: {status} after {elapsed}")))?;
        }
        None => show(api, cluster).await?.write(format)?,
    }
    if status.ends_with("_FAILED") {
        bail!("{}", plain(&status_reason.unwrap_or(status)));
    }
    Ok(())
}

/// Names a cluster and the first of its conditions that is not true yet.
fn first_missing_condition(cluster: &str, conditions: &[Condition]) -> String {
    let first = conditions.iter().find(|condition| !condition.is_true());
    let missing = first.map(|it| format!(" ({}: {})", it.kind, it.message));
    format!("cluster {cluster}{}", missing.unwrap_or_default())
}

/// Fetches a new kubeconfig of the cluster's administrator.
pub(crate) async fn kubeconfig(api: &Api, cluster: &str) -> anyhow::Result<String> {
    api.get_text(&format!("/bedplate/v1/clusters/{cluster}/kubeconfig")).await
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn condition(status: &str, next_action: &str) -> Condition {
        Condition {
            kind: "DnsReady".to_owned(),
            status: status.to_owned(),
            message: "there is no such zone".to_owned(),
            next_action: next_action.to_owned(),
        }
    }

    #[test]
    fn a_timeout_names_the_first_missing_condition() {
        let conditions = [condition("True", ""), condition("False", "")];
        assert_eq!(
            first_missing_condition("blue", &conditions),
            "cluster blue (DnsReady: there is no such zone)"
        );
        assert_eq!(first_missing_condition("blue", &conditions[..1]), "cluster blue");
    }

    #[test]
    fn a_lease_is_told_in_a_sentence() {
        let lease = |raw: &str| describe(&serde_json::from_str(raw).unwrap());
        let lent = r#"{"until": "2030-01-31T00:00:00Z", "ended_at": null, "deleted_at": null,
            "next": {"step": "warn", "at": "2030-01-24T00:00:00Z"}}"#;
        let want = "leased until 2030-01-31T00:00:00Z; the owner is warned at 2030-01-24T00:00:00Z";
        assert_eq!(lease(lent), want);
        let ended = r#"{"until": "2030-01-31T00:00:00Z", "ended_at": "2030-01-31T00:00:01.123456Z", "deleted_at": null,
            "next": {"step": "delete", "at": "2030-02-07T00:00:00Z"}}"#;
        let want = "the lease ended at 2030-01-31T00:00:01Z; the cluster is deleted at 2030-02-07T00:00:00Z";
        assert_eq!(lease(ended), want);
    }

    #[test]
    fn a_cluster_is_shown_with_its_conditions() {
        let lease = r#"{"until": "2030-01-31T00:00:00Z", "ended_at": null, "deleted_at": null, "next": null}"#;
        let explained = ClusterStatus {
            status: "CREATE_IN_PROGRESS".to_owned(),
            status_reason: None,
            lease: Some(serde_json::from_str(lease).unwrap()),
            upgrade: None,
            conditions: vec![condition("True", ""), condition("False", "make it")],
        };
        let want = expect![[r#"
            cluster blue: CREATE_IN_PROGRESS
            leased until 2030-01-31T00:00:00Z
             Condition  Status  Message
             DnsReady   True
             DnsReady   False   there is no such zone. Hint: make it"#]];
        want.assert_eq(&shown(&explained, "blue"));
    }

    #[test]
    fn a_log_shows_true_conditions_and_those_that_need_an_action() {
        assert_eq!(progress(&condition("True", "")).log.as_deref(), Some("DnsReady"));
        assert_eq!(progress(&condition("False", "")).log, None);
        assert_eq!(
            progress(&condition("False", "make it")).log.as_deref(),
            Some("DnsReady is False: there is no such zone. Hint: make it")
        );
    }
}
