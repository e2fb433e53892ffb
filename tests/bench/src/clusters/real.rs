//! Clusters in a real cloud, one after the other: the time until the last server was accepted, compared with the critical path of the same
//! calls.
//!
//! A cloud on the same processors has slow moments, so several clusters are measured and the median counts.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use http::{Method, StatusCode};
use openstack::{CloudConfig, Session, dns::zones};
use openstack_emulator::Times;
use serde::Deserialize;
use serde_json::json;

use super::chain::last_server;
use super::cloud::LoggedCall;
use super::listen::{RecordedCall, RecordingProxy};
use super::path::{CriticalPath, fewest, fits};
use super::shape::{EIGHT, WITHIN, programs};
use crate::client::{Call, Client};
use crate::daemon::DaemonFolder;
use crate::report::{Budget, Report, Row};

/// How long a cluster may take until its servers are requested, and to be deleted.
const PATIENCE: Duration = Duration::from_secs(600);
/// The pause between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A real cloud, and what there is in it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RealCloud {
    /// A clouds.yaml: `clusters` then measures clusters in that real cloud instead of an emulated one.
    #[arg(long)]
    clouds_yaml: Option<PathBuf>,
    /// Name of the cloud in the clouds.yaml.
    #[arg(long, default_value = "alice")]
    cloud: String,
    /// Image for the servers.
    #[arg(long, default_value = "tiny")]
    image: String,
    /// Flavor for the servers.
    #[arg(long, default_value = "m1.small")]
    flavor: String,
    /// External network.
    #[arg(long, default_value = "public")]
    external_network: String,
    /// DNS zone, which the bench creates and deletes.
    #[arg(long, default_value = "bench.example.")]
    zone: String,
    /// Number of clusters, created one after the other. The median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// The timing of one cluster.
struct Round {
    /// Seconds until the last server was accepted.
    asked: f64,
    /// The critical path of the same calls, in seconds.
    path: f64,
    /// The critical path in seconds if each kind of call takes its median duration.
    of_medians: f64,
    /// The calls until the last server was accepted.
    calls: Vec<LoggedCall>,
}

impl Round {
    fn times_the_path(&self) -> f64 {
        self.asked / self.path
    }
}

impl RealCloud {
    /// Measures clusters in the real cloud. Returns false if the command line names no real cloud.
    pub(crate) async fn measure(&self, report: &mut Report) -> anyhow::Result<bool> {
        let Some(file) = &self.clouds_yaml else { return Ok(false) };
        let config = CloudConfig::read(file, Some(&self.cloud))?;
        let keystone = config.auth_url.clone();
        let session = Session::new(config)?;
        let zone = zones::create(&session, &self.zone, "hostmaster@bench.example", "").await?;
        let listening = RecordingProxy::to(&keystone.as_str().parse()?).await?;
        let text = std::fs::read_to_string(file)?;
        let ours = text.replace(keystone.as_str(), &listening.keystone(keystone.path()));
        anyhow::ensure!(ours != text, "{}: it does not name {keystone} like that", file.display());
        let measured = self.rounds(&ours, &listening).await;
        zones::delete(&session, &zone.id).await?;
        report_rounds(measured?, report)?;
        Ok(true)
    }

    async fn rounds(
        &self,
        clouds_yaml: &str,
        listening: &RecordingProxy,
    ) -> anyhow::Result<Vec<Round>> {
        let mut rounds = Vec::with_capacity(self.rounds);
        for _ in 0..self.rounds {
            rounds.push(self.round(clouds_yaml, listening).await?);
        }
        Ok(rounds)
    }

    /// Creates and deletes one cluster with a clusterd that has just started, so it has no token and knows no flavor yet.
    async fn round(&self, clouds_yaml: &str, listening: &RecordingProxy) -> anyhow::Result<Round> {
        let from = listening.millis(Instant::now());
        let home = DaemonFolder::for_program("clusterd")?;
        let file = home.path("clouds.yaml");
        std::fs::write(&file, clouds_yaml)?;
        let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let daemon = home
            .start(&format!(
                "[cloud]\nclouds_yaml = {file:?}\nname = {:?}\n\
                 [nodes]\nlisten = \"{free}\"\nurl = \"https://{free}/\"\n\
                 [kubernetes.versions.\"v1.34.1\"]\n{}",
                self.cloud,
                programs()
            ))
            .await?;
        let mut client = daemon.server.client().await?;
        let template = json!({
            "name": "bench", "coe": "kubernetes", "image_id": self.image, "network_driver": "flannel",
            "external_network_id": self.external_network, "flavor_id": self.flavor, "master_flavor_id": self.flavor,
            "master_lb_enabled": true, "floating_ip_enabled": false,
            "labels": {"dns_zone": self.zone, "master_lb_floating_ip_enabled": "true", "kube_tag": "v1.34.1"},
        });
        sent(&mut client, "/v1/clustertemplates", template).await?;
        let cluster = json!({
            "name": "bench", "cluster_template_id": "bench", "master_count": EIGHT.masters, "node_count": EIGHT.workers,
        });
        let begun = Instant::now();
        let id = sent(&mut client, "/v1/clusters", cluster).await?;
        let asked = last_server_accepted(listening, begun).await;
        let of_medians = path_of_medians(listening, from).await;
        let heard = since(listening, from);
        let gone = delete(&mut client, &id).await;
        daemon.stop().await?;
        let (asked, of_medians) = (asked?, of_medians?.asked);
        gone?;

        let mut calls = calls(&heard);
        let path = last_server(&heard, fits(&calls)?);
        let until = listening.millis(begun) as f64 + asked * 1000.0;
        calls.retain(|call| call.at_millis as f64 <= until);
        Ok(Round { asked, path, of_medians, calls })
    }
}

