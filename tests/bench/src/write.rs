//! How fast the agent writes an image to a disk, compared with `curl` and `dd` for the same server and the same disk.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::Context;
use rand::Rng;
use sha2::{Digest, Sha256};
use tokio::process::Command;

use crate::process;
use crate::report::{Budget, Report, Row};
use crate::sizes::Sizes;

/// How often each way is measured, in turns. The median counts.
const ROUNDS: usize = 5;
const MIB: usize = 1 << 20;
/// How much longer the disk is than the image, in bytes, because real disks are longer.
const EXTRA_DISK_BYTES: u64 = 64 << 20;

/// A way to write an image to a disk.
struct WriteMethod {
    phase: &'static str,
    command: Vec<String>,
    runs: Vec<Run>,
}

#[derive(Clone, Copy)]
struct Run {
    seconds: f64,
    cpu_seconds: f64,
}

/// Measures all ways in turns.
pub(crate) async fn measure(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let Some(writer) = &sizes.writer else {
        let what =
            "SKIPPED: write needs --writer \"$(images/ramdisk/agent.sh --example write_image)\"";
        return report.note(what);
    };
    // The folder must be on a disk: the default folder for temporary files may be in memory.
    let folder = tempfile::Builder::new().prefix("bedplate-bench-").tempdir_in(&sizes.disk)?;
    let (image, disk) = (folder.path().join("image"), folder.path().join("disk"));
    let checksum = make_image(&image, &disk, sizes.image_mib)?;
    let url = format!("http://{}/image", serve(image)?);
    let size = ((sizes.image_mib * MIB) as u64 + EXTRA_DISK_BYTES).to_string();

    let disk = disk.display();
    let dd =
        format!("dd of={disk} bs=4M iflag=fullblock oflag=direct conv=notrunc,fsync status=none");
    let shell =
        |script: String| ["bash", "-o", "pipefail", "-c", &script].map(str::to_owned).to_vec();
    let mut ways = [
        ("write: curl | dd", shell(format!("curl -sf {url} | {dd}"))),
        (
            "write: curl | sha256sum, dd",
            shell(format!("curl -sf {url} | tee >(sha256sum >/dev/null) | {dd}")),
        ),
        (
            "write: the agent",
            vec![writer.display().to_string(), url.clone(), checksum, disk.to_string(), size],
        ),
    ]
    .map(|(phase, command)| WriteMethod { phase, command, runs: Vec::new() });
    for _ in 0..ROUNDS {
        for way in &mut ways {
            way.runs.push(run(&way.command).await?);
        }
    }

    let pace = |way: &WriteMethod| sizes.image_mib as f64 / median(&way.runs).seconds;
    let least = (pace(&ways[0]) * 0.8).round();
    for way in &ways {
        let Run { seconds, cpu_seconds } = median(&way.runs);
        let row = Row {
            phase: way.phase,
            count: Some(sizes.image_mib),
            seconds: Some(seconds),
            cpu_seconds: Some(cpu_seconds),
            budget: (way.phase == "write: the agent").then_some(Budget::PerSecond(least)),
            ..Row::default()
        };
        report.row(&row)?;
    }
    let share = pace(&ways[2]) / pace(&ways[0]) * 100.0;
    report.note(&format!(
        "in MiB, medians of {ROUNDS} in turns; the CPU is that of the programs; the agent reaches {share:.0} % of dd"
    ))
}

/// Writes an image without zeros, and a slightly longer file in place of a disk. Returns the checksum of the image.
fn make_image(image: &Path, disk: &Path, mib: usize) -> anyhow::Result<String> {
    let (mut image, mut disk) = (File::create(image)?, File::create(disk)?);
    let (mut piece, mut random, mut checksum) = (vec![0; MIB], rand::rng(), Sha256::new());
    for _ in 0..mib {
        random.fill_bytes(&mut piece);
        checksum.update(&piece);
        image.write_all(&piece)?;
        disk.write_all(&piece)?;
    }
    disk.write_all_at(&vec![0xaa; EXTRA_DISK_BYTES as usize], (mib * MIB) as u64)?;
    image.sync_all()?;
    disk.sync_all()?;
    Ok(hex::encode(checksum.finalize()))
}

/// Serves a file for every request until the process ends. Returns the address.
///
/// The kernel copies the file from its page cache, so the server takes little CPU time from the measured processes.
fn serve(file: PathBuf) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let at = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that closes the connection early reports that itself.
            let _ = stream.and_then(|stream| answer(stream, &file));
        }
    });
    Ok(at)
}

fn answer(mut stream: TcpStream, file: &Path) -> io::Result<()> {
    let mut head = BufReader::new(stream.try_clone()?).lines();
    while head.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    io::copy(&mut file, &mut stream)?;
    Ok(())
}

async fn run(command: &[String]) -> anyhow::Result<Run> {
    let (program, arguments) = command.split_first().context("no command")?;
    let (begun, cpu) = (Instant::now(), process::cpu_of_children()?);
    let mut child = Command::new(program);
    let child = child.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let status = child.status().await.with_context(|| format!("cannot run {program}"))?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Run { seconds, cpu_seconds: (process::cpu_of_children()? - cpu).as_secs_f64() })
}

fn median(runs: &[Run]) -> Run {
    let mut runs = runs.to_vec();
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    runs[runs.len() / 2]
}
