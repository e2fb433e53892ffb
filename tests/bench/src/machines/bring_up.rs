//! Racks of machines and their service: the files that machines load, the enrolment, the goal, the wait for the machines.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::api::finish;
use crate::client::{Call, Client};
use crate::daemon::{Daemon, DaemonFolder};
use crate::load::{self, LoadResult};
use crate::process;
use crate::report::{Report, Row};

/// The number of machines in a rack.
pub(super) const RACK: usize = 40;
/// The size of the installed image, which each machine loads once from baremetald.
const IMAGE_BYTES: usize = 1 << 20;
/// The size of the boot loader, about that of Debian's `snponly.efi`.
const LOADER_BYTES: usize = 256 << 10;

/// The `instance_info` with the image that the daemon serves.
pub(super) fn image_of(daemon: &Daemon, checksum: &str) -> anyhow::Result<Value> {
    let at = daemon.listeners.provisioning.context("there is no provisioning listener")?;
    Ok(json!({
        "image_source": format!("http://{at}/images/system.raw"),
        "image_os_hash_algo": "sha256", "image_os_hash_value": checksum, "image_disk_format": "raw",
    }))
}

/// Enrolls the machines, one rack per request. Returns the names of the racks.
pub(super) async fn enroll(
    phase: &str,
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
    let row = Row::of_load(phase, clients, &load);
    finish(Row { count: Some(rows.len()), ..row }, &load, &daemon.server, cpu, report)?;
    Ok((0..racks.len()).map(name).collect())
}

/// Sets this goal for every rack.
pub(super) async fn up(
    racks: &[String],
    goal: &Value,
    daemon: &Daemon,
) -> anyhow::Result<LoadResult> {
    let up = |rack: &String| {
        Call::send(Method::PUT, format!("/bedplate/v1/racks/{rack}/up"), goal.clone())
    };
    let calls: Vec<Call> = racks.iter().map(up).collect();
    load::run(daemon.server.api, 1, calls.into_iter()).await
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

/// How long to wait for machines.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    pub(super) begun: Instant,
    pub(super) patience: Duration,
    /// The pause between two looks at a rack. Each look costs the daemon time as well.
    pub(super) look_every: Duration,
}

/// Waits until every machine has reached the goal or failed. Returns the number of machines that reached it, and one failure.
pub(super) async fn arrive(
    racks: &[String],
    arrival: Arrival,
    daemon: &Daemon,
) -> anyhow::Result<(usize, Option<String>)> {
    let mut client = daemon.server.client().await?;
    let (mut there, mut failure) = (0, None);
    for rack in racks {
        let arrived = loop {
            let machines = look(&mut client, rack).await?;
            let on_the_way = |machine: &Machine| matches!(&*machine.way, "next" | "under_way");
            if !machines.iter().any(on_the_way) || arrival.begun.elapsed() > arrival.patience {
                break machines;
            }
            tokio::time::sleep(arrival.look_every).await;
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
pub(super) fn write_files(home: &DaemonFolder, boot_bytes: usize) -> anyhow::Result<String> {
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
pub(super) fn provisioning(home: &DaemonFolder) -> String {
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
