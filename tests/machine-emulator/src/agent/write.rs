//! Writes an image: the download and the checksum are real, the data is not stored.

use std::io::{self, Write};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::write::MultiGzDecoder;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256, Sha512};
use url::Url;

use super::outcome::{Failure, Progress};
use crate::causes::chain;
use crate::disk::{Content, can_be_booted};
use crate::fetch;
use crate::machine::Machine;
use crate::rack_context::RackContext;

/// The minimum size of a root disk, also ironic-python-agent's default.
const LEAST_DISK: u64 = 4 << 30;
/// The first sector, which has the boot signature.
const HEAD: usize = 512;
/// How often an interrupted download is tried again, and the pause before: `image_download_connection_retries` and
/// `image_download_connection_retry_interval` of ironic-python-agent (`ironic_python_agent/config.py`).
const RETRIES: u32 = 9;
const RETRY_EVERY: Duration = Duration::from_secs(10);
/// The shortest pause, because a service that was killed starts no faster on a busy computer.
const LEAST_RETRY: Duration = Duration::from_secs(1);
/// The pause between two looks at whether the image is still held.
const HELD_PAUSE: Duration = Duration::from_millis(10);

/// Writes the image that `arguments` name; returns the disk's name.
pub(super) async fn image(
    machine: &Machine,
    world: &RackContext,
    arguments: &Map<String, Value>,
    hints: &Map<String, Value>,
    report: impl Fn(Progress),
) -> Result<String, Failure> {
    let info = arguments.get("image_info").cloned().unwrap_or_default();
    let text = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if text("disk_format") != "raw" {
        let why = "This emulated agent writes raw images only; a real agent writes qcow2 too.";
        return Err(Failure::new("ImageFormatError", why));
    }
    let url = info.pointer("/urls/0").and_then(Value::as_str).unwrap_or_default();
    let url = Url::parse(url)
        .map_err(|_| Failure::new("ImageDownloadError", format!("{url} is not a URL.")))?;
    let is_partition = text("image_type") == "partition";
    // ironic-python-agent reads each of these (`extensions/standby.py`, `_write_partition_image`).
    let needed = ["root_mb", "swap_mb", "ephemeral_mb", "ephemeral_format", "preserve_ephemeral"];
    if let Some(missing) = needed.iter().find(|key| is_partition && info.get(**key).is_none()) {
        return Err(Failure::new("AgentError", format!("The image has no {missing}.")));
    }
    let algorithm = text("os_hash_algo");
    let place = root_disk(machine, hints)?;
    let mut tries = 0;
    let (disk, found) = loop {
        let checksum = Checksum::of(&algorithm)?;
        match download(machine, world, &url, place, checksum, &report).await {
            Ok(written) => break written,
            Err(Interrupted::ForGood(failure)) => return Err(failure),
            Err(Interrupted::ForNow(failure)) if tries == RETRIES => return Err(failure),
            Err(Interrupted::ForNow(_)) => tries += 1,
        }
        tokio::time::sleep(world.pace.of(RETRY_EVERY).max(LEAST_RETRY)).await;
    };
    tokio::time::sleep(world.pace.image_write(disk.written)).await;
    let (bay, wanted) = (place.0, text("os_hash_value"));
    if !found.eq_ignore_ascii_case(&wanted) {
        let why = format!(
            "The image's checksum is {found}, expected was {wanted}. Correct the checksum or the image on its server."
        );
        return Err(Failure::new("ImageChecksumError", why));
    }
    let drive = arguments.get("configdrive").filter(|drive| !drive.is_null());
    let image = Content::Image {
        name: url.to_string(),
        bytes: disk.written,
        checksum: found,
        bootable: is_partition || can_be_booted(&disk.head),
        config_drive: drive.is_some(),
    };
    let image = match is_partition {
        true => {
            Content::Partition { image: Box::new(image), root_id: uuid::Uuid::new_v4().to_string() }
        }
        false => image,
    };
    machine.install(bay, image, drive.and_then(Value::as_str).map(str::to_owned));
    let name = machine.spec().disks.get(bay).map(|disk| disk.name.clone()).unwrap_or_default();
    Ok(format!("/dev/{name}"))
}

