//! Writes an image to a disk while the image is downloaded.
//!
//! Four steps run at the same time, connected by short queues: the download, the checksum of the downloaded bytes, the decompression, and
//! the writing. No step stores the whole image. [`GuardedDisk`] holds back both ends of the disk until the checksum matches, so a wrong
//! image never boots.

mod checksum;
mod chunks;
mod download;
mod error;
mod layout;
mod mke2fs;
mod output;
mod partition_error;
mod partitions;
pub mod qcow2;
mod qcow2_stream;
mod root_files;
mod unpack;

use std::sync::Arc;

use agent_protocol::{DiskFormat, ImageInfo};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

pub use self::download::{DownloadPolicy, TrustAnchors};
use self::download::{Opened, Source};
pub use self::error::ImageError;
use self::layout::Layout;
use self::output::Output;
pub use self::partition_error::PartitionError;
pub use self::partitions::PartitionImage;
use crate::disk::device::Device;
use crate::disk::guard::GuardedDisk;
use crate::disk::{config_drive, gpt};
use crate::meter::ProgressMeter;

/// The number of downloaded chunks in a queue; a chunk has at most some hundred KiB.
const QUEUE: usize = 32;

/// An image to write, with its disk.
pub struct Job {
    pub image: ImageInfo,
    /// The partitions to make, if the image is one of a file system.
    pub partitions: Option<PartitionImage>,
    /// The content of the config drive, uncompressed.
    pub config_drive: Option<Vec<u8>>,
    /// The disk's name in the inventory.
    pub disk_name: String,
    pub device: Device,
    /// The certificate authorities to trust for `https`.
    pub anchors: TrustAnchors,
    /// Timeouts and retries of the download.
    pub patience: DownloadPolicy,
}

/// Writes the image, then the config drive, then makes the disk bootable. Returns the ids of the partitions that were made for a partition
/// image.
pub async fn write(
    job: Job,
    progress: Arc<ProgressMeter>,
) -> Result<Map<String, Value>, ImageError> {
    let Job { image, partitions, config_drive, disk_name, device, anchors, patience } = job;
    let expected = checksum::Expected::of(&image)?;
    let source = Source::new(&image, &anchors, patience)?;
    let range = match &partitions {
        Some(partitions) => {
            partitions.check(&device, &disk_name)?;
            partitions.range()
        }
        None => 0..device.size(),
    };
    let target = match &partitions {
        Some(_) => format!("the root partition of {disk_name}"),
        None => disk_name.clone(),
    };
    let opened = source.open().await?;
    let start = opened.peek().await?;
    let packing = unpack::Compression::of(start.bytes());
    let layout = plan(&image, packing, &start, &source, range.end - range.start, &target).await?;
    if let Some(bytes) = layout.disk_bytes() {
        progress.expect(bytes);
    }

    let name = disk_name.clone();
    let disk = run_blocking(move || GuardedDisk::guard(device)).await;
    let mut disk = disk.map_err(|source| ImageError::Disk { disk: name.clone(), source })?;

    let (to_hash, hash_queue) = mpsc::channel(QUEUE);
    let (to_unpack, unpack_queue) = mpsc::channel(QUEUE);
    let hashing = std::thread::spawn(move || expected.check(hash_queue));
    let writing = std::thread::spawn(move || {
        let written = output::run(&mut disk, range, &progress, |output: &mut Output<'_>| {
            unpack::run(layout, packing, unpack_queue, output)
        });
        (disk, written)
    });

    let sent = source.stream(start, [to_hash, to_unpack]).await;
    let joined = run_blocking(move || (hashing.join(), writing.join())).await;
    let (Ok(hashed), Ok((disk, written))) = joined else {
        return Err(ImageError::Panicked);
    };

    // One failure causes others. The disk's error explains best, then the network's, then the checksum's, then the decompressor's.
    match (written, sent, hashed) {
        (Err(error @ (ImageError::Disk { .. } | ImageError::DiskFull { .. })), ..) => {
            return Err(error.on(&target));
        }
        (_, Err(error), _) => return Err(error),
        (_, Ok(()), Err(error)) => return Err(error),
        (Err(error), Ok(()), Ok(())) => return Err(error),
        (Ok(()), Ok(()), Ok(())) => {}
    }

    run_blocking(move || finish(disk, partitions, config_drive, &disk_name)).await
}

/// Makes the disk with its verified image bootable.
fn finish(
    mut disk: GuardedDisk,
    partitions: Option<PartitionImage>,
    config_drive: Option<Vec<u8>>,
    disk_name: &str,
) -> Result<Map<String, Value>, ImageError> {
    let failed = |source| ImageError::Disk { disk: disk_name.to_owned(), source };
    let mut ids = Map::new();
    match (partitions, config_drive) {
        (Some(partitions), drive) => {
            (disk, ids) = partitions.finish(disk, drive.as_deref(), disk_name)?;
        }
        (None, Some(contents)) => {
            config_drive::write(&mut disk, &contents)?;
        }
        (None, None) => gpt::move_backup_to_end(&mut disk).map_err(failed)?,
    }
    disk.release().map_err(failed)?;
    Ok(ids)
}

/// Determines the layout from the first bytes and, for qcow2, from the image's tables. Refuses an image that does not fit or cannot be
/// trusted.
async fn plan(
    image: &ImageInfo,
    packing: unpack::Compression,
    start: &Opened,
    source: &Source,
    disk_size: u64,
    disk_name: &str,
) -> Result<Layout, ImageError> {
    let looks_like_qcow2 = start.bytes().starts_with(&qcow2::MAGIC);
    let layout = match (image.disk_format, looks_like_qcow2) {
        (DiskFormat::Raw, false) => Layout::Linear(packing.unpacked_bytes(start)),
        (DiskFormat::Raw, true) => return Err(ImageError::NotRaw),
        (DiskFormat::Qcow2, false) => return Err(ImageError::NotQcow2),
        (DiskFormat::Qcow2, true) => Layout::Qcow2(Box::new(
            qcow2_stream::read_map(source, start, disk_size, disk_name).await?,
        )),
    };
    match layout.disk_bytes() {
        Some(needed) if needed > disk_size => {
            Err(ImageError::DiskFull { disk: disk_name.to_owned(), needed, size: disk_size })
        }
        Some(_) | None => Ok(layout),
    }
}

/// Runs blocking work on a thread where it does not delay other tasks.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(gone) => std::panic::resume_unwind(gone.into_panic()),
    }
}
