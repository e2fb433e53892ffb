//! Imitates the part of a member's unit that reports certificates and renews them.
//!
//! The unit posts the certificates with the times of their files, as a `curl` config file describes. The answer 202 has the number of
//! seconds until the next report. After the answer 200 the unit issues all certificates again, and a control-plane member restarts etcd. As
//! kubeadm does, certificates begin long before they are issued.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use reqwest::{Client, StatusCode};
use serde::{Deserialize, Serialize};

use super::cluster::Cluster;
use super::curl::{CurlConfig, PATIENCE};
use crate::locks::lock;

const OF_CONTROL_PLANE: &[&str] = &["apiserver", "etcd/peer", "admin.conf", "kubelet-client"];
const OF_WORKER: &[&str] = &["kubelet-client"];
/// How long etcd is down when it restarts.
const RESTART_TIME: Duration = Duration::from_millis(30);
/// The longest pause of the unit's loop, in seconds. `Reporter::every` is as long in the time of the emulated cloud.
const LOOP_SECONDS: u32 = 30;

/// The URL that a member reports to, and the credential it sends.
#[derive(Clone, Debug)]
pub(super) struct ReportSettings {
    url: String,
    bearer: String,
}

impl ReportSettings {
    /// Reads the settings from the files of a member. `None` if the member reports nothing.
    pub(super) fn read(files: &BTreeMap<String, String>) -> Option<ReportSettings> {
        let curl = CurlConfig::find(files, "/certificates.curl")?;
        Some(ReportSettings { url: curl.option("url")?, bearer: curl.authorization()? })
    }
}

/// The certificates of a member by their names, all issued at the same time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MemberLeaves {
    issued_at: i64,
    pems: BTreeMap<String, String>,
}

impl MemberLeaves {
    fn issue(names: &[&str], lifetime: Duration) -> Result<MemberLeaves, rcgen::Error> {
        let issued_at = Timestamp::now().as_second();
        let since_epoch = Duration::from_secs(issued_at.unsigned_abs());
        let not_after = date_time_ymd(1970, 1, 1) + since_epoch + lifetime;
        let issue = |name: &&str| {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, *name);
            params.not_after = not_after;
            let certificate = params.self_signed(&KeyPair::generate()?)?;
            Ok::<_, rcgen::Error>(((*name).to_owned(), certificate.pem()))
        };
        let pems = names.iter().map(issue).collect::<Result<_, _>>()?;
        Ok(MemberLeaves { issued_at, pems })
    }

    fn report(&self) -> String {
        let mut text = "stage idle\n".to_owned();
        for (name, pem) in &self.pems {
            let _ = write!(text, "certificate {name} {}\n{pem}", self.issued_at);
        }
        text
    }
}

/// The certificates on the disks of members, by the ids of their servers.
#[derive(Debug, Default)]
pub(super) struct LeafDisks(Mutex<HashMap<String, MemberLeaves>>);

impl LeafDisks {
    /// A copy of all certificates, to store with the cloud.
    pub(super) fn all(&self) -> HashMap<String, MemberLeaves> {
        lock(&self.0).clone()
    }

    pub(super) fn take_up(&self, all: HashMap<String, MemberLeaves>) {
        *lock(&self.0) = all;
    }

    fn held(&self, server: &str) -> Option<MemberLeaves> {
        lock(&self.0).get(server).cloned()
    }

    fn write(&self, server: &str, leaves: &MemberLeaves) {
        lock(&self.0).insert(server.to_owned(), leaves.clone());
    }
}

/// A member that reports its certificates.
pub(super) struct Reporter<'a> {
    pub(super) settings: &'a ReportSettings,
    pub(super) disks: &'a LeafDisks,
    pub(super) cluster: &'a Cluster,
    /// The id of the server.
    pub(super) server: &'a str,
    /// The name of the Kubernetes node.
    pub(super) node: &'a str,
    pub(super) address: &'a str,
    pub(super) is_control_plane: bool,
    /// The lifetime of new certificates.
    pub(super) lifetime: Duration,
    /// The longest pause of the unit's loop.
    pub(super) every: Duration,
}

impl Reporter<'_> {
    /// Reports the certificates, and renews them if told so. Returns the pause until the next report.
    pub(super) async fn report(&self, client: &Client) -> Duration {
        let Ok(leaves) = self.leaves() else { return self.pause(60) };
        let ReportSettings { url, bearer } = self.settings;
        let request = client.post(url).header("Authorization", bearer).body(leaves.report());
        match request.timeout(PATIENCE).send().await.map(|answer| (answer.status(), answer)) {
            Ok((StatusCode::OK, _)) => {
                self.renew().await;
                Duration::ZERO
            }
            Ok((StatusCode::ACCEPTED, answer)) => {
                let seconds = answer.text().await.unwrap_or_default();
                self.pause(seconds.trim().parse().unwrap_or(60))
            }
            Ok(_) | Err(_) => self.pause(60),
        }
    }

    /// Returns the pause for this many seconds of the unit: the time of members runs as fast as their polls.
    fn pause(&self, seconds: u32) -> Duration {
        self.every.saturating_mul(seconds) / LOOP_SECONDS
    }

    /// Returns the certificates on the disk, which are issued when the member starts for the first time.
    fn leaves(&self) -> Result<MemberLeaves, rcgen::Error> {
        if let Some(held) = self.disks.held(self.server) {
            return Ok(held);
        }
        let leaves = self.issue()?;
        self.disks.write(self.server, &leaves);
        Ok(leaves)
    }

    fn issue(&self) -> Result<MemberLeaves, rcgen::Error> {
        let names = if self.is_control_plane { OF_CONTROL_PLANE } else { OF_WORKER };
        MemberLeaves::issue(names, self.lifetime)
    }

    async fn renew(&self) {
        if self.is_control_plane {
            self.cluster.with(|objects| objects.members.down(self.node));
            tokio::time::sleep(RESTART_TIME).await;
            self.cluster.with(|objects| objects.members.up(self.node, self.address));
        }
        if let Ok(leaves) = self.issue() {
            self.disks.write(self.server, &leaves);
        }
    }
}
