//! `bedplate cluster backup` and `bedplate cluster restore`: backups of a cluster's etcd, and restorations from them.

use anyhow::bail;
use api_client::WithJson;
use api_client::clusterd::{Backup, ClusterRestore};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::confirmation::Confirmation;
use crate::output::{Answer, Format, line, plain, text};
use crate::wait_options::{Deadline, WaitOptions};

/// The subcommands of `bedplate cluster backup`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Back up a cluster's etcd; with --wait, until the stored backup was restored as a test.
    Create {
        /// Name or id of the cluster.
        cluster: String,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// List the backups of a cluster, oldest first.
    List {
        /// Name or id of the cluster.
        cluster: String,
    },
    /// Delete a backup.
    Delete {
        /// Name or id of the cluster.
        cluster: String,
        /// Id of the backup.
        backup: String,
        #[command(flatten)]
        consent: Confirmation,
    },
}

/// The options of `bedplate cluster restore`.
#[derive(Args)]
pub(crate) struct RestoreOptions {
    /// Name or id of the cluster.
    pub(crate) cluster: String,
    /// Id of the backup; default: the newest backup that was restored as a test.
    #[arg(long, value_name = "ID")]
    backup: Option<String>,
    /// Also replace a control plane that is available. Every change since the backup is undone.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    consent: Confirmation,
    #[command(flatten)]
    pub(crate) patience: WaitOptions,
}

fn path(cluster: &str) -> String {
    format!("/bedplate/v1/clusters/{cluster}/backups")
}

pub(super) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::Create { cluster, patience } => {
            let made: WithJson<Backup> = api.post(&path(&cluster), &json!({})).await?;
            if !patience.wait {
                return shown(made).write(format);
            }
            let tested = until_tested(api, &cluster, &made.uuid, patience.begin()).await?;
            shown(tested).write(format)
        }
        Command::List { cluster } => listed(api.all(&path(&cluster)).await?).write(format),
        Command::Delete { cluster, backup, consent } => {
            consent
                .to(&format!("backup {backup} of cluster {cluster} will be deleted"), &backup)?;
            let path = format!("{}/{backup}", path(&cluster));
            shown(api.delete_returning(&path).await?).write(format)
        }
    }
}

/// Begins to restore the control plane of a cluster.
pub(super) async fn restore(
    options: &RestoreOptions,
    api: &Api,
    format: Format,
) -> anyhow::Result<()> {
    let RestoreOptions { cluster, backup, force, consent, .. } = options;
    let replaced = format!("all control-plane servers of cluster {cluster} will be deleted");
    let undone = "every change in the cluster since the backup will be undone";
    consent.to(&format!("{replaced}, and {undone}"), cluster)?;
    let mut body = Map::new();
    body.extend(backup.as_ref().map(|id| ("backup".to_owned(), Value::from(id.clone()))));
    body.extend(force.then(|| ("force".to_owned(), Value::from(true))));
    let path = format!("/bedplate/v1/clusters/{cluster}/restore");
    let begun: WithJson<ClusterRestore> = api.post(&path, &body).await?;
    let words = describe(&begun);
    match options.patience.wait && format.is_for_people() {
        true => line(&words),
        false => Answer::sentence(begun.json, words).write(format),
    }
}

fn describe(begun: &ClusterRestore) -> String {
    let ClusterRestore { name, restore } = begun;
    plain(&match restore {
        Some(restore) => format!("cluster {name} is being restored from backup {}", restore.backup),
        None => format!("cluster {name} is not being restored"),
    })
}

/// Waits until a backup was restored as a test. Returns an error if it failed.
async fn until_tested(
    api: &Api,
    cluster: &str,
    id: &str,
    deadline: Deadline,
) -> anyhow::Result<WithJson<Backup>> {
    loop {
        let backup: WithJson<Backup> = api.get(&format!("{}/{id}", path(cluster))).await?;
        if backup.tested_at.is_some() {
            return Ok(backup);
        }
        if let Some(why) = failure(&backup) {
            bail!("{}", plain(&why));
        }
        let why = backup.last_error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        deadline.pause(&plain(&format!("backup {id} ({}{why})", backup.state))).await?;
    }
}

/// Returns why a backup will not be tested any more.
fn failure(backup: &Backup) -> Option<String> {
    let Backup { uuid, state, step, last_error, .. } = backup;
    let why = last_error.as_deref().unwrap_or("no reason is known");
    match (state.as_str(), step) {
        (_, Some(_)) => None,
        ("deleting", None) => Some(format!("backup {uuid} is being deleted")),
        ("stored", None) => {
            Some(format!("backup {uuid} is stored, but no member could restore it: {why}"))
        }
        (_, None) => Some(format!("backup {uuid}: {why}")),
    }
}

fn shown(backup: WithJson<Backup>) -> Answer {
    let Backup { uuid, state, .. } = &backup.read;
    let words = plain(&format!("backup {uuid}: {state}"));
    Answer::sentence(backup.json, words)
}

fn listed(backups: Vec<WithJson<Backup>>) -> Answer {
    let row = |backup: &Backup| {
        let Backup { uuid, origin, state, requested_at, last_error, size, tested_at, step: _ } =
            backup;
        vec![
            plain(uuid),
            plain(origin),
            readable::time(*requested_at),
            plain(state),
            size.map(|bytes| bytes.to_string()).unwrap_or_default(),
            tested_at.map(readable::time).unwrap_or_default(),
            text(last_error.as_deref()),
        ]
    };
    let header = ["Backup", "Origin", "Requested", "State", "Bytes", "Tested", "Last error"];
    Answer::list("backups", backups, &header, row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_without_a_step_has_failed_unless_it_was_tested() {
        let failure = |state: &str, step: Option<&str>| {
            let (requested_at, last_error) = ("2026-01-02T03:04:05Z", "no space left");
            let raw = json!({
                "uuid": "b-1", "origin": "requested", "state": state, "requested_at": requested_at, "step": step,
                "last_error": last_error, "size": null, "tested_at": null,
            });
            failure(&serde_json::from_value(raw).unwrap()).unwrap_or_default()
        };
        assert_eq!(failure("wanted", Some("save")), "");
        assert_eq!(failure("stored", Some("test")), "");
        let untested = "backup b-1 is stored, but no member could restore it: no space left";
        assert_eq!(failure("stored", None), untested);
        assert_eq!(failure("failed", None), "backup b-1: no space left");
        assert_eq!(failure("deleting", None), "backup b-1 is being deleted");
    }

    #[test]
    fn a_restoration_is_told_in_a_sentence() {
        let told = |raw: &str| describe(&serde_json::from_str(raw).unwrap());
        let begun = r#"{"name": "blue", "restore": {"backup": "b-1", "phase": "clearing"}}"#;
        assert_eq!(told(begun), "cluster blue is being restored from backup b-1");
        let idle = r#"{"name": "blue", "restore": null}"#;
        assert_eq!(told(idle), "cluster blue is not being restored");
    }
}
