//! The phases that need no emulated machines: start, single nodes, lists, provisioning of fake hardware.

use std::time::{Duration, Instant};

use anyhow::Context;
use http::Method;
use rand::seq::IndexedRandom;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::Call;
use crate::daemon::{DaemonFolder, Server};
use crate::load::{self, LoadResult, walk};
use crate::process;
use crate::report::{Budget, Report, Row};
use crate::sizes::Sizes;

/// How long nodes may take to reach a provision state.
const PATIENCE: Duration = Duration::from_secs(900);
/// How many starts are measured.
const STARTS: usize = 5;

#[derive(Deserialize)]
struct Made {
    uuid: String,
}

/// Measures the start of baremetald and its memory at rest.
pub(crate) async fn start(report: &mut Report) -> anyhow::Result<()> {
    let home = DaemonFolder::new()?;
    let first = home.start("").await?;
    let row = Row {
        phase: "start, first ever",
        count: Some(1),
        seconds: Some(first.ready_after.as_secs_f64()),
        cpu_seconds: Some(process::cpu(first.server.pid)?.as_secs_f64()),
        resident_mib: Some(process::resident_mib(first.server.pid)?),
        peak_mib: Some(process::peak_mib(first.server.pid)?),
        budget: Some(Budget::Seconds(0.1)),
        ..Row::default()
    };
    report.row(&row)?;
    first.stop().await?;

    let mut took = Vec::new();
    for _ in 0..STARTS {
        let daemon = home.start("").await?;
        took.push(daemon.ready_after.as_secs_f64());
        daemon.stop().await?;
    }
    took.sort_by(f64::total_cmp);
    report.note(&format!("started again: {took:.3?} s"))?;

    let daemon = home.start("").await?;
    let before = process::cpu(daemon.server.pid)?;
    let rest = Duration::from_secs(5);
    tokio::time::sleep(rest).await;
    let row = Row {
        phase: "idle",
        seconds: Some(rest.as_secs_f64()),
        cpu_seconds: Some((process::cpu(daemon.server.pid)? - before).as_secs_f64()),
        resident_mib: Some(process::resident_mib(daemon.server.pid)?),
        peak_mib: Some(process::peak_mib(daemon.server.pid)?),
        budget: Some(Budget::ResidentMib(40.0)),
        ..Row::default()
    };
    report.row(&row)?;
    daemon.stop().await
}

/// Measures how fast nodes are created, shown, listed and changed.
pub(crate) async fn nodes(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let home = DaemonFolder::new()?;
    let daemon = home.start("").await?;
    let (clients, requests) = (sizes.clients, sizes.requests);

    let creates = (0..sizes.nodes).map(|index| create("bench", index));
    let made = timed("create", &daemon.server, clients, creates, Some(1500.0), report).await?;
    let uuids = uuids(&made)?;

    let some = any_of(&uuids, requests);
    let gets = some.into_iter().map(|uuid| Call::get(format!("/v1/nodes/{uuid}")));
    timed("get by uuid", &daemon.server, clients, gets, Some(5000.0), report).await?;

    let count = sizes.nodes;
    let gets = (0..requests)
        .map(move |_| Call::get(format!("/v1/nodes/bench-{}", rand::random_range(0..count))));
    timed("get by name", &daemon.server, clients, gets, Some(5000.0), report).await?;

    for (phase, path) in [
        ("list, pages of 1000", "/v1/nodes?limit=1000"),
        ("list in detail, of 1000", "/v1/nodes/detail?limit=1000"),
    ] {
        list(phase, path, &daemon.server, sizes.nodes, report).await?;
    }

    let patches = any_of(&uuids, requests.min(sizes.nodes)).into_iter().map(|uuid| change(&uuid));
    timed("patch", &daemon.server, clients, patches, None, report).await?;

    let row = Row {
        phase: "memory with these nodes",
        count: Some(sizes.nodes),
        resident_mib: Some(process::resident_mib(daemon.server.pid)?),
        peak_mib: Some(process::peak_mib(daemon.server.pid)?),
        budget: Some(Budget::ResidentMib(120.0)),
        ..Row::default()
    };
    report.row(&row)?;
    daemon.stop().await
}

/// Measures nodes of fake hardware from enroll to active.
pub(crate) async fn lives(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let home = DaemonFolder::new()?;
    let daemon = home.start("").await?;
    let creates = (0..sizes.lives).map(|index| create("life", index));
    let made = load::run(daemon.server.api, sizes.clients, creates).await?;
    let uuids = uuids(&made)?;
    let (begun, cpu) = (Instant::now(), process::cpu(daemon.server.pid)?);
    for (phase, target, goal) in [
        ("fake: manage", "manage", "manageable"),
        ("fake: provide", "provide", "available"),
        ("fake: active", "active", "active"),
    ] {
        drive(phase, (target, goal), &uuids, &daemon.server, sizes.clients, report).await?;
    }
    let row = Row {
        phase: "fake: enroll to active",
        count: Some(uuids.len()),
        at_once: Some(sizes.clients),
        seconds: Some(begun.elapsed().as_secs_f64()),
        cpu_seconds: Some((process::cpu(daemon.server.pid)? - cpu).as_secs_f64()),
        resident_mib: Some(process::resident_mib(daemon.server.pid)?),
        peak_mib: Some(process::peak_mib(daemon.server.pid)?),
        ..Row::default()
    };
    report.row(&row)?;
    daemon.stop().await
}

