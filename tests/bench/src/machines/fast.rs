//! Takes machines that are 100 times as fast as real ones through one step after the other, all in parallel.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use super::bring_up::{Arrival, RACK, arrive, enroll, image_of, provisioning, up, write_files};
use super::emulated::{Hello, MachinePace, MachineSet};
use crate::api::finish;
use crate::daemon::{Daemon, DaemonFolder};
use crate::load::LoadResult;
use crate::process;
use crate::report::{Report, Row};
use crate::sizes::Sizes;

/// How long all machines together may take for one step.
const PATIENCE: Duration = Duration::from_secs(1800);
/// The pause between two looks at a rack.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Enrolls machines and installs them step by step, all machines in parallel.
pub(super) async fn measure(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let home = DaemonFolder::new()?;
    let checksum = write_files(&home, sizes.boot_mib << 20)?;
    let daemon = home.start(&provisioning(&home)).await?;
    let at = &daemon.listeners;
    let dhcp = at.dhcp.context("there is no DHCP server")?;
    let tftp = at.tftp.context("there is no TFTP server")?;
    let set = MachineSet { count: sizes.machines, witnesses: 0, pace: MachinePace::Fast };
    let (emulation, Hello { rows, .. }) = set.start(dhcp, tftp).await?;

    let begun = Instant::now();
    let cpu = [process::cpu(daemon.server.pid)?, process::cpu(emulation.pid)?];
    let phase = "machines: enroll racks of 40";
    let racks = enroll(phase, &rows, &daemon, sizes.clients, report).await?;
    for (phase, reach, image) in [
        ("machines: inspect", "inspected", json!({})),
        ("machines: clean", "available", json!({})),
        ("machines: deploy", "installed", image_of(&daemon, &checksum)?),
    ] {
        let goal = json!({"reach": reach, "instance_info": image, "limit": RACK});
        step(phase, &racks, &goal, rows.len(), &daemon, report).await?;
    }
    let row = Row {
        phase: "machines: enroll to active",
        count: Some(rows.len()),
        at_once: Some(rows.len()),
        seconds: Some(begun.elapsed().as_secs_f64()),
        ..Row::default()
    };
    finish(row, &LoadResult::default(), &daemon.server, cpu[0], report)?;
    let spent = (process::cpu(emulation.pid)? - cpu[1]).as_secs_f64();
    let loaded = sizes.boot_mib;
    report.note(&format!(
        "the emulated machines spent {spent:.2} s of CPU meanwhile; each loaded {loaded} MiB at each boot"
    ))?;
    daemon.stop().await
}

/// Sets this goal for every rack, and waits until its machines have reached the goal.
async fn step(
    phase: &str,
    racks: &[String],
    goal: &Value,
    machines: usize,
    daemon: &Daemon,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (begun, cpu) = (Instant::now(), process::cpu(daemon.server.pid)?);
    let mut asked = up(racks, goal, daemon).await?;
    let patience = Arrival { begun, patience: PATIENCE, look_every: LOOK_EVERY };
    let (there, failure) = arrive(racks, patience, daemon).await?;
    asked.first_error = asked.first_error.or(failure);
    let row = Row {
        phase,
        count: Some(machines),
        at_once: Some(machines),
        seconds: Some(begun.elapsed().as_secs_f64()),
        errors: machines.saturating_sub(there) + asked.errors,
        ..Row::default()
    };
    finish(row, &asked, &daemon.server, cpu, report)
}
