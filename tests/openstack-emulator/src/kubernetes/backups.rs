//! Imitates the unit of a member that works on backups of etcd: the unit polls for work, as the files of the member describe, and saves,
//! fetches and restores snapshots.
//!
//! A snapshot is the JSON of all objects. Members that start from one replace the objects of a cluster without a running API server.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::cluster::Cluster;
use super::curl::{CurlConfig, client};
use super::state::Objects;

/// The version of the emulated etcd.
const ETCD: &str = "3.5.16";

/// The URLs and credentials of a member for backups.
#[derive(Clone, Debug)]
pub(super) struct Backups {
    url: String,
    bearer: String,
    authority: String,
    /// The number of restorations that the member knows of when it is created.
    pub(super) restores: String,
    /// The backup from which the member's etcd starts.
    pub(super) starts_from: Option<String>,
}

/// The work that a service gives to a member.
enum Work {
    Save(String),
    Test(String),
    /// Start the kubelet again.
    Refresh(String),
}

impl Work {
    fn read(line: &str) -> Option<Work> {
        let (word, of) = line.trim().split_once(' ')?;
        match word {
            "save" => Some(Work::Save(of.to_owned())),
            "test" => Some(Work::Test(of.to_owned())),
            "refresh" => Some(Work::Refresh(of.to_owned())),
            _ => None,
        }
    }
}

impl Backups {
    /// Reads the settings from the files and units of a member. `None` if the member polls nothing.
    pub(super) fn read(files: &BTreeMap<String, String>, config: &Value) -> Option<Backups> {
        let curl = CurlConfig::find(files, "/backups.curl")?;
        let text = |end: &str| {
            let (_, text) = files.iter().find(|(path, _)| path.ends_with(end))?;
            Some(text.trim().to_owned())
        };
        Some(Backups {
            url: text("/backups.url")?,
            bearer: curl.authorization()?,
            authority: curl.authority()?,
            restores: text("/backups/restores")?,
            starts_from: starts_from(config),
        })
    }

    /// Fetches the snapshot that the member's etcd starts from. Repeats the call until it succeeds, as systemd repeats the unit.
    pub(super) async fn first_snapshot(&self, backup: &str, pause: Duration) -> Option<Objects> {
        let client = client(&self.authority).ok()?;
        loop {
            if let Some(bytes) = self.fetch(&client, backup).await {
                return serde_json::from_slice(&bytes).ok();
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn fetch(&self, client: &Client, backup: &str) -> Option<Vec<u8>> {
        let url = format!("{}/{backup}", self.url);
        let call = client.get(url).header("Authorization", &self.bearer).timeout(TRANSFER);
        let answer = call.send().await.ok()?.error_for_status().ok()?;
        Some(answer.bytes().await.ok()?.to_vec())
    }

    /// Polls and works, with the pause `every` after each answer, until the kubelet has to start again. Returns the number of restorations
    /// that the member then knows of; `restores` is the number that it knows of now.
    pub(super) async fn until_refresh(
        &self,
        every: Duration,
        cluster: &Cluster,
        restores: &str,
    ) -> String {
        let Ok(client) = client(&self.authority) else { return pending().await };
        loop {
            let url = format!("{}?restores={restores}", self.url);
            let call = client.get(url).header("Authorization", &self.bearer).timeout(CALL);
            let answer = call.send().await;
            let pause = match answer.map(|answer| (answer.status(), answer)) {
                Ok((StatusCode::OK, answer)) => {
                    let line = answer.text().await.unwrap_or_default();
                    match Work::read(&line) {
                        Some(Work::Save(backup)) => self.save(&client, &backup, cluster).await,
                        Some(Work::Test(backup)) => self.test(&client, &backup).await,
                        Some(Work::Refresh(number)) => return number,
                        None => {}
                    }
                    every / 15
                }
                Ok((StatusCode::ACCEPTED, _)) => every / 15,
                Ok(_) | Err(_) => every,
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn save(&self, client: &Client, backup: &str, cluster: &Cluster) {
        let (bytes, version) = cluster.with(|objects| {
            let bytes = serde_json::to_vec(objects).unwrap_or_default();
            (bytes, objects.version)
        });
        let digest = Sha256::digest(&bytes);
        let sum: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let url = format!("{}/{backup}?revision={version}&etcd={ETCD}&sha256={sum}", self.url);
        let call = client.put(url).header("Authorization", &self.bearer).body(bytes);
        let sent =
            call.timeout(TRANSFER).send().await.and_then(reqwest::Response::error_for_status);
        if sent.is_err() {
            let form = "result=failed&message=curl:+(22)+The+requested+URL+returned+error";
            self.tell(client, backup, form).await;
        }
    }

    async fn test(&self, client: &Client, backup: &str) {
        let bytes = self.fetch(client, backup).await;
        let is_whole = bytes.is_some_and(|it| serde_json::from_slice::<Objects>(&it).is_ok());
        let form = match is_whole {
            true => "result=success&message=",
            false => "result=failed&message=the+snapshot+is+missing+or+damaged",
        };
        self.tell(client, backup, form).await;
    }

    async fn tell(&self, client: &Client, backup: &str, form: &str) {
        let url = format!("{}/{backup}/result", self.url);
        let call = client.post(url).header("Authorization", &self.bearer);
        let call = call.header("Content-Type", FORM).body(form.to_owned());
        let _ = call.timeout(CALL).send().await;
    }
}

/// How long `curl` waits for an answer, and for the transfer of a snapshot.
const CALL: Duration = Duration::from_secs(30);
const TRANSFER: Duration = Duration::from_secs(1500);
const FORM: &str = "application/x-www-form-urlencoded";

/// The backup that a unit of the config restores before the control plane starts.
fn starts_from(config: &Value) -> Option<String> {
    let units = config["systemd"]["units"].as_array()?.iter();
    let dropins = units.filter_map(|unit| unit["dropins"].as_array()).flatten();
    let texts = dropins.filter_map(|dropin| dropin["contents"].as_str());
    let mut lines = texts.flat_map(str::lines);
    let command =
        lines.find_map(|line| line.strip_prefix("ExecStartPre=")?.split_once(" start "))?;
    Some(command.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_starts_from_the_backup_of_its_unit() {
        let unit = |text: &str| {
            json!({"systemd": {"units": [
                {"name": "kubelet.service", "contents": "[Service]\nExecStart=/usr/bin/kubelet\n"},
                {"name": "control-plane.service", "dropins": [{"name": "40.conf", "contents": text}]},
            ]}})
        };
        let start = "[Unit]\n\n[Service]\nExecStartPre=/bin/bash /etc/backups start b-1\n";
        assert_eq!(starts_from(&unit(start)).as_deref(), Some("b-1"));
        let rejoin = "[Service]\nExecStartPre=/bin/bash /etc/backups rejoin\n";
        assert_eq!(starts_from(&unit(rejoin)), None);
        assert_eq!(starts_from(&Value::Null), None);
    }

    #[test]
    fn work_is_a_word_and_its_object() {
        assert!(matches!(Work::read("save b-1\n"), Some(Work::Save(id)) if id == "b-1"));
        assert!(matches!(Work::read("refresh 2\n"), Some(Work::Refresh(number)) if number == "2"));
        assert!(Work::read("erase b-1").is_none() && Work::read("").is_none());
    }
}
