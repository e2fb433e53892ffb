//! The MBR partition table: four entries in the first sector, and a chain of logical partitions.

use std::io;
use std::ops::Range;

use super::blocks::Blocks;
use super::partition::{Partition, PartitionKind};

/// The type of an EFI system partition (UEFI 2.10 §5.2.2).
pub const EFI_SYSTEM: u8 = 0xef;
/// The type of a partition with data of Linux.
pub const LINUX: u8 = 0x83;
/// The type of a swap partition of Linux.
pub const LINUX_SWAP: u8 = 0x82;
/// The bytes of the first sector that describe the partitions: the signature of the disk, the table, and the mark of a boot sector.
pub const PLACE: Range<usize> = SIGNATURE..512;
const SIGNATURE: usize = 440;
const TABLE: usize = 446;
const ENTRY: usize = 16;
/// No system makes more logical partitions. The limit also ends a chain that loops.
const LONGEST_CHAIN: usize = 128;

/// A used entry: position in the table, type octet, first sector, number of sectors.
type Entry = (usize, u8, u64, u64);

fn entries(sector: &[u8]) -> Vec<Entry> {
    if sector.get(510..512) != Some(&[0x55, 0xaa]) {
        return Vec::new();
    }
    let number = |raw: &[u8]| u64::from(u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]));
    let table = sector[TABLE..510].chunks_exact(ENTRY).enumerate();
    let read = table.map(|(at, raw)| (at, raw[4], number(&raw[8..12]), number(&raw[12..16])));
    read.filter(|(_, kind, start, sectors)| *kind != 0 && *start != 0 && *sectors != 0).collect()
}

fn is_extended(kind: u8) -> bool {
    matches!(kind, 0x05 | 0x0f | 0x85)
}

/// Returns every partition, with logical ones numbered from 5; none if the disk has no table or only a protective one.
pub fn partitions(disk: &impl Blocks) -> io::Result<Vec<Partition>> {
    let mut sector = vec![0; disk.sector() as usize];
    disk.read_at(0, &mut sector)?;
    let mut signature = [0; 4];
    signature.copy_from_slice(&sector[440..444]);
    let found = |number, type_octet, start, sectors| Partition {
        number,
        start,
        sectors,
        kind: PartitionKind::Mbr { type_octet, signature },
    };
    let primary = entries(&sector);
    let mut all: Vec<Partition> = primary
        .iter()
        .map(|(at, kind, start, sectors)| found(*at as u32 + 1, *kind, *start, *sectors))
        .collect();

    let Some((_, _, base, _)) = primary.iter().find(|(_, kind, ..)| is_extended(*kind)) else {
        return Ok(all);
    };
    let mut table = *base;
    for number in 5..5 + LONGEST_CHAIN as u32 {
        let offset = table * disk.sector();
        if offset + disk.sector() > disk.size() {
            break;
        }
        disk.read_at(offset, &mut sector)?;
        let here = entries(&sector);
        if let Some((_, kind, start, sectors)) =
            here.iter().find(|(_, kind, ..)| !is_extended(*kind))
        {
            all.push(found(number, *kind, table + start, *sectors));
        }
        match here.iter().find(|(_, kind, ..)| is_extended(*kind)) {
            Some((_, _, next, _)) => table = base + next,
            None => break,
        }
    }
    Ok(all)
}

/// A primary partition of a new table.
pub struct Row {
    pub kind: u8,
    /// Whether a BIOS may start the partition.
    pub is_active: bool,
    /// The place in sectors.
    pub place: Range<u64>,
}

/// Makes the bytes at [`PLACE`] of a new table. `None` if there are more than four partitions, or one outside the range of 32-bit sector
/// numbers.
pub fn table(rows: impl IntoIterator<Item = Row>, signature: [u8; 4]) -> Option<[u8; 72]> {
    let mut bytes = [0; 72];
    bytes[..4].copy_from_slice(&signature);
    bytes[70..].copy_from_slice(&[0x55, 0xaa]);
    let mut entries = bytes[TABLE - SIGNATURE..70].chunks_exact_mut(ENTRY);
    for Row { kind, is_active, place } in rows {
        u32::try_from(place.end).ok()?;
        let entry = entries.next()?;
        entry.copy_from_slice(&[
            0, 0xfe, 0xff, 0xff, kind, 0xfe, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0,
        ]);
        entry[0] = if is_active { 0x80 } else { 0 };
        entry[8..12].copy_from_slice(&(place.start as u32).to_le_bytes());
        entry[12..16].copy_from_slice(&((place.end - place.start) as u32).to_le_bytes());
    }
    Some(bytes)
}