/// Reports all rounds, and the round of median ratio compared with its critical path.
fn report_rounds(mut rounds: Vec<Round>, report: &mut Report) -> anyhow::Result<()> {
    let all: Vec<String> = rounds
        .iter()
        .map(|it| format!("{:.2} s of {:.2} ({:.2})", it.asked, it.path, it.of_medians))
        .collect();
    rounds.sort_by(|a, b| a.times_the_path().total_cmp(&b.times_the_path()));
    let middle = rounds.get(rounds.len() / 2).context("no round was requested")?;
    report.row(&Row {
        phase: "real cloud: VMs requested",
        count: Some(EIGHT.machines()),
        at_once: Some(1),
        seconds: Some(middle.asked),
        budget: Some(Budget::Seconds((middle.path * WITHIN * 100.0).round() / 100.0)),
        is_binding: true,
        ..Row::default()
    })?;
    let least = fewest(&middle.calls, EIGHT.machines());
    let changes = middle.calls.iter().filter(|call| call.method != "GET").count();
    report.note(&format!("rounds, paths (of medians): {}", all.join(", ")))?;
    report.note(&format!(
        "the critical path of the median is {:.2} s: {:.2} times that; {changes} calls changed something, of at least {}; {} only \
         looked, of at least {}",
        middle.path,
        middle.times_the_path(),
        least.changes,
        middle.calls.len() - changes,
        least.looks
    ))
}

/// The calls since this time of the proxy's clock.
fn since(listening: &RecordingProxy, from: u64) -> Vec<RecordedCall> {
    let mut heard = listening.calls();
    heard.retain(|heard| heard.call.at_millis >= from);
    heard
}

fn calls(heard: &[RecordedCall]) -> Vec<LoggedCall> {
    heard.iter().map(|heard| heard.call.clone()).collect()
}

/// Waits until the last server is accepted. Returns the seconds from `begun`.
async fn last_server_accepted(listening: &RecordingProxy, begun: Instant) -> anyhow::Result<f64> {
    let from = listening.millis(begun);
    while begun.elapsed() < PATIENCE {
        let calls = calls(&since(listening, from));
        let servers = calls.iter().filter(|call| {
            call.method == "POST"
                && call.path.ends_with("/servers")
                && call.status.is_some_and(|status| status < 300)
        });
        let answered: Vec<u64> = servers.filter_map(|call| call.answered_millis()).collect();
        if answered.len() >= EIGHT.machines() {
            let last = answered.into_iter().max().unwrap_or_default();
            return Ok(last.saturating_sub(from) as f64 / 1000.0);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let calls = calls(&since(listening, from));
    let refused = calls.iter().rev().find(|call| call.status.is_none_or(|it| it >= 400));
    anyhow::bail!("the cloud has not agreed to all servers; the last refusal is {refused:?}")
}

/// The critical path, as soon as every kind of call was answered. The servers of the real cloud run nothing, so the cluster never becomes
/// ready.
async fn path_of_medians(listening: &RecordingProxy, from: u64) -> anyhow::Result<CriticalPath> {
    let begun = Instant::now();
    loop {
        match CriticalPath::of(&calls(&since(listening, from)), &Times::realistic()) {
            Err(_) if begun.elapsed() < PATIENCE => tokio::time::sleep(LOOK_EVERY).await,
            path => return path,
        }
    }
}

/// Sends a request that must succeed. Returns the id in the answer.
async fn sent(client: &mut Client, path: &str, body: serde_json::Value) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Made {
        uuid: String,
    }
    let (status, answer) = client.ask(&Call::send(Method::POST, path, body)).await?;
    anyhow::ensure!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&answer));
    let made: Made = serde_json::from_slice(&answer)?;
    Ok(made.uuid)
}

/// Deletes a cluster and waits until it is deleted.
async fn delete(client: &mut Client, id: &str) -> anyhow::Result<()> {
    let path = format!("/v1/clusters/{id}");
    client.ask(&Call { method: Method::DELETE, ..Call::get(path.as_str()) }).await?;
    let begun = Instant::now();
    loop {
        let (status, answer) = client.ask(&Call::get(path.as_str())).await?;
        if status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        let reported = String::from_utf8_lossy(&answer);
        anyhow::ensure!(begun.elapsed() < PATIENCE, "it stays: {reported}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
