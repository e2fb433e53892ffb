//! Makes a machine boot from an array, with any of the array's disks missing.
//!
//! Firmware knows no arrays. The system that was written to the array has an EFI system partition inside the array; its content is copied to
//! the mirror of the EFI system partitions of all disks, and the firmware gets a boot entry for each disk.

use std::io;

use super::arrays::{self, Array};
use super::error::RaidError;
use super::{open, shared};
use crate::disk::blocks::Blocks;
use crate::disk::device::Device;
use crate::disk::partition::{Partition, PartitionKind};
use crate::disk::table::partitions;
use crate::disk::{esp, mbr};
use crate::efi::{self, EfiError};
use crate::inventory;
use crate::root::Root;

const CHUNK: u64 = 4 << 20;

/// The reasons why a machine cannot be made to boot from an array.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error(transparent)]
    Raid(#[from] RaidError),
    #[error(transparent)]
    Efi(#[from] EfiError),
    #[error(
        "{disk} has no EFI system partition, because the array was made while the machine booted by BIOS"
    )]
    NoSystemPartition { disk: String },
    #[error(
        "the image's EFI system partition of {needs_mib} MiB does not fit into {target} of {has_mib} MiB"
    )]
    TooLarge { target: String, needs_mib: u64, has_mib: u64 },
    #[error("cannot copy the EFI system partition of {from} to {target}")]
    Copy { from: String, target: String, source: io::Error },
}

/// Copies the EFI system partition of the system on the array, makes a boot entry for each disk of the array, and returns the entries.
pub fn install(root: &Root, array: &Array) -> Result<Vec<String>, BootError> {
    let device = open(root, &array.as_disk())?;
    let read = |source| EfiError::Disk { disk: array.name.clone(), source };
    let found = partitions(&device).map_err(read)?;
    let system = found.iter().find(|partition| partition.is_efi_system());
    let system = system.ok_or_else(|| EfiError::NoSystemPartition { disk: array.name.clone() })?;

    let mut targets: Vec<String> = Vec::new();
    let mut boots = Vec::new();
    let holders = arrays::disks_of(root, array);
    for disk in inventory::disks(root).iter().filter(|disk| holders.contains(&disk.name)) {
        let holder = shared(root, disk)?;
        let found = partitions(&holder)
            .map_err(|source| EfiError::Disk { disk: disk.name.clone(), source })?;
        let own = found.into_iter().find(Partition::is_efi_system);
        let own = own.ok_or_else(|| BootError::NoSystemPartition { disk: disk.name.clone() })?;
        let target = arrays::array_of(root, &disk.name, own.number);
        let target =
            target.ok_or_else(|| BootError::NoSystemPartition { disk: disk.name.clone() })?;
        if !targets.contains(&target) {
            targets.push(target);
        }
        boots.push((disk.name.clone(), own));
    }
    for target in &targets {
        copy(root, (&device, array, system), target)?;
    }
    let loader = targets.first().map(|target| loader_in(root, target)).transpose()?;
    let loader = loader.as_deref().unwrap_or(esp::FALLBACK);
    // The last entry that is made is the first in the boot order.
    let entries = boots.iter().rev().map(|(disk, partition)| {
        let short = disk.trim_start_matches("/dev/");
        efi::boot_partition(root, &format!("{} {short}", efi::LABEL), partition, loader)
    });
    let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
    entries.reverse();
    hide(&device, system).map_err(|source| BootError::Copy {
        from: array.name.clone(),
        target: array.name.clone(),
        source,
    })?;
    Ok(entries)
}

/// Returns the path of the loader in the EFI system partition that is on an array.
fn loader_in(root: &Root, target: &str) -> Result<String, RaidError> {
    let found = arrays::running(root).into_iter().find(|it| it.name == target);
    let found = found.ok_or_else(|| RaidError::Missing(target.to_owned()))?;
    let device = open(root, &found.as_disk())?;
    let sectors = Blocks::size(&device) / Blocks::sector(&device);
    let kind = PartitionKind::Mbr { type_octet: mbr::EFI_SYSTEM, signature: [0; 4] };
    Ok(efi::loader_of(&device, &Partition { number: 1, start: 0, sectors, kind }).path)
}

/// Copies the partition `system` of an array to the array `target`, unless an earlier call has copied and hidden it.
fn copy(
    root: &Root,
    (device, array, system): (&Device, &Array, &Partition),
    target: &str,
) -> Result<(), BootError> {
    let failed =
        |source| BootError::Copy { from: array.name.clone(), target: target.to_owned(), source };
    let sector = Blocks::sector(device);
    let (start, length) =
        (system.start.saturating_mul(sector), system.sectors.saturating_mul(sector));
    let mut first = vec![0; sector as usize];
    device.read_at(start, &mut first).map_err(failed)?;
    if first.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    let found = arrays::running(root).into_iter().find(|it| it.name == target);
    let found = found.ok_or_else(|| RaidError::Missing(target.to_owned()))?;
    if found.size < length {
        let (needs_mib, has_mib) = (length >> 20, found.size >> 20);
        return Err(BootError::TooLarge { target: target.to_owned(), needs_mib, has_mib });
    }
    let to = open(root, &found.as_disk())?;
    let mut at = 0;
    while at < length {
        let mut piece = vec![0; CHUNK.min(length - at) as usize];
        device.read_at(start + at, &mut piece).map_err(failed)?;
        to.write_at(at, &piece).map_err(failed)?;
        at += piece.len() as u64;
    }
    to.sync().map_err(failed)
}

/// Makes the copied file system unreadable at its old place. Otherwise two file systems would have the id by which the installed system
/// mounts its EFI system partition.
fn hide(device: &Device, system: &Partition) -> io::Result<()> {
    let sector = Blocks::sector(device);
    let (start, length) =
        (system.start.saturating_mul(sector), system.sectors.saturating_mul(sector));
    device.zero(start, length.min(1 << 20))?;
    device.sync()
}
