//! Imitates the unit of a member that rotates CAs: the unit polls for CAs, as a `curl` config file describes, and installs them.
//!
//! The answer is a tar archive with `revision`, `ca.crt` and, on control-plane members, `ca.key`. The emulated Kubernetes programs use new
//! CAs at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use reqwest::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::certificates::Reporter;
use super::curl::{CurlConfig, PATIENCE, client};
use crate::locks::lock;

/// The CAs that a member has on its disk. They survive a restart of the member.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MemberCas {
    pub(super) revision: String,
    /// The CA certificates as PEM, the signing one first. Empty until the first rotation step.
    pub(super) authority: String,
    pub(super) key: Option<String>,
}

/// The disks of members, by the ids of their servers.
#[derive(Debug, Default)]
pub(super) struct Disks(Mutex<HashMap<String, MemberCas>>);

impl Disks {
    pub(super) fn held(&self, server: &str) -> Option<MemberCas> {
        lock(&self.0).get(server).cloned()
    }

    /// A copy of all disks, to store with the cloud.
    pub(super) fn all(&self) -> HashMap<String, MemberCas> {
        lock(&self.0).clone()
    }

    pub(super) fn take_up(&self, all: HashMap<String, MemberCas>) {
        *lock(&self.0) = all;
    }

    fn write(&self, server: &str, held: &MemberCas) {
        let mut disks = lock(&self.0);
        disks.insert(server.to_owned(), held.clone());
    }
}

/// The URL that a member polls, and the credentials it sends.
#[derive(Clone, Debug)]
pub(super) struct PollSettings {
    url: String,
    bearer: String,
    authority: String,
    revision: String,
}

impl PollSettings {
    /// Reads the settings from the files of a member. `None` if the member polls nothing.
    pub(super) fn read(files: &BTreeMap<String, String>) -> Option<PollSettings> {
        let curl = CurlConfig::find(files, "/authorities.curl")?;
        let revision = files.iter().find(|(path, _)| path.ends_with("/authorities/revision"))?.1;
        Some(PollSettings {
            url: curl.option("url")?,
            bearer: curl.authorization()?,
            authority: curl.authority()?,
            revision: revision.trim().to_owned(),
        })
    }

    /// Polls for ever, with the pause `every` after each answer. Calls `taken` for new CAs before the next poll. Reports certificates while
    /// no rotation is in progress.
    pub(super) async fn keep(
        &self,
        (server, every): (&str, Duration),
        disks: &Disks,
        taken: impl Fn(&MemberCas),
        reporter: Option<&Reporter<'_>>,
    ) {
        let first = MemberCas { revision: self.revision.clone(), ..MemberCas::default() };
        let mut held = disks.held(server).unwrap_or(first);
        let Ok(client) = client(&self.authority) else { return };
        let mut report_at = Instant::now();
        loop {
            let url = format!("{}?holds={}", self.url, held.revision);
            let call = client.get(url).header("Authorization", &self.bearer).timeout(PATIENCE);
            let answer = call.send().await;
            match answer.map(|answer| (answer.status(), answer)) {
                Ok((StatusCode::OK, answer)) => {
                    let Ok(archive) = answer.bytes().await else { continue };
                    let mut files = unpacked(&archive);
                    let mut file = |name: &str| files.remove(name).unwrap_or_default();
                    held.revision = file("revision").trim().to_owned();
                    held.authority = file("ca.crt");
                    held.key = Some(file("ca.key")).filter(|key| !key.is_empty());
                    taken(&held);
                    disks.write(server, &held);
                }
                Ok((StatusCode::ACCEPTED, _)) => tokio::time::sleep(every / 15).await,
                Ok((StatusCode::NO_CONTENT, _)) => {
                    let mut pause = every;
                    if let Some(reporter) = reporter {
                        if report_at <= Instant::now() {
                            report_at = Instant::now() + reporter.report(&client).await;
                        }
                        let left = report_at.saturating_duration_since(Instant::now());
                        pause = left.clamp(every / 30, every);
                    }
                    tokio::time::sleep(pause).await;
                }
                Ok(_) | Err(_) => tokio::time::sleep(every).await,
            }
        }
    }
}

/// The text files of a tar archive (POSIX.1-1988).
fn unpacked(archive: &[u8]) -> BTreeMap<String, String> {
    let (mut files, mut rest) = (BTreeMap::new(), archive);
    while let Some((header, after)) = rest.split_at_checked(512) {
        let text = |from: usize, to: usize| {
            let field = header[from..to].split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(field).trim().to_owned()
        };
        let Ok(size) = usize::from_str_radix(&text(124, 136), 8) else { break };
        let Some(contents) = after.get(..size) else { break };
        files.insert(text(0, 100), String::from_utf8_lossy(contents).into_owned());
        rest = after.get(size.next_multiple_of(512)..).unwrap_or_default();
    }
    files
}
