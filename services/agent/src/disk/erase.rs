//! Erases a disk, and reads back from the disk to prove the erasure.

use std::io;

use serde::Serialize;

use super::blocks::Blocks;
use super::device::Device;
use super::table::partitions;
use crate::meter::ProgressMeter;

const MIB: u64 = 1 << 20;
/// Offsets of btrfs's superblock copies, which are far from both ends of a partition.
const BTRFS_COPIES: [u64; 2] = [64 << 20, 256 << 30];
/// The most bytes that are zeroed before the progress is updated.
const STRIDE: u64 = 256 << 20;

/// The reasons why a disk could not be erased.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    #[error("cannot erase {disk}")]
    Write { disk: String, source: io::Error },
    #[error("cannot read {disk} back after erasing it")]
    ReadBack { disk: String, source: io::Error },
    /// The disk reported success but still holds data.
    #[error("{disk} still holds data at byte {offset} although erasing it reported no error")]
    NotBlank {
        disk: String,
        /// Position of the first byte that is not zero.
        offset: u64,
    },
}

/// The record of an erasure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Erased {
    /// Path of the disk.
    pub name: String,
    /// `metadata` or `overwrite`.
    pub method: &'static str,
    /// Number of bytes that were zeroed.
    pub zeroed_bytes: u64,
    /// Number of bytes that were read back, all of them zero.
    pub read_back_bytes: u64,
}

/// Zeroes all marks by which a system could recognize the disk's former use: both ends of the disk and of every partition (partition
/// tables, boot sectors, superblocks of file systems, RAID, LVM and ZFS labels).
///
/// `known` are partitions that the kernel sees besides those in the disk's own tables, as `(start, length)` in bytes.
pub fn metadata(disk: &Device, known: &[(u64, u64)]) -> Result<Erased, EraseError> {
    let ranges = ranges_to_erase(disk, known)?;
    let name = disk.path().display().to_string();
    let mut bytes = 0;
    for (start, length) in &ranges {
        disk.zero(*start, *length)
            .map_err(|source| EraseError::Write { disk: name.clone(), source })?;
        bytes += length;
    }
    disk.sync().map_err(|source| EraseError::Write { disk: name.clone(), source })?;
    for (start, length) in &ranges {
        prove_blank(disk, *start, *length)?;
    }
    Ok(Erased { name, method: "metadata", zeroed_bytes: bytes, read_back_bytes: bytes })
}

/// Zeroes the whole disk, and reads one MiB back at every hundredth of the disk.
pub fn everything(disk: &Device, progress: &ProgressMeter) -> Result<Erased, EraseError> {
    let name = disk.path().display().to_string();
    let mut at = 0;
    while at < disk.size() {
        let length = STRIDE.min(disk.size() - at);
        disk.zero(at, length).map_err(|source| EraseError::Write { disk: name.clone(), source })?;
        at += length;
        progress.add(length);
    }
    disk.sync().map_err(|source| EraseError::Write { disk: name.clone(), source })?;

    let sector = u64::from(disk.sector());
    let stride = (disk.size() / 100 / sector * sector).max(MIB);
    let mut read = 0;
    let mut at = 0;
    while at < disk.size() {
        let length = MIB.min(disk.size() - at);
        prove_blank(disk, at, length)?;
        read += length;
        at += stride;
    }
    let last = MIB.min(disk.size());
    prove_blank(disk, disk.size() - last, last)?;
    Ok(Erased {
        name,
        method: "overwrite",
        zeroed_bytes: disk.size(),
        read_back_bytes: read + last,
    })
}

/// Returns the ranges that hold such marks, cut to the disk and rounded to sectors.
fn ranges_to_erase(disk: &Device, known: &[(u64, u64)]) -> Result<Vec<(u64, u64)>, EraseError> {
    let name = disk.path().display().to_string();
    let found = partitions(disk).map_err(|source| EraseError::ReadBack { disk: name, source })?;
    let sector = disk.sector();
    let bytes = |sectors: u64| sectors.saturating_mul(Blocks::sector(disk));
    let tables = found.iter().map(|p| (bytes(p.start), bytes(p.sectors)));
    let regions = [(0, disk.size())].into_iter().chain(tables).chain(known.iter().copied());

    let mut ranges = Vec::new();
    let mut add = |start: u64, length: u64| {
        let start = start / u64::from(sector) * u64::from(sector);
        let length = length.min(disk.size().saturating_sub(start));
        let length = length.next_multiple_of(u64::from(sector));
        if length > 0 && start + length <= disk.size() {
            ranges.push((start, length));
        }
    };
    for (start, length) in regions {
        let end = start.saturating_add(length).min(disk.size());
        add(start, MIB.min(length));
        add(end.saturating_sub(MIB).max(start), MIB.min(length));
        for copy in BTRFS_COPIES.iter().filter(|copy| **copy < length) {
            add(start.saturating_add(*copy), 4096);
        }
    }
    Ok(ranges)
}

