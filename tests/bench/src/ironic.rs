//! The same requests to baremetald and to a real Ironic in one run.
//!
//! The table compares the CPU time of one request, because it changes least when the host is busy.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use crate::api::{any_of, change, create, drive, timed, uuids};
use crate::client::Call;
use crate::daemon::{DaemonFolder, Server};
use crate::load;
use crate::process;
use crate::report::{Budget, Report, Row};
use crate::sizes::Sizes;

/// The script that starts a real Ironic.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../real/ironic/ironic.sh");
/// The number of nodes. A list has a page of them.
const ALL: usize = 1000;
/// How much longer one request of Ironic takes. baremetald gets this many times as many requests, because few of them vary more.
const SLOWER: usize = 10;

/// The need of one server: seconds of CPU for each request, or MiB of memory.
struct Cost {
    of: &'static str,
    amount: f64,
    /// How many times as much Ironic has to need.
    budget: f64,
}

/// Measures both services, one after the other, and prints how many times as much Ironic needs.
pub(crate) async fn compare(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let home = DaemonFolder::new()?;
    let daemon = home.start("").await?;
    report.note("baremetald:")?;
    let ours = measure(&daemon.server, sizes, SLOWER, report).await?;
    daemon.stop().await?;

    let ironic = Ironic::start().await?;
    report.note("Ironic:")?;
    let theirs = measure(&ironic.server, sizes, 1, report).await?;
    drop(ironic);

    report.note(
        "Ironic needs this many times as much CPU for a request, and memory, as baremetald:",
    )?;
    for (our, their) in ours.iter().zip(&theirs) {
        let row = Row {
            phase: our.of,
            ratio: Some(their.amount / our.amount),
            budget: Some(Budget::Ratio(our.budget)),
            ..Row::default()
        };
        report.row(&row)?;
    }
    Ok(())
}

/// Sends the requests to one service. `times` multiplies the requests that change no number of nodes.
async fn measure(
    server: &Server,
    sizes: &Sizes,
    times: usize,
    report: &mut Report,
) -> anyhow::Result<Vec<Cost>> {
    let mut costs = Vec::new();
    let mut cost = |of, budget, count: usize, cpu: Duration| {
        costs.push(Cost { of, amount: cpu.as_secs_f64() / count as f64, budget });
    };
    let clients = sizes.clients;

    let before = process::cpu_of_tree(server.pid)?;
    let creates = (0..ALL).map(|index| create("bench", index));
    let made = timed("create", server, clients, creates, None, report).await?;
    cost("create", 120.0, ALL, process::cpu_of_tree(server.pid)? - before);
    let uuids = uuids(&made)?;

    let gets = any_of(&uuids, 1000 * times);
    let patches: Vec<Call> = any_of(&uuids, 300 * times).iter().map(|uuid| change(uuid)).collect();
    let gets: Vec<Call> = gets.iter().map(|uuid| Call::get(format!("/v1/nodes/{uuid}"))).collect();
    let list = |path: &str| vec![Call::get(path); 10 * times];
    for (phase, budget, at_once, calls) in [
        ("get", 150.0, clients, gets),
        ("patch", 200.0, clients, patches),
        ("list of 1,000", 60.0, 1, list("/v1/nodes?limit=1000")),
        ("list of 1,000 in detail", 60.0, 1, list("/v1/nodes/detail?limit=1000")),
    ] {
        let (before, count) = (process::cpu_of_tree(server.pid)?, calls.len());
        timed(phase, server, at_once, calls.into_iter(), None, report).await?;
        cost(phase, budget, count, process::cpu_of_tree(server.pid)? - before);
    }

    let before = process::cpu_of_tree(server.pid)?;
    live(server, sizes, report).await?;
    cost("lifecycle", 200.0, sizes.lives, process::cpu_of_tree(server.pid)? - before);

    let amount = process::shared_mib_of_tree(server.pid)?;
    costs.push(Cost { of: "memory with 1,000 nodes", amount, budget: 10.0 });
    Ok(costs)
}

/// Takes nodes of fake hardware from enroll to active, without cleaning.
async fn live(server: &Server, sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let creates = (0..sizes.lives).map(|index| {
        let mut call = create("life", index);
        if let Some(body) = &mut call.body {
            body["automated_clean"] = json!(false);
        }
        call
    });
    let made = load::run(server.api, sizes.clients, creates).await?;
    let uuids = uuids(&made)?;
    for (phase, target, goal) in [
        ("fake: manage", "manage", "manageable"),
        ("fake: provide", "provide", "available"),
        ("fake: active", "active", "active"),
    ] {
        drive(phase, (target, goal), &uuids, server, sizes.clients, report).await?;
    }
    Ok(())
}

/// A real Ironic of its own. Dropping the value stops it.
struct Ironic {
    server: Server,
    state: PathBuf,
    _folder: TempDir,
}

impl Ironic {
    async fn start() -> anyhow::Result<Ironic> {
        let folder = tempfile::Builder::new().prefix("bedplate-bench-").tempdir()?;
        let state = folder.path().join("ironic");
        let run = script(&state, "up").stderr(Stdio::inherit()).output().await?;
        anyhow::ensure!(run.status.success(), "ironic.sh up ended with {}", run.status);
        let api = address(&run).context("ironic.sh up prints no URL")?;
        let pid = fs::read_to_string(state.join("pid"))?;
        let pid =
            pid.split_whitespace().next().context("ironic.sh recorded no process")?.parse()?;
        let server = Server { api, pid, check_every: Duration::from_millis(250) };
        Ok(Ironic { server, state, _folder: folder })
    }
}

impl Drop for Ironic {
    fn drop(&mut self) {
        let down = script(&self.state, "down").into_std().status();
        if !down.is_ok_and(|status| status.success()) {
            eprintln!("the real Ironic may still run; its state was in {}", self.state.display());
        }
    }
}

fn script(state: &std::path::Path, verb: &str) -> Command {
    let mut command = Command::new(SCRIPT);
    command.arg(verb).env("IRONIC_STATE", state).stdin(Stdio::null());
    command
}

/// The address in the URL that `ironic.sh up` prints.
fn address(run: &Output) -> Option<SocketAddr> {
    let url = String::from_utf8_lossy(&run.stdout);
    url.trim().strip_prefix("http://")?.parse().ok()
}