/// Writes the system of a container, as ironic-python-agent 13 does with podman; returns the agent's text. The container is not pulled, and a
/// container without the program `bootc` has the tag `without-bootc`.
pub(super) fn container(machine: &Machine, step: Option<&Value>) -> Result<String, Failure> {
    let arguments = step.and_then(|step| step.get("args")).and_then(Value::as_object);
    let arguments = arguments.cloned().unwrap_or_default();
    // The step has no default for any argument (`ironic_python_agent/hardware.py`, `execute_bootc_install`).
    let needed = ["image_source", "configdrive", "oci_pull_secret"];
    if let Some(missing) = needed.iter().find(|key| !arguments.contains_key(**key)) {
        return Err(Failure::new("TypeError", format!("The step has no {missing}.")));
    }
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let source = text("image_source").unwrap_or_default();
    if let Some(secret) = text("oci_pull_secret") {
        let login = STANDARD.decode(secret).and_then(|once| STANDARD.decode(once));
        if !login.is_ok_and(|login| login.contains(&b':')) {
            return Err(Failure::new("ImageDownloadError", "The pull secret is no login."));
        }
    }
    if source.ends_with(":without-bootc") {
        let why = "Container does not contain the required bootc binary.";
        return Err(Failure::new("ImageDownloadError", why));
    }
    let (bay, _) = root_disk(machine, &Map::new())?;
    let drive = text("configdrive").map(str::to_owned);
    let system = Content::Image {
        name: source.to_owned(),
        bytes: 1 << 30,
        checksum: String::new(),
        bootable: true,
        config_drive: drive.is_some(),
    };
    machine.install(bay, system, drive);
    Ok(format!("Container image ({source}) written"))
}

/// Why a download ended early.
enum Interrupted {
    /// The server did not answer, failed or broke off. ironic-python-agent tries again then.
    ForNow(Failure),
    ForGood(Failure),
}

/// Downloads the image to the disk at `place`, its bay and its capacity; returns the disk and the checksum of the downloaded bytes.
async fn download(
    machine: &Machine,
    world: &RackContext,
    url: &Url,
    (bay, capacity): (usize, u64),
    mut checksum: Checksum,
    report: &impl Fn(Progress),
) -> Result<(Disk, String), Interrupted> {
    let mut disk = Writer::Unknown(Disk { capacity, written: 0, head: Vec::with_capacity(HEAD) });
    put(machine, bay, Content::Broken { bytes: 0 });
    let failed = |error: fetch::FetchError| {
        let why = format!("The image cannot be downloaded: {}.", chain(&error));
        let failure = Failure::new("ImageDownloadError", why);
        match error {
            fetch::FetchError::Refused { status: 400..500, .. } => Interrupted::ForGood(failure),
            fetch::FetchError::Refused { .. }
            | fetch::FetchError::Unreachable { .. }
            | fetch::FetchError::BrokeOff { .. }
            | fetch::FetchError::TooLarge { .. } => Interrupted::ForNow(failure),
        }
    };
    let full = |error: io::Error| Interrupted::ForGood(no_room(&error));
    let mut response = fetch::get(&world.http, url).await.map_err(failed)?;
    let total = response.content_length();
    let mut served = 0;
    while let Some(chunk) = fetch::next(&mut response, url).await.map_err(failed)? {
        served += chunk.len() as u64;
        checksum.update(&chunk);
        disk = disk.knowing(&chunk);
        let written = disk.write_all(&chunk);
        put(machine, bay, Content::Broken { bytes: disk.disk().written });
        written.map_err(full)?;
        report(Progress { done_bytes: served, total_bytes: total });
        fetch::throttle(machine, chunk.len()).await;
        while machine.faults().hold_image {
            tokio::time::sleep(HELD_PAUSE).await;
        }
    }
    Ok((disk.finish().map_err(full)?, checksum.finish()))
}