/// Requests the provision state `target` for all nodes and waits until all nodes reach `goal`. The latencies are those of the requests.
pub(crate) async fn drive(
    phase: &str,
    (target, goal): (&'static str, &str),
    uuids: &[String],
    server: &Server,
    clients: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (begun, cpu) = (Instant::now(), process::cpu_of_tree(server.pid)?);
    let call = |uuid: &String| {
        let path = format!("/v1/nodes/{uuid}/states/provision");
        Call::send(Method::PUT, path, json!({ "target": target }))
    };
    let calls: Vec<Call> = uuids.iter().map(call).collect();
    let asked = load::run(server.api, clients, calls.into_iter()).await?;
    let filter = format!("provision_state={goal}");
    let missing = arrive(&filter, uuids.len(), server).await?;
    let mut row = Row::of_load(phase, clients, &asked);
    row.seconds = Some(begun.elapsed().as_secs_f64());
    row.errors += missing;
    finish(row, &asked, server, cpu, report)
}

/// Waits until `count` nodes pass the filter. Returns how many nodes still do not when `PATIENCE` is over.
async fn arrive(filter: &str, count: usize, server: &Server) -> anyhow::Result<usize> {
    let mut client = server.client().await?;
    let begun = Instant::now();
    let pause = if count > 1000 { Duration::from_millis(500) } else { server.check_every };
    loop {
        let path = format!("/v1/nodes?limit=1000&fields=uuid&{filter}");
        let (there, _) = walk(&mut client, &path).await?;
        if there >= count || begun.elapsed() > PATIENCE {
            return Ok(count.saturating_sub(there));
        }
        tokio::time::sleep(pause).await;
    }
}

/// Sends requests and reports their timing. Returns the answers.
pub(crate) async fn timed(
    phase: &str,
    server: &Server,
    clients: usize,
    calls: impl Iterator<Item = Call> + 'static,
    least_per_second: Option<f64>,
    report: &mut Report,
) -> anyhow::Result<LoadResult> {
    let cpu = process::cpu_of_tree(server.pid)?;
    let load = load::run(server.api, clients, calls).await?;
    let budget = least_per_second.map(Budget::PerSecond);
    let row = Row { budget, ..Row::of_load(phase, clients, &load) };
    finish(row, &load, server, cpu, report)?;
    Ok(load)
}

pub(crate) async fn list(
    phase: &str,
    path: &str,
    server: &Server,
    count: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut client = server.client().await?;
    let (begun, cpu) = (Instant::now(), process::cpu_of_tree(server.pid)?);
    let (listed, took) = walk(&mut client, path).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let errors = count.abs_diff(listed);
    let pages = LoadResult { seconds, took, errors, ..LoadResult::default() };
    let row = Row { count: Some(listed), ..Row::of_load(phase, 1, &pages) };
    finish(row, &pages, server, cpu, report)
}

/// Adds the CPU time that the server spent beyond `cpu`, and reports the row.
pub(crate) fn finish(
    mut row: Row,
    load: &LoadResult,
    server: &Server,
    cpu: Duration,
    report: &mut Report,
) -> anyhow::Result<()> {
    row.cpu_seconds = Some((process::cpu_of_tree(server.pid)? - cpu).as_secs_f64());
    row.resident_mib = Some(process::resident_mib_of_tree(server.pid)?);
    row.peak_mib = Some(process::peak_mib_of_tree(server.pid)?);
    report.row(&row)?;
    match &load.first_error {
        Some(error) => report.note(&format!("the first error: {error}")),
        None => Ok(()),
    }
}

/// The ids of all created nodes. Fails unless every request succeeded.
pub(crate) fn uuids(load: &LoadResult) -> anyhow::Result<Vec<String>> {
    if let Some(error) = &load.first_error {
        anyhow::bail!("{} nodes were not created: {error}", load.errors);
    }
    let uuid = |answer| serde_json::from_slice::<Made>(answer).map(|made| made.uuid);
    load.made.iter().map(|answer| uuid(answer)).collect::<Result<_, _>>().context("no uuid")
}

pub(crate) fn any_of(uuids: &[String], count: usize) -> Vec<String> {
    let mut random = rand::rng();
    (0..count).filter_map(|_| uuids.choose(&mut random).cloned()).collect()
}

/// The request that changes one value of a node's `extra`.
pub(crate) fn change(uuid: &str) -> Call {
    let patch = json!([{ "op": "add", "path": "/extra/bench", "value": "changed" }]);
    Call::send(Method::PATCH, format!("/v1/nodes/{uuid}"), patch)
}

/// The request for a node of fake hardware, with the fields that other implementations were measured with.
pub(crate) fn create(family: &str, index: usize) -> Call {
    let body: Value = json!({
        "name": format!("{family}-{index}"),
        "driver": "fake-hardware",
        "resource_class": "baremetal",
        "properties": { "cpus": "8", "memory_mb": "32768", "local_gb": "500", "cpu_arch": "x86_64" },
        "driver_info": { "fake_username": "x", "note": "bench" },
        "extra": { "rack": (index % 40).to_string() },
    });
    Call::send(Method::POST, "/v1/nodes", body)
}
