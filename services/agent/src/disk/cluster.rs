//! Finds the file systems of clusters. Several machines use such a disk at once, for example over a storage network, so erasing it destroys the
//! data of all of them. The kinds are those that ironic-python-agent guards (`safety_check_block_device`).

use std::io;

use super::blocks::Blocks;
use super::partition::PartitionKind;
use super::table::partitions;

/// 37AFFC90-EF7D-4E96-91C3-2D7AE055B174 in the byte order of the disk.
const GPFS: [u8; 16] = [
    0x90, 0xfc, 0xaf, 0x37, 0x7d, 0xef, 0x96, 0x4e, 0x91, 0xc3, 0x2d, 0x7a, 0xe0, 0x55, 0xb1, 0x74,
];
/// AA31E02A-400F-11DB-9590-000C2911D1B8 in the byte order of the disk.
const VMFS: [u8; 16] = [
    0x2a, 0xe0, 0x31, 0xaa, 0x0f, 0x40, 0xdb, 0x11, 0x95, 0x90, 0x00, 0x0c, 0x29, 0x11, 0xd1, 0xb8,
];
const VMFS_OCTET: u8 = 0xfb;
/// The place of GFS2's superblock, its magic number and its type (the kernel's `gfs2_ondisk.h`).
const GFS2_PLACE: u64 = 64 << 10;
const GFS2: [u8; 8] = [0x01, 0x16, 0x19, 0x70, 0, 0, 0, 1];

/// Returns the name of a file system of a cluster that the disk has.
pub fn file_system(disk: &impl Blocks) -> io::Result<Option<&'static str>> {
    let parts = partitions(disk)?;
    if let Some(name) = parts.iter().find_map(|part| by_type(&part.kind)) {
        return Ok(Some(name));
    }
    let starts = parts.iter().map(|part| part.start.saturating_mul(disk.sector()));
    for start in [0].into_iter().chain(starts) {
        if has_gfs2(disk, start.saturating_add(GFS2_PLACE))? {
            return Ok(Some("GFS2"));
        }
    }
    Ok(None)
}

fn by_type(kind: &PartitionKind) -> Option<&'static str> {
    match kind {
        PartitionKind::Gpt { type_guid, .. } if *type_guid == GPFS => Some("GPFS"),
        PartitionKind::Gpt { type_guid, .. } if *type_guid == VMFS => Some("VMFS"),
        PartitionKind::Mbr { type_octet, .. } if *type_octet == VMFS_OCTET => Some("VMFS"),
        PartitionKind::Gpt { .. } | PartitionKind::Mbr { .. } => None,
    }
}

fn has_gfs2(disk: &impl Blocks, place: u64) -> io::Result<bool> {
    let mut read = vec![0; disk.sector() as usize];
    if place.saturating_add(disk.sector()) > disk.size() {
        return Ok(false);
    }
    disk.read_at(place, &mut read)?;
    Ok(read.starts_with(&GFS2))
}

#[cfg(test)]
mod tests {
    use super::super::gpt::EFI_SYSTEM;
    use super::super::gpt::tests::{Memory, image};
    use super::*;

    #[test]
    fn a_superblock_is_found_on_the_disk_and_in_its_partitions() {
        assert_eq!(file_system(&Memory(image(4))).unwrap(), None);
        // The partition of the image is its second MiB.
        for start in [0, 1 << 20] {
            let mut disk = image(4);
            let at = start + (64 << 10);
            disk[at..at + 8].copy_from_slice(&GFS2);
            assert_eq!(file_system(&Memory(disk.clone())).unwrap(), Some("GFS2"));
            // A block of another type, such as a resource group.
            disk[at + 7] = 2;
            assert_eq!(file_system(&Memory(disk)).unwrap(), None);
        }
        assert_eq!(file_system(&Memory(vec![0; 512])).unwrap(), None);
    }

    #[test]
    fn a_partition_tells_by_its_type() {
        let gpt = |type_guid| by_type(&PartitionKind::Gpt { type_guid, guid: [1; 16] });
        assert_eq!([GPFS, VMFS, EFI_SYSTEM].map(gpt), [Some("GPFS"), Some("VMFS"), None]);
        let mbr = |type_octet| by_type(&PartitionKind::Mbr { type_octet, signature: [1; 4] });
        assert_eq!([0xfb, 0x83].map(mbr), [Some("VMFS"), None]);
    }
}