/// Returns bay and capacity of the root disk: the disk that the hints select, or the smallest sufficient one.
fn root_disk(machine: &Machine, hints: &Map<String, Value>) -> Result<(usize, u64), Failure> {
    let hinted = |key: &str, value: &str| {
        hints
            .get(key)
            .and_then(Value::as_str)
            .is_none_or(|wanted| wanted.trim_start_matches("s==").trim() == value)
    };
    let disks = machine.spec().disks.iter().enumerate();
    let fits = disks.filter(|(_, disk)| {
        disk.size_bytes >= LEAST_DISK
            && hinted("serial", &disk.serial)
            && hinted("model", &disk.model)
            && hinted("name", &format!("/dev/{}", disk.name))
    });
    let chosen = fits.min_by_key(|(_, disk)| disk.size_bytes);
    let (bay, disk) = chosen.ok_or_else(|| {
        Failure::new("DeviceNotFound", "No disk is large enough and matches the root device hints.")
    })?;
    let full_after = machine.faults().disk_full_after.unwrap_or(u64::MAX);
    Ok((bay, disk.size_bytes.min(full_after)))
}

fn put(machine: &Machine, bay: usize, content: Content) {
    machine.put_on_disk(bay, content);
}

fn no_room(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::StorageFull {
        let why =
            "The image is larger than the disk. Choose a larger root_device or a smaller image.";
        return Failure::new("DiskFull", why);
    }
    Failure::new("ImageFormatError", format!("The image cannot be unpacked: {error}."))
}

enum Checksum {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Checksum {
    fn of(algorithm: &str) -> Result<Checksum, Failure> {
        match algorithm {
            "sha256" => Ok(Checksum::Sha256(Sha256::new())),
            "sha512" => Ok(Checksum::Sha512(Sha512::new())),
            other => {
                let why = format!("{other} is not a checksum this agent knows.");
                Err(Failure::new("ImageChecksumError", why))
            }
        }
    }

    fn update(&mut self, octets: &[u8]) {
        match self {
            Checksum::Sha256(hash) => hash.update(octets),
            Checksum::Sha512(hash) => hash.update(octets),
        }
    }

    fn finish(self) -> String {
        match self {
            Checksum::Sha256(hash) => hex::encode(hash.finalize()),
            Checksum::Sha512(hash) => hex::encode(hash.finalize()),
        }
    }
}

/// A disk that only counts bytes and stores its first sector.
struct Disk {
    capacity: u64,
    written: u64,
    head: Vec<u8>,
}

impl Write for Disk {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.written + octets.len() as u64 > self.capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let wanted = HEAD.saturating_sub(self.head.len()).min(octets.len());
        self.head.extend(&octets[..wanted]);
        self.written += octets.len() as u64;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The writer between the network and the disk.
enum Writer {
    /// Nothing has arrived yet.
    Unknown(Disk),
    Raw(Disk),
    Gzip(Box<MultiGzDecoder<Disk>>),
}

impl Writer {
    /// Recognizes a compressed image by its first bytes (RFC 1952 §2.3.1).
    fn knowing(self, chunk: &[u8]) -> Writer {
        match self {
            Writer::Unknown(disk) if chunk.starts_with(&[0x1f, 0x8b]) => {
                Writer::Gzip(Box::new(MultiGzDecoder::new(disk)))
            }
            Writer::Unknown(disk) if !chunk.is_empty() => Writer::Raw(disk),
            known @ (Writer::Unknown(_) | Writer::Raw(_) | Writer::Gzip(_)) => known,
        }
    }

    fn write_all(&mut self, octets: &[u8]) -> io::Result<()> {
        match self {
            Writer::Unknown(disk) | Writer::Raw(disk) => disk.write_all(octets),
            Writer::Gzip(decoder) => decoder.write_all(octets),
        }
    }

    fn disk(&self) -> &Disk {
        match self {
            Writer::Unknown(disk) | Writer::Raw(disk) => disk,
            Writer::Gzip(decoder) => decoder.get_ref(),
        }
    }

    fn finish(self) -> io::Result<Disk> {
        match self {
            Writer::Unknown(disk) | Writer::Raw(disk) => Ok(disk),
            Writer::Gzip(decoder) => decoder.finish(),
        }
    }
}
