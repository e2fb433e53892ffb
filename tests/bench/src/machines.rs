//! Takes emulated machines from powered off to installed: enrolled as racks, inspected, cleaned, deployed.

mod emulated;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(crate) use self::emulated::emulate;
use crate::api::finish;
use crate::client::{Call, Client};
use crate::daemon::{Daemon, DaemonFolder};
use crate::emulation::Emulation;
use crate::load::{self, LoadResult};
use crate::process;
use crate::report::{Report, Row};
use crate::sizes::Sizes;

/// How long all machines together may take for one step.
const PATIENCE: Duration = Duration::from_secs(1800);
/// The number of machines in a rack.
const RACK: usize = 40;
/// The size of the installed image, which each machine loads once from baremetald.
const IMAGE_BYTES: usize = 1 << 20;
/// The size of the boot loader, about that of Debian's `snponly.efi`.
const LOADER_BYTES: usize = 256 << 10;

/// Enrolls machines and installs them step by step, all machines in parallel.
pub(crate) async fn measure(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let home = DaemonFolder::new()?;
    let checksum = write_files(&home, sizes.boot_mib << 20)?;
    let daemon = home.start(&provisioning(&home)).await?;
    let at = &daemon.listeners;
    let provisioning = at.provisioning.context("there is no provisioning listener")?;
    let [dhcp, tftp] = [at.dhcp, at.tftp].map(|at| at.map(|at| at.to_string()).unwrap_or_default());
    let arguments = ["whole-machines".to_owned(), sizes.machines.to_string(), dhcp, tftp];
    let (emulation, hello) = Emulation::start(&arguments).await?;
    let rows: Vec<Value> = serde_json::from_str(&hello)?;

    let begun = Instant::now();
    let cpu = [process::cpu(daemon.server.pid)?, process::cpu(emulation.pid)?];
    let racks = enroll(&rows, &daemon, sizes.clients, report).await?;
    let image = json!({
        "image_source": format!("http://{provisioning}/images/system.raw"),
        "image_os_hash_algo": "sha256", "image_os_hash_value": checksum, "image_disk_format": "raw",
    });
    for (phase, reach, image) in [
        ("machines: inspect", "inspected", json!({})),
        ("machines: clean", "available", json!({})),
        ("machines: deploy", "installed", image),
    ] {
        let goal = json!({"reach": reach, "instance_info": image, "limit": RACK});
        bring_up(phase, &racks, &goal, rows.len(), &daemon, report).await?;
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

/// Enrolls the machines, one rack per request. Returns the names of the racks.
async fn enroll(
    rows: &[Value],
    daemon: &Daemon,
    clients: usize,
    report: &mut Report,
) -> anyhow::Result<Vec<String>> {
    let cpu = process::cpu(daemon.server.pid)?;
    let name = |number: usize| format!("rack-{number}");
    let racks: Vec<&[Value]> = rows.chunks(RACK).collect();
    let calls: Vec<Call> = (0..)
        .zip(&racks)
        .map(|(number, machines)| {
            let body = json!({"name": name(number), "machines": machines});
            Call::send(Method::POST, "/bedplate/v1/racks", body)
        })
        .collect();
    let load = load::run(daemon.server.api, clients, calls.into_iter()).await?;
    let row = Row::of_load("machines: enroll racks of 40", clients, &load);
    finish(Row { count: Some(rows.len()), ..row }, &load, &daemon.server, cpu, report)?;
    Ok((0..racks.len()).map(name).collect())
}

/// Sets this goal for every rack, and waits until its machines have reached the goal.
async fn bring_up(
    phase: &str,
    racks: &[String],
    goal: &Value,
    machines: usize,
    daemon: &Daemon,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (begun, cpu) = (Instant::now(), process::cpu(daemon.server.pid)?);
    let up = |rack: &String| {
        Call::send(Method::PUT, format!("/bedplate/v1/racks/{rack}/up"), goal.clone())
    };
    let calls: Vec<Call> = racks.iter().map(up).collect();
    let mut asked = load::run(daemon.server.api, 1, calls.into_iter()).await?;
    let (there, failure) = arrive(racks, begun, daemon).await?;
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

#[derive(Deserialize)]
struct Rack {
    machines: Vec<Machine>,
}

#[derive(Deserialize)]
struct Machine {
    name: String,
    way: String,
    failure: Option<Value>,
}

/// Waits until every machine has reached the goal or failed. Returns the number of machines that reached it, and one failure.
async fn arrive(
    racks: &[String],
    begun: Instant,
    daemon: &Daemon,
) -> anyhow::Result<(usize, Option<String>)> {
    let mut client = daemon.server.client().await?;
    let (mut there, mut failure) = (0, None);
    for rack in racks {
        let arrived = loop {
            let machines = look(&mut client, rack).await?;
            let on_the_way = |machine: &Machine| matches!(&*machine.way, "next" | "under_way");
            if !machines.iter().any(on_the_way) || begun.elapsed() > PATIENCE {
                break machines;
            }
            // Each check costs the daemon time as well.
            tokio::time::sleep(Duration::from_millis(250)).await;
        };
        there += arrived.iter().filter(|machine| machine.way == "there").count();
        let stuck = arrived.iter().find(|machine| machine.way != "there");
        failure = failure.or(stuck
            .map(|machine| format!("{} is {}: {:?}", machine.name, machine.way, machine.failure)));
    }
    Ok((there, failure))
}

async fn look(client: &mut Client, rack: &str) -> anyhow::Result<Vec<Machine>> {
    let answer = client.get(&format!("/bedplate/v1/racks/{rack}")).await?;
    Ok(serde_json::from_slice::<Rack>(&answer)?.machines)
}

/// Writes stand-ins for the files that machines load, of realistic length. Returns the checksum of the image.
fn write_files(home: &DaemonFolder, boot_bytes: usize) -> anyhow::Result<String> {
    let stand_in = |bytes: usize| (0..bytes).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
    let write = |path: &Path, bytes: &[u8]| {
        fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    for folder in ["loaders", "images"] {
        fs::create_dir(home.path(folder))?;
    }
    for loader in ["undionly.kpxe", "snponly.efi"] {
        write(&home.path("loaders").join(loader), &stand_in(LOADER_BYTES))?;
    }
    write(&home.path("kernel"), &stand_in(boot_bytes * 2 / 5))?;
    write(&home.path("ramdisk"), &stand_in(boot_bytes * 3 / 5))?;
    let mut image = stand_in(IMAGE_BYTES);
    // The boot signature, without which the image is not bootable.
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    write(&home.path("images").join("system.raw"), &image)?;
    Ok(hex::encode(Sha256::digest(&image)))
}

/// The configuration for network boot. Everything else has its default.
fn provisioning(home: &DaemonFolder) -> String {
    let [kernel, ramdisk, loaders, images] =
        ["kernel", "ramdisk", "loaders", "images"].map(|name| home.path(name));
    format!(
        r#"[bmc]
networks = ["127.0.0.0/8"]
[images]
hosts = ["127.0.0.0/8"]
[provisioning]
listen = "127.0.0.1:0"
tftp = "127.0.0.1:0"
kernel = {kernel:?}
ramdisk = {ramdisk:?}
loaders = {loaders:?}
images = {images:?}
[provisioning.dhcp]
listen = "127.0.0.1:0"
server = "127.0.0.1"
prefix = 8
range = "127.1.0.1-127.1.255.254"
"#
    )
}
