//! Clusters of clusterd: the time until all servers are requested and until the cluster is ready, compared with the critical path; and
//! memory.

mod chain;
pub(crate) mod cloud;
mod configs;
mod listen;
mod path;
pub(crate) mod real;
pub(crate) mod replay;
mod shape;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use http::Method;
use serde::Deserialize;
use serde_json::json;

use self::cloud::{CloudPace, EmulatedCloud, USER, ZONE};
use self::path::{CriticalPath, fewest};
use self::shape::{ClusterSize, EIGHT, SMALLEST, WITHIN, programs};
use crate::client::{Call, Client};
use crate::daemon::{Daemon, DaemonFolder};
use crate::load::{self, LoadResult};
use crate::process;
use crate::report::{Budget, Report, Row};
use crate::sizes::Sizes;

/// How long clusters may take to become complete.
const PATIENCE: Duration = Duration::from_secs(900);
/// The memory budget of clusterd in MiB, while it creates a hundred clusters of eight servers.
const MOST_MIB: f64 = 100.0;
/// How long clusters rest before their cost is measured. clusterd has looked at each of them within that time.
const REST_TIME: Duration = Duration::from_secs(70);

/// The pause between checks for a hundred clusters. The pause grows with the number of clusters: ten times for a thousand.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A clusterd with an emulated cloud of its own.
struct Site {
    cloud: EmulatedCloud,
    daemon: Daemon,
    _home: DaemonFolder,
}

/// Measures one cluster, many at once, and many at rest; or clusters in a real cloud if the command line names one.
pub(crate) async fn measure(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    if sizes.real.measure(report).await? {
        return Ok(());
    }
    one(report).await?;
    many(sizes, report).await?;
    at_rest(sizes, report).await
}

/// Creates one cluster in an idle cloud. The critical path is computed from the calls of this cluster.
async fn one(report: &mut Report) -> anyhow::Result<()> {
    let site = Site::start(CloudPace::Realistic).await?;
    let made = site.make(1, 1, EIGHT).await?;
    let calls = site.cloud.calls().await?;
    let path = CriticalPath::of(&calls, &site.cloud.times().await?)?;
    site.tell("1 cluster", (&made, path), report).await?;

    let (changes, all) = (calls.iter().filter(|call| call.method != "GET").count(), calls.len());
    let least = fewest(&calls, EIGHT.machines());
    report.note(&format!(
        "{changes} calls changed something, of at least {}; {} only looked, of at least {}",
        least.changes,
        all - changes,
        least.looks
    ))?;
    let refused: Vec<_> =
        calls.iter().filter(|call| call.status.is_none_or(|it| it >= 400)).collect();
    report.note(&format!("{} calls were answered by an error", refused.len()))?;
    site.end().await
}

/// Creates many clusters at once, and measures the memory of clusterd during and after that. So many clusters keep this host busy, so their
/// critical path is measured instead of computed: a client that does nothing else makes the same calls.
async fn many(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let count = sizes.clusters;
    let name = format!("{count} clusters");
    let path = replayed(&name, count, report).await?;
    let site = Site::start(CloudPace::Realistic).await?;
    let cpu = process::cpu(site.cloud.pid())?;
    let made = site.make(count, sizes.clients, EIGHT).await?;
    site.tell(&name, (&made, path), report).await?;
    let calls = site.cloud.calls().await?;
    let spent = (process::cpu(site.cloud.pid())? - cpu).as_secs_f64();
    let changes = calls.iter().filter(|call| call.method != "GET").count();
    report.note(&format!(
        "{} calls a cluster, {} of which changed something; the emulated cloud spent {spent:.1} s of CPU",
        calls.len() / count,
        changes / count,
    ))?;

    let (before, cpu) = (Instant::now(), process::cpu(site.daemon.server.pid)?);
    tokio::time::sleep(REST_TIME).await;
    let row = Row {
        phase: &format!("{name}: looked after"),
        count: Some(count),
        seconds: Some(before.elapsed().as_secs_f64()),
        cpu_seconds: Some((process::cpu(site.daemon.server.pid)? - cpu).as_secs_f64()),
        budget: Some(Budget::PeakMib(MOST_MIB)),
        is_binding: true,
        ..site.memory()?
    };
    report.row(&row)?;
    site.upgrade(count, sizes.clients, report).await?;
    site.end().await
}