fn prove_blank(disk: &Device, start: u64, length: u64) -> Result<(), EraseError> {
    let name = || disk.path().display().to_string();
    let mut read = vec![0; length as usize];
    disk.read_at(start, &mut read)
        .map_err(|source| EraseError::ReadBack { disk: name(), source })?;
    match read.iter().position(|byte| *byte != 0) {
        Some(at) => Err(EraseError::NotBlank { disk: name(), offset: start + at as u64 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::gpt;
    use super::*;

    fn disk(image: &[u8], size: usize) -> (crate::scratch::Folder, Device) {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        let mut bytes = vec![0xaa; size];
        bytes[..image.len()].copy_from_slice(image);
        std::fs::write(&path, bytes).unwrap();
        let device = Device::open(&path, size as u64, 512).unwrap();
        (folder, device)
    }

    #[test]
    fn erasing_metadata_leaves_the_data_between() {
        let mut image = gpt::tests::image(16);
        image.fill_with_pattern();
        let (folder, device) = disk(&image, 32 << 20);
        let erased = metadata(&device, &[(20 << 20, 4 << 20)]).unwrap();
        let name = device.path().display().to_string();
        let (zeroed_bytes, read_back_bytes) = (6 * MIB, 6 * MIB);
        assert_eq!(erased, Erased { name, method: "metadata", zeroed_bytes, read_back_bytes });
        let bytes = std::fs::read(folder.path().join("disk")).unwrap();
        let mib = |n: usize| &bytes[n << 20..(n + 1) << 20];
        for blank in [0, 1, 20, 23, 31] {
            assert!(mib(blank).iter().all(|byte| *byte == 0), "MiB {blank} is not blank");
        }
        assert!(mib(22).iter().all(|byte| *byte == 0xaa));
    }

    #[test]
    fn erasing_everything_blanks_the_disk_and_reports_progress() {
        let (folder, device) = disk(&[], 6 << 20);
        let progress = ProgressMeter::default();
        let erased = everything(&device, &progress).unwrap();
        assert_eq!(erased.zeroed_bytes, 6 << 20);
        assert_eq!(progress.read().done_bytes, 6 << 20);
        assert!(std::fs::read(folder.path().join("disk")).unwrap().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_large_disk_is_zeroed_in_strides_and_read_at_every_hundredth() {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        let size = (300 << 20) + 25600;
        std::fs::write(&path, []).unwrap();
        let device = Device::open(&path, size, 512).unwrap();
        for at in [0, STRIDE - 512, STRIDE, size - 512] {
            device.write_at(at, &[0xaa; 512]).unwrap();
        }
        let progress = ProgressMeter::default();
        let erased = everything(&device, &progress).unwrap();
        // A hundredth is 3 MiB and half a sector. So 100 MiB are read at multiples of 3 MiB, then 25600 bytes, and the last MiB of the disk.
        let read_back_bytes = 100 * MIB + 25600 + MIB;
        let name = path.display().to_string();
        assert_eq!(
            erased,
            Erased { name, method: "overwrite", zeroed_bytes: size, read_back_bytes }
        );
        assert_eq!(progress.read().done_bytes, size);
        prove_blank(&device, STRIDE - MIB, 2 * MIB).unwrap();
        prove_blank(&device, size - 512, 512).unwrap();
    }

    #[test]
    fn data_that_an_erasure_left_is_found() {
        let (_folder, device) = disk(&[0; 5 << 20], 6 << 20);
        device.write_at(MIB + 512, &[[0; 100].as_slice(), &[1], &[0; 411]].concat()).unwrap();
        prove_blank(&device, 2 * MIB, 3 * MIB).unwrap();
        let error = prove_blank(&device, MIB, MIB).unwrap_err();
        assert!(matches!(error, EraseError::NotBlank { offset, .. } if offset == MIB + 612));
    }

    #[test]
    fn the_ends_and_superblock_copies_of_every_region_are_erased() {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, []).unwrap();
        // No disk ends within a sector; a range that would end behind the disk is left out.
        let odd = Device::open(&path, (4 << 20) + 100, 512).unwrap();
        let ranges = ranges_to_erase(&odd, &[(4 << 20, 100)]).unwrap();
        assert_eq!(ranges, [(0, MIB), (3 * MIB, MIB)]);

        let disk = Device::open(&path, 100 << 20, 512).unwrap();
        let whole = [(0, MIB), (99 * MIB, MIB), (64 * MIB, 4096)];
        for (what, known, want) in [
            ("short", (MIB, 4096), vec![(MIB, 4096), (MIB, 4096)]),
            ("within a sector", (5 * MIB + 700, 100), vec![(5 * MIB + 512, 512); 2]),
            ("up to a copy", (MIB, 64 * MIB), vec![(MIB, MIB), (64 * MIB, MIB)]),
            ("with a copy", (MIB, 65 * MIB), vec![(MIB, MIB), (65 * MIB, MIB), (65 * MIB, 4096)]),
            ("across the end", (98 * MIB, 9 * MIB), vec![(98 * MIB, MIB), (99 * MIB, MIB)]),
            ("behind the end", (100 * MIB, MIB), vec![]),
        ] {
            let ranges = ranges_to_erase(&disk, &[known]).unwrap();
            assert_eq!(ranges, [whole.as_slice(), &want].concat(), "{what}");
        }
    }

    trait Pattern {
        fn fill_with_pattern(&mut self);
    }

    impl Pattern for Vec<u8> {
        /// Fills the partition that [`gpt::tests::image`] made with a pattern.
        fn fill_with_pattern(&mut self) {
            self[1 << 20..2 << 20].fill(0x55);
        }
    }
}