/// Adds a partition of `sectors`, aligned to a MiB, at the end of a disk of `disk_sectors` to the table in `sector`. `None` if there is no
/// table, no free entry or no space within the range of 32-bit sector numbers.
pub fn append(
    sector: &mut [u8],
    disk_sectors: u64,
    sector_size: u64,
    sectors: u64,
) -> Option<Partition> {
    let used = entries(sector);
    if sector.get(510..512) != Some(&[0x55, 0xaa]) || used.iter().any(|(_, kind, ..)| *kind == 0xee)
    {
        return None;
    }
    let free = (0..4).find(|at| used.iter().all(|(place, ..)| place != at))?;
    let align = (1 << 20) / sector_size;
    let end = disk_sectors.min(u64::from(u32::MAX));
    let start = end.checked_sub(sectors)? / align * align;
    let taken = used.iter().map(|(_, _, start, sectors)| start + sectors).max().unwrap_or(1);
    if start < taken {
        return None;
    }
    let entry = &mut sector[TABLE + free * ENTRY..TABLE + (free + 1) * ENTRY];
    // The usual filler: heads and cylinders have no meaning on disks of more than 8 GB.
    entry.copy_from_slice(&[0, 0xfe, 0xff, 0xff, LINUX, 0xfe, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    entry[8..12].copy_from_slice(&(start as u32).to_le_bytes());
    entry[12..16].copy_from_slice(&(sectors as u32).to_le_bytes());
    let mut signature = [0; 4];
    signature.copy_from_slice(&sector[440..444]);
    let kind = PartitionKind::Mbr { type_octet: LINUX, signature };
    Some(Partition { number: free as u32 + 1, start, sectors, kind })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::gpt::tests::Memory;
    use super::*;

    fn put(disk: &mut [u8], sector: usize, at: usize, kind: u8, start: u32, sectors: u32) {
        let table = &mut disk[sector * 512..(sector + 1) * 512];
        table[510..512].copy_from_slice(&[0x55, 0xaa]);
        let entry = &mut table[TABLE + at * ENTRY..TABLE + (at + 1) * ENTRY];
        entry[4] = kind;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..16].copy_from_slice(&sectors.to_le_bytes());
    }

    #[test]
    fn logical_partitions_are_found_and_a_loop_ends() {
        let mut disk = vec![0; 4 << 20];
        put(&mut disk, 0, 0, EFI_SYSTEM, 2048, 1024);
        put(&mut disk, 0, 1, 0x05, 4000, 4000);
        put(&mut disk, 4000, 0, LINUX, 8, 100);
        put(&mut disk, 4000, 1, 0x05, 500, 200);
        put(&mut disk, 4500, 0, LINUX, 8, 100);
        let found = partitions(&Memory(disk.clone())).unwrap();
        let shown: Vec<_> = found.iter().map(|p| (p.number, p.start, p.sectors)).collect();
        assert_eq!(shown, [(1, 2048, 1024), (2, 4000, 4000), (5, 4008, 100), (6, 4508, 100)]);

        put(&mut disk, 4500, 1, 0x05, 500, 200);
        assert_eq!(partitions(&Memory(disk)).unwrap().len(), 2 + LONGEST_CHAIN);
    }

    #[test]
    fn an_entry_needs_a_type_a_start_and_a_length() {
        let mut disk = vec![0; 512];
        put(&mut disk, 0, 0, 0, 1, 1);
        put(&mut disk, 0, 1, LINUX, 0, 1);
        put(&mut disk, 0, 2, LINUX, 1, 0);
        put(&mut disk, 0, 3, LINUX, 1, 1);
        assert_eq!(entries(&disk), [(3, LINUX, 1, 1)]);
        disk[511] = 0;
        assert_eq!(entries(&disk), []);
    }

    #[test]
    fn a_chain_ends_with_the_disk() {
        for (base, want) in [(7, 2), (8, 1), (9, 1)] {
            let mut disk = vec![0; 9 * 512];
            put(&mut disk, 0, 0, 0x05, base, 1);
            put(&mut disk, 7, 0, LINUX, 1, 1);
            disk.truncate(8 * 512);
            assert_eq!(partitions(&Memory(disk)).unwrap().len(), want, "{base}");
        }
    }

    #[test]
    fn a_partition_is_appended_behind_the_others() {
        let mut disk = vec![0; 512];
        put(&mut disk, 0, 0, LINUX, 2048, 2048);
        let only = disk.clone();
        let added = append(&mut disk, 16 * 2048, 512, 2048).unwrap();
        assert_eq!((added.number, added.start), (2, 15 * 2048));
        assert_eq!(entries(&disk), [(0, LINUX, 2048, 2048), (1, LINUX, 15 * 2048, 2048)]);
        assert_eq!(append(&mut disk, 4096, 512, 2048), None);
        for (disk_sectors, want) in [
            (3 * 2048 - 1, None),
            (3 * 2048, Some(4096)),
            // Sector numbers have 32 bits.
            (1 << 33, Some((1 << 32) - 2 * 2048)),
        ] {
            let added = append(&mut only.clone(), disk_sectors, 512, 2048);
            assert_eq!(added.map(|added| added.start), want, "{disk_sectors}");
        }
    }

    #[test]
    fn nothing_is_appended_without_a_table_of_its_own_or_a_free_entry() {
        assert_eq!(append(&mut [0; 512], 16 * 2048, 512, 2048), None, "there is no table");
        let mut protective = vec![0; 512];
        put(&mut protective, 0, 0, 0xee, 1, 100);
        assert_eq!(append(&mut protective, 16 * 2048, 512, 2048), None);
        let mut full = vec![0; 512];
        for at in 0..4 {
            put(&mut full, 0, at, LINUX, 1, 1);
        }
        assert_eq!(append(&mut full, 16 * 2048, 512, 2048), None);
    }

    proptest! {
        #[test]
        fn no_sector_panics(sector in proptest::collection::vec(any::<u8>(), 510), tail: [u8; 1024]) {
            let mut disk = sector;
            disk.extend([0x55, 0xaa]);
            disk.extend(tail);
            append(&mut disk.clone(), 8192, 512, 2048);
            partitions(&Memory(disk)).unwrap();
        }
    }
}