/// Measures the critical path of this number of clusters at once.
async fn replayed(name: &str, count: usize, report: &mut Report) -> anyhow::Result<CriticalPath> {
    let home = DaemonFolder::for_program("clusterd")?;
    let clouds_yaml = home.path("clouds.yaml");
    let cloud = EmulatedCloud::start(CloudPace::Realistic, &clouds_yaml).await?;
    let cpu = process::cpu(cloud.pid())?;
    let shape = (EIGHT.masters, EIGHT.workers);
    let replayed = replay::replay(&clouds_yaml, count, shape).await?;
    let answered = Instant::now();
    while cloud.joined().await? < count * EIGHT.machines() {
        anyhow::ensure!(answered.elapsed() < PATIENCE, "not all machines of the replay joined");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let ready = replayed.all + answered.elapsed().as_secs_f64();
    let spent = (process::cpu(cloud.pid())? - cpu).as_secs_f64();
    let row = Row {
        phase: &format!("{name}: their calls alone"),
        count: Some(count * EIGHT.machines()),
        at_once: Some(count),
        seconds: Some(replayed.asked),
        cpu_seconds: Some(replayed.cpu),
        ..Row::default()
    };
    report.row(&row)?;
    report.note(&format!(
        "{} calls a cluster, all answered after {:.2} s; all machines had joined after {ready:.2} s; the emulated cloud \
         spent {spent:.1} s of CPU",
        cloud.calls().await?.len() / count,
        replayed.all,
    ))?;
    Ok(CriticalPath { asked: replayed.asked, ready })
}

/// Measures the memory and CPU time of clusterd for clusters that nobody changes.
async fn at_rest(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let count = sizes.resting;
    let site = Site::start(CloudPace::Quick).await?;
    let empty = process::resident_mib(site.daemon.server.pid)?;
    let cpu = process::cpu(site.daemon.server.pid)?;
    let made = site.make(count, sizes.clients, SMALLEST).await?;
    let row = Row {
        phase: "clusters: made, of 2 machines",
        count: Some(count),
        at_once: Some(count),
        seconds: Some(made.seconds()),
        cpu_seconds: Some((process::cpu(site.daemon.server.pid)? - cpu).as_secs_f64()),
        errors: made.errors(),
        ..site.memory()?
    };
    report.row(&row)?;
    if let Some(why) = &made.trouble {
        report.note(&format!("the first cluster that is not complete: {why}"))?;
    }
    let (before, cpu) = (Instant::now(), process::cpu(site.daemon.server.pid)?);
    tokio::time::sleep(REST_TIME).await;
    let row = Row {
        phase: "clusters: at rest",
        count: Some(count),
        seconds: Some(before.elapsed().as_secs_f64()),
        cpu_seconds: Some((process::cpu(site.daemon.server.pid)? - cpu).as_secs_f64()),
        ..site.memory()?
    };
    let more = row.resident_mib.map_or(0.0, |mib| mib - empty) * 1000.0 / count as f64;
    report.row(&row)?;
    report
        .note(&format!("{empty:.1} MiB without clusters, {more:.1} MiB more for 1,000 of them"))?;
    site.end().await
}

/// The result of requesting clusters.
struct Made {
    /// The time of the first request.
    begun: Instant,
    asked: LoadResult,
    /// How long each cluster took from `begun` to complete, as a caller sees it.
    took: BTreeMap<String, Duration>,
    count: usize,
    /// The first error of a cluster that did not become complete.
    trouble: Option<String>,
    cpu: Duration,
}

impl Made {
    fn seconds(&self) -> f64 {
        self.took.values().max().copied().unwrap_or_default().as_secs_f64()
    }

    fn errors(&self) -> usize {
        self.asked.errors + self.count - self.took.len()
    }

    fn quantile_ms(&self, share: f64) -> Option<f64> {
        let mut took: Vec<f64> = self.took.values().map(|it| it.as_secs_f64() * 1000.0).collect();
        took.sort_by(f64::total_cmp);
        LoadResult { took, ..LoadResult::default() }.quantile(share)
    }
}

#[derive(Deserialize)]
struct Listed {
    uuid: String,
    status: String,
    #[serde(default)]
    status_reason: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    clusters: Vec<Listed>,
    next: Option<String>,
}

impl Site {
    async fn start(pace: CloudPace) -> anyhow::Result<Site> {
        let home = DaemonFolder::for_program("clusterd")?;
        let clouds_yaml = home.path("clouds.yaml");
        let cloud = EmulatedCloud::start(pace, &clouds_yaml).await?;
        // Servers get this address in their user data before clusterd listens there.
        let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let sections = format!(
            "[quotas.project]\nclusters = -1\n\
             [cloud]\nclouds_yaml = {clouds_yaml:?}\nname = \"{USER}\"\n\
             [nodes]\nlisten = \"{free}\"\nurl = \"https://{free}/\"\nsource_address = \"any\"\n\
             [kubernetes.versions.\"v1.34.1\"]\n{programs}\
             [kubernetes.versions.\"v1.34.2\"]\n{programs}",
            programs = programs()
        );
        let daemon = home.start(&sections).await?;
        Ok(Site { cloud, daemon, _home: home })
    }

    async fn end(self) -> anyhow::Result<()> {
        self.daemon.stop().await
    }

    /// Requests this number of clusters and waits until they are complete.
    async fn make(&self, count: usize, clients: usize, shape: ClusterSize) -> anyhow::Result<Made> {
        let mut client = self.daemon.server.client().await?;
        template(&mut client, "bench", "v1.34.1").await?;

        let ask = move |number: usize| {
            let body = json!({
                "name": format!("bench-{number}"), "cluster_template_id": "bench",
                "master_count": shape.masters, "node_count": shape.workers,
            });
            Call::send(Method::POST, "/v1/clusters", body)
        };
        self.cloud.forget_calls().await?;
        let (begun, cpu) = (Instant::now(), process::cpu(self.daemon.server.pid)?);
        let asked =
            load::run(self.daemon.server.api, clients.min(count), (0..count).map(ask)).await?;
        let mut made =
            Made { begun, asked, took: BTreeMap::new(), count, trouble: None, cpu: Duration::ZERO };
        // Each check costs the daemon time as well, so many clusters are checked less often.
        let pause = Duration::from_millis(10).max(LOOK_EVERY.mul_f64(count as f64 / 100.0));
        while made.took.len() < count && begun.elapsed() < PATIENCE {
            let all = list(&mut client).await?;
            let now = begun.elapsed();
            for cluster in all.iter().filter(|it| it.status == "CREATE_COMPLETE") {
                made.took.entry(cluster.uuid.clone()).or_insert(now);
            }
            tokio::time::sleep(pause).await;
        }
        made.cpu = process::cpu(self.daemon.server.pid)? - cpu;
        if made.took.len() < count {
            let done: BTreeSet<&String> = made.took.keys().collect();
            let all = list(&mut client).await?;
            let missing = all.iter().find(|it| !done.contains(&it.uuid));
            made.trouble = match missing {
                None => made.asked.first_error.clone(),
                Some(it) => {
                    let shown = client.get(&format!("/v1/clusters/{}", it.uuid)).await?;
                    let shown: Listed = serde_json::from_slice(&shown)?;
                    Some(format!("{}: {}", shown.status, shown.status_reason.unwrap_or_default()))
                }
            };
        }
        Ok(made)
    }

    /// Reports how long the clusters took, compared with the critical path.
    async fn tell(
        &self,
        name: &str,
        (made, path): (&Made, CriticalPath),
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let begun = self.cloud.millis(made.begun);
        let calls = self.cloud.calls().await?;
        let servers: Vec<f64> = calls
            .iter()
            .filter(|call| call.method == "POST" && call.path.ends_with("/servers"))
            .filter_map(|call| Some(call.answered_millis()?.saturating_sub(begun) as f64 / 1000.0))
            .collect();
        let missing = (made.count * EIGHT.machines()).saturating_sub(servers.len());
        let within =
            |seconds: f64| Some(Budget::Seconds((seconds * WITHIN * 100.0).round() / 100.0));
        let asked = servers.iter().copied().fold(0.0, f64::max);
        let phase = format!("{name}: VMs requested");
        let row = Row {
            phase: &phase,
            count: Some(servers.len()),
            at_once: Some(made.count),
            seconds: Some(asked),
            errors: made.asked.errors + missing,
            budget: within(path.asked),
            is_binding: true,
            ..Row::default()
        };
        report.row(&row)?;
        let phase = format!("{name}: ready");
        let row = Row {
            phase: &phase,
            count: Some(made.count),
            at_once: Some(made.count),
            seconds: Some(made.seconds()),
            p50_ms: made.quantile_ms(0.5),
            p99_ms: made.quantile_ms(0.99),
            cpu_seconds: Some(made.cpu.as_secs_f64()),
            errors: made.errors(),
            budget: within(path.ready),
            is_binding: true,
            ..self.memory()?
        };
        report.row(&row)?;
        if let Some(why) = &made.trouble {
            report.note(&format!("the first cluster that is not complete: {why}"))?;
        }
        report.note(&format!(
            "the critical path is {:.2} s, and {:.2} s to ready: {:.2} and {:.2} times that; {} guests have joined",
            path.asked,
            path.ready,
            asked / path.asked,
            made.seconds() / path.ready,
            self.cloud.joined().await?
        ))
    }

    fn memory(&self) -> anyhow::Result<Row<'static>> {
        Ok(Row {
            resident_mib: Some(process::resident_mib(self.daemon.server.pid)?),
            peak_mib: Some(process::peak_mib(self.daemon.server.pid)?),
            ..Row::default()
        })
    }
}

/// Creates a template for clusters of this version of Kubernetes.
async fn template(client: &mut Client, name: &str, version: &str) -> anyhow::Result<()> {
    let template = json!({
        "name": name, "coe": "kubernetes", "image_id": "fedora-coreos", "network_driver": "flannel",
        "external_network_id": "public", "flavor_id": "m1.small", "master_flavor_id": "m1.small",
        "master_lb_enabled": true, "floating_ip_enabled": false,
        "labels": {"dns_zone": ZONE, "master_lb_floating_ip_enabled": "true", "kube_tag": version},
    });
    let made = Call::send(Method::POST, "/v1/clustertemplates", template);
    let (status, answer) = client.ask(&made).await?;
    anyhow::ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&answer));
    Ok(())
}

/// Lists all clusters, page by page.
async fn list(client: &mut Client) -> anyhow::Result<Vec<Listed>> {
    let (mut all, mut path) = (Vec::new(), Some("/v1/clusters?limit=1000".to_owned()));
    while let Some(at) = path {
        let page: Page = serde_json::from_slice(&client.get(&at).await?)?;
        all.extend(page.clusters);
        path = page.next.map(|next| next[next.find("/v1/").unwrap_or(0)..].to_owned());
    }
    Ok(all)
}
