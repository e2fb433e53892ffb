//! Writes an image to a disk with the agent's own code, for measurements.
//!
//! Usage: `write_image URL SHA256 DISK SIZE`. The image is raw, optionally compressed. `DISK` is a disk, or a file in its place, of `SIZE`
//! bytes.
#![expect(clippy::print_stdout, reason = "the example prints its measurement")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use agent::disk::device::Device;
use agent::image::{DownloadPolicy, Job, TrustAnchors, write};
use agent::meter::ProgressMeter;
use agent_protocol::ImageInfo;
use anyhow::Context;
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, sha256, disk, size] = &arguments[..] else {
        anyhow::bail!("usage: write_image URL SHA256 DISK SIZE");
    };
    let image: ImageInfo = serde_json::from_value(json!({
        "id": "image", "urls": [url], "disk_format": "raw", "os_hash_algo": "sha256", "os_hash_value": sha256,
    }))?;
    rustls::crypto::ring::default_provider().install_default().ok().context("no TLS")?;
    // A runtime of the same kind as the agent's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let begun = Instant::now();
    let job = Job {
        image,
        partitions: None,
        config_drive: None,
        disk_name: disk.clone(),
        device: Device::open(Path::new(disk), size.parse()?, 512)?,
        anchors: TrustAnchors::default(),
        patience: DownloadPolicy::default(),
    };
    let meter = Arc::new(ProgressMeter::default());
    runtime.block_on(write(job, meter.clone()))?;
    let (bytes, seconds) = (meter.read().done_bytes, begun.elapsed().as_secs_f64());
    println!("{bytes} bytes in {seconds:.3} s: {:.0} MB/s", bytes as f64 / seconds / 1e6);
    Ok(())
}
