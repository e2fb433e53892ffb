//! The power states of emulated BMCs: read first when the nodes become manageable, then refreshed.

use std::borrow::Cow;
use std::fs;
use std::time::{Duration, Instant};

use bmc_emulator::ReportedPower;
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::api::{drive, timed, uuids};
use crate::client::{Call, Client};
use crate::daemon::{Daemon, DaemonFolder};
use crate::process;
use crate::racks::Racks;
use crate::report::{Budget, Report, Row};
use crate::sizes::Sizes;

/// How long a refresh may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// `conductor.power_sync_every` while refreshes are measured.
const EVERY: Duration = Duration::from_secs(1);

/// The default of `conductor.power_sync_every`.
const REST_EVERY: Duration = Duration::from_secs(60);

/// Enrolls machines, makes them manageable, and measures how soon baremetald knows new power states.
pub(crate) async fn measure(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let mut racks = Racks::start(sizes.bmcs).await?;
    let home = DaemonFolder::new()?;
    let authorities = home.path("authorities.pem");
    fs::write(&authorities, &racks.authorities)?;
    let config = |every: Duration| {
        let every = every.as_secs();
        format!(
            "[bmc]\nca_file = {authorities:?}\nnetworks = [\"127.0.0.0/8\"]\n[conductor]\npower_sync_every = \"{every}s\"\n"
        )
    };

    // A long interval: a refresh during the enrollment would be measured with it.
    racks.power(ReportedPower::Off).await?;
    let daemon = home.start(&config(Duration::from_secs(86_400))).await?;
    let creates: Vec<Call> = racks.nodes.iter().enumerate().map(create).collect();
    let made =
        timed("BMCs: enroll", &daemon.server, sizes.clients, creates.into_iter(), None, report);
    let uuids = uuids(&made.await?)?;
    drive("BMCs: manage", ("manage", "manageable"), &uuids, &daemon.server, sizes.clients, report)
        .await?;
    daemon.stop().await?;

    // A daemon that has just started must log in to every BMC. The budget is for that refresh.
    racks.power(ReportedPower::On).await?;
    let cpu = process::cpu(racks.pid)?;
    let daemon = home.start(&config(EVERY)).await?;
    let first_begins = Instant::now() + EVERY;
    let row = Row {
        phase: "BMCs: refresh, logging in",
        budget: Some(Budget::Seconds(30.0)),
        ..Row::default()
    };
    await_power(row, "power on", first_begins, uuids.len(), &daemon, report).await?;
    let spent = (process::cpu(racks.pid)? - cpu).as_secs_f64();
    report.note(&format!("the emulated BMCs spent {spent:.2} s of CPU meanwhile"))?;

    racks.power(ReportedPower::Off).await?;
    let row = Row { phase: "BMCs: a change noticed", ..Row::default() };
    await_power(row, "power off", Instant::now(), uuids.len(), &daemon, report).await?;
    report.note("the rest of one refresh plus the next one, with sessions already open")?;
    daemon.stop().await?;

    let daemon = home.start(&config(REST_EVERY)).await?;
    rest(uuids.len(), &daemon, report).await?;
    daemon.stop().await
}

/// Measures the CPU time of a daemon that gets no requests and refreshes the power states at the default interval.
async fn rest(count: usize, daemon: &Daemon, report: &mut Report) -> anyhow::Result<()> {
    // The first refresh logs in to every BMC. It is over when the second begins.
    tokio::time::sleep(2 * REST_EVERY).await;
    let (begun, cpu) = (Instant::now(), process::cpu(daemon.server.pid)?);
    tokio::time::sleep(2 * REST_EVERY).await;
    report.row(&Row {
        phase: "BMCs: at rest, two refreshes",
        count: Some(2 * count),
        seconds: Some(begun.elapsed().as_secs_f64()),
        cpu_seconds: Some((process::cpu(daemon.server.pid)? - cpu).as_secs_f64()),
        resident_mib: Some(process::resident_mib(daemon.server.pid)?),
        peak_mib: Some(process::peak_mib(daemon.server.pid)?),
        budget: Some(Budget::CpuPercent(2.0)),
        ..Row::default()
    })
}

/// Waits until all nodes have this power state, and reports how long after `begun` that is.
async fn await_power(
    mut row: Row<'_>,
    power: &str,
    begun: Instant,
    count: usize,
    daemon: &Daemon,
    report: &mut Report,
) -> anyhow::Result<()> {
    let cpu = process::cpu(daemon.server.pid)?;
    let mut client = daemon.server.client().await?;
    let known = loop {
        let known = with_power(&mut client, power).await?;
        if known >= count || begun.elapsed() > PATIENCE {
            break known;
        }
        // Each check costs the daemon time as well.
        tokio::time::sleep(Duration::from_millis(250)).await;
    };
    row.count = Some(known);
    row.seconds = Some(begun.elapsed().as_secs_f64());
    row.errors = count.saturating_sub(known);
    row.cpu_seconds = Some((process::cpu(daemon.server.pid)? - cpu).as_secs_f64());
    row.resident_mib = Some(process::resident_mib(daemon.server.pid)?);
    row.peak_mib = Some(process::peak_mib(daemon.server.pid)?);
    report.row(&row)
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    nodes: Vec<Powered<'a>>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Powered<'a> {
    #[serde(borrow)]
    power_state: Option<Cow<'a, str>>,
}

/// The number of nodes that have this power state in the API.
async fn with_power(client: &mut Client, power: &str) -> anyhow::Result<usize> {
    let mut known = 0;
    let mut path = Some("/v1/nodes?limit=1000&fields=uuid,power_state".to_owned());
    while let Some(at) = path {
        let answer = client.get(&at).await?;
        let page: Page = serde_json::from_slice(&answer)?;
        known +=
            page.nodes.iter().filter(|node| node.power_state.as_deref() == Some(power)).count();
        path = page.next.map(|next| next[next.find("/v1/").unwrap_or(0)..].to_owned());
    }
    Ok(known)
}

fn create((index, (driver, info)): (usize, &(String, serde_json::Value))) -> Call {
    let body = json!({
        "name": format!("machine-{index}"),
        "driver": driver,
        "driver_info": info,
        "resource_class": "baremetal",
    });
    Call::send(Method::POST, "/v1/nodes", body)
}
