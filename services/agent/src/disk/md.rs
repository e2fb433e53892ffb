//! Finds the members of md arrays by their superblocks, also of arrays that do not run.

use std::io;

use super::blocks::Blocks;
use super::table::partitions;

/// `MD_SB_MAGIC` of the kernel's `md_p.h`; superblocks of version 1 are little-endian.
const MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();

/// Returns whether the disk or one of its partitions has a superblock.
pub fn has_member(disk: &impl Blocks) -> io::Result<bool> {
    let sector = disk.sector();
    let parts = partitions(disk)?;
    let regions =
        parts.iter().map(|it| (it.start.saturating_mul(sector), it.sectors.saturating_mul(sector)));
    for (start, length) in [(0, disk.size())].into_iter().chain(regions) {
        if has_superblock(disk, start, length.min(disk.size().saturating_sub(start)))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_superblock(disk: &impl Blocks, start: u64, length: u64) -> io::Result<bool> {
    for at in places(length) {
        let sector = disk.sector();
        let from = (start + at) / sector * sector;
        let mut read = vec![0; sector as usize];
        if from + sector > disk.size() {
            continue;
        }
        disk.read_at(from, &mut read)?;
        if read[(start + at - from) as usize..].starts_with(&MAGIC) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the places of superblocks of the versions 1.1, 1.2, 1.0 and 0.90 in a device of `length` bytes (md(4), super1.c, super0.c).
fn places(length: u64) -> impl Iterator<Item = u64> {
    let sectors = length / 512;
    let at_end = sectors.checked_sub(16).map(|start| start / 8 * 8 * 512);
    let old = (length / 65536).checked_sub(1).map(|block| block * 65536);
    let fixed = [0, 4096].into_iter().filter(move |at| at + 512 <= length);
    fixed.chain(at_end).chain(old)
}

#[cfg(test)]
mod tests {
    use super::super::gpt::tests::{Memory, image};
    use super::*;

    #[test]
    fn superblocks_of_each_version_are_found() {
        const MIB: usize = 1 << 20;
        assert!(!has_member(&Memory(image(4))).unwrap());
        // The partition of the image is its second MiB.
        for (at, what) in [
            (MIB, "1.1 in the partition"),
            (MIB + 4096, "1.2 in the partition"),
            (2 * MIB - 8192, "1.0 in the partition"),
            (2 * MIB - 65536, "0.90 in the partition"),
            (4 * MIB - 8192, "1.0 on the disk"),
        ] {
            let mut disk = image(4);
            disk[at..at + 4].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9]);
            assert!(has_member(&Memory(disk)).unwrap(), "{what}");
        }
        let mut disk = image(4);
        disk[3 * MIB..3 * MIB + 4].copy_from_slice(&MAGIC);
        assert!(!has_member(&Memory(disk)).unwrap(), "data that looks like a superblock");
        let mut smallest = vec![0; 512];
        assert!(!has_member(&Memory(smallest.clone())).unwrap());
        smallest[..4].copy_from_slice(&MAGIC);
        assert!(has_member(&Memory(smallest)).unwrap(), "1.1 in the last sector");
    }
}
