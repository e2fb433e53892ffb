//! The GUID partition table (UEFI 2.10 §5.3).
//!
//! The table may come from an untrusted image, so this module checks sizes before it allocates memory. `gptman` 3.1.1 does not: a header with
//! 2^32 - 1 entries and a valid checksum makes it allocate 652 GB, which ends the process, and a first entry at sector 2^63 makes it panic.

use std::io;
use std::ops::Range;

use super::blocks::Blocks;
use super::guard::GuardedDisk;
use super::partition::{Partition, PartitionKind};

/// C12A7328-F81F-11D2-BA4B-00A0C93EC93B in the byte order of the disk.
pub const EFI_SYSTEM: [u8; 16] = [
    0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b,
];

/// 0FC63DAF-8483-4772-8E79-3D69D8477DE4 in the byte order of the disk.
pub const LINUX_DATA: [u8; 16] = [
    0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47, 0x7d, 0xe4,
];

/// 0657FD6D-A4AB-43C4-84E5-0933C84B4F4F in the byte order of the disk.
pub const LINUX_SWAP: [u8; 16] = [
    0x6d, 0xfd, 0x57, 0x06, 0xab, 0xa4, 0xc4, 0x43, 0x84, 0xe5, 0x09, 0x33, 0xc8, 0x4b, 0x4f, 0x4f,
];

/// 21686148-6449-6E6F-744E-656564454649 in the byte order of the disk: `Hah!IdontNeedEFI`.
pub const BIOS_BOOT: [u8; 16] = *b"Hah!IdontNeedEFI";

/// A19D880F-05FC-4D3B-A006-743F0F84911E in the byte order of the disk.
pub const LINUX_RAID: [u8; 16] = [
    0x0f, 0x88, 0x9d, 0xa1, 0xfc, 0x05, 0x3b, 0x4d, 0xa0, 0x06, 0x74, 0x3f, 0x0f, 0x84, 0x91, 0x1e,
];

const HEADER: usize = 92;
const MOST_ENTRIES: u32 = 1024;
/// The number and the size of the entries in a new table, which every system accepts (UEFI 2.10 §5.3.1).
const NEW_ENTRIES: usize = 128;
const NEW_ENTRY: u32 = 128;

/// A partition table, read from its primary place or from its backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpt {
    disk_guid: [u8; 16],
    first_usable: u64,
    last_usable: u64,
    entry_size: u32,
    entries: Vec<u8>,
    sector: u64,
}

/// Reads the primary table, or the backup if the primary is damaged; `None` if neither is valid.
pub fn read(disk: &impl Blocks) -> io::Result<Option<Gpt>> {
    let sectors = disk.size() / disk.sector().max(1);
    if sectors < 6 {
        return Ok(None);
    }
    match read_at(disk, 1)? {
        Some(table) => Ok(Some(table)),
        None => read_at(disk, sectors - 1),
    }
}

/// Moves the backup table of an image to the end of the disk. Does nothing if the disk has no GPT.
pub fn move_backup_to_end(disk: &mut GuardedDisk) -> io::Result<()> {
    let Some(mut table) = read(disk)? else { return Ok(()) };
    table.extend_to(Blocks::size(disk) / Blocks::sector(disk));
    table.write(disk)
}

fn read_at(disk: &impl Blocks, lba: u64) -> io::Result<Option<Gpt>> {
    let sector = disk.sector();
    let mut header = vec![0; sector as usize];
    disk.read_at(lba * sector, &mut header)?;
    let Some((mut table, entries_at, bytes, crc)) = parse_header(&header, lba, sector) else {
        return Ok(None);
    };
    let length = u64::from(bytes).next_multiple_of(sector);
    let inside = entries_at
        .checked_mul(sector)
        .filter(|at| at.checked_add(length).is_some_and(|end| end <= disk.size()));
    let Some(at) = inside else { return Ok(None) };
    table.entries = vec![0; length as usize];
    disk.read_at(at, &mut table.entries)?;
    table.entries.truncate(bytes as usize);
    Ok((crc32(&table.entries) == crc).then_some(table))
}

/// Parses a header: returns the table without its entries, and the entries' position, length and checksum.
fn parse_header(raw: &[u8], lba: u64, sector: u64) -> Option<(Gpt, u64, u32, u32)> {
    let header = raw.get(..HEADER)?;
    let size = u32_at(header, 12) as usize;
    if !header.starts_with(b"EFI PART") || !(HEADER..=raw.len()).contains(&size) {
        return None;
    }
    let mut unsummed = raw[..size].to_vec();
    unsummed[16..20].fill(0);
    let (count, entry_size) = (u32_at(header, 80), u32_at(header, 84));
    let sane = crc32(&unsummed) == u32_at(header, 16)
        && u64_at(header, 24) == lba
        && (1..=MOST_ENTRIES).contains(&count)
        && (128..=4096).contains(&entry_size)
        && entry_size.is_multiple_of(128);
    let table = Gpt {
        disk_guid: header[56..72].try_into().ok()?,
        first_usable: u64_at(header, 40),
        last_usable: u64_at(header, 48),
        entry_size,
        entries: Vec::new(),
        sector,
    };
    sane.then(|| (table, u64_at(header, 72), count * entry_size, u32_at(header, 88)))
}

impl Gpt {
    /// Makes a table without partitions for a disk of `sectors` sectors.
    pub fn empty(sectors: u64, sector: u64, disk_guid: [u8; 16]) -> Gpt {
        let entries = vec![0; NEW_ENTRIES * NEW_ENTRY as usize];
        let mut table = Gpt {
            disk_guid,
            first_usable: 0,
            last_usable: 0,
            entry_size: NEW_ENTRY,
            entries,
            sector,
        };
        table.first_usable = table.entry_sectors() + 2;
        table.extend_to(sectors);
        table
    }

    /// Returns the partitions whose bounds are plausible.
    pub fn partitions(&self) -> Vec<Partition> {
        let entries = self.entries.chunks_exact(self.entry_size as usize);
        let used = entries.zip(1..).filter(|(entry, _)| entry[..16] != [0; 16]);
        let partition = |(entry, number): (&[u8], u32)| {
            let (start, end) = (u64_at(entry, 32), u64_at(entry, 40));
            let mut type_guid = [0; 16];
            let mut guid = [0; 16];
            type_guid.copy_from_slice(&entry[..16]);
            guid.copy_from_slice(&entry[16..32]);
            let sectors = end.checked_sub(start)?.checked_add(1)?;
            let kind = PartitionKind::Gpt { type_guid, guid };
            Some(Partition { number, start, sectors, kind })
        };
        used.filter_map(partition).collect()
    }

    /// Extends the table to a disk of `sectors` sectors: an image is usually made for a smaller disk.
    pub fn extend_to(&mut self, sectors: u64) {
        self.last_usable = sectors.saturating_sub(self.entry_sectors() + 2);
    }

    /// Adds a partition of `sectors` at the end, aligned to a MiB, and returns it. `None` if there is no space or no free entry.
    pub fn append(&mut self, sectors: u64, name: &str, guid: [u8; 16]) -> Option<Partition> {
        let align = (1 << 20) / self.sector;
        let taken = self.partitions().iter().map(|p| p.start.saturating_add(p.sectors)).max();
        let start = (self.last_usable + 1).checked_sub(sectors)? / align * align;
        if start < taken.unwrap_or(0).max(self.first_usable) {
            return None;
        }
        self.put(start..start + sectors, LINUX_DATA, name, guid)
    }

    /// Adds a partition at this place. `None` if the place is not free, or no entry is.
    pub fn add(
        &mut self,
        place: Range<u64>,
        type_guid: [u8; 16],
        name: &str,
        guid: [u8; 16],
    ) -> Option<Partition> {
        let is_inside = place.start >= self.first_usable && place.end <= self.last_usable + 1;
        let is_apart = |it: Partition| {
            place.end <= it.start || place.start >= it.start.saturating_add(it.sectors)
        };
        let is_free = is_inside && !place.is_empty() && self.partitions().into_iter().all(is_apart);
        if is_free { self.put(place, type_guid, name, guid) } else { None }
    }

    fn put(
        &mut self,
        place: Range<u64>,
        type_guid: [u8; 16],
        name: &str,
        guid: [u8; 16],
    ) -> Option<Partition> {
        let size = self.entry_size as usize;
        let free = self.entries.chunks_exact(size).position(|entry| entry[..16] == [0; 16])?;
        let entry = &mut self.entries[free * size..(free + 1) * size];
        entry.fill(0);
        entry[..16].copy_from_slice(&type_guid);
        entry[16..32].copy_from_slice(&guid);
        entry[32..40].copy_from_slice(&place.start.to_le_bytes());
        entry[40..48].copy_from_slice(&(place.end - 1).to_le_bytes());
        for (pair, unit) in entry[56..128].chunks_exact_mut(2).zip(name.encode_utf16()) {
            pair.copy_from_slice(&unit.to_le_bytes());
        }
        let kind = PartitionKind::Gpt { type_guid, guid };
        let (start, sectors) = (place.start, place.end - place.start);
        Some(Partition { number: free as u32 + 1, start, sectors, kind })
    }

    /// Writes the table to a disk without one, with a protective MBR (UEFI 2.10 §5.2.3).
    pub fn write_new(&self, disk: &mut GuardedDisk) -> io::Result<()> {
        let mut first = vec![0; self.sector as usize];
        first[446..462]
            .copy_from_slice(&[0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0]);
        first[510..512].copy_from_slice(&[0x55, 0xaa]);
        disk.write_at(0, &first)?;
        self.write(disk)
    }

    /// Writes both copies, and makes the protective MBR cover the disk (UEFI 2.10 §5.2.3).
    pub fn write(&self, disk: &mut GuardedDisk) -> io::Result<()> {
        let sectors = disk.size() / self.sector;
        let last = sectors - 1;
        let backup_entries = last - self.entry_sectors();
        let mut entries = self.entries.clone();
        entries.resize((self.entry_sectors() * self.sector) as usize, 0);
        disk.write_at(2 * self.sector, &entries)?;
        disk.write_at(self.sector, &self.header(1, last, 2))?;
        disk.write_at(backup_entries * self.sector, &entries)?;
        disk.write_at(last * self.sector, &self.header(last, 1, backup_entries))?;

        let mut first = vec![0; self.sector as usize];
        disk.read_at(0, &mut first)?;
        for entry in first[446..510].chunks_exact_mut(16).filter(|entry| entry[4] == 0xee) {
            if u32_at(entry, 8) == 1 {
                let length = u32::try_from(last).unwrap_or(u32::MAX);
                entry[12..16].copy_from_slice(&length.to_le_bytes());
            }
        }
        disk.write_at(0, &first)
    }

    fn entry_sectors(&self) -> u64 {
        (self.entries.len() as u64).div_ceil(self.sector)
    }

    fn header(&self, own: u64, other: u64, entries_at: u64) -> Vec<u8> {
        let mut header = vec![0; self.sector as usize];
        header[..8].copy_from_slice(b"EFI PART");
        header[8..12].copy_from_slice(&[0, 0, 1, 0]);
        header[12..16].copy_from_slice(&(HEADER as u32).to_le_bytes());
        header[24..32].copy_from_slice(&own.to_le_bytes());
        header[32..40].copy_from_slice(&other.to_le_bytes());
        header[40..48].copy_from_slice(&self.first_usable.to_le_bytes());
        header[48..56].copy_from_slice(&self.last_usable.to_le_bytes());
        header[56..72].copy_from_slice(&self.disk_guid);
        header[72..80].copy_from_slice(&entries_at.to_le_bytes());
        let count = self.entries.len() as u32 / self.entry_size;
        header[80..84].copy_from_slice(&count.to_le_bytes());
        header[84..88].copy_from_slice(&self.entry_size.to_le_bytes());
        header[88..92].copy_from_slice(&crc32(&self.entries).to_le_bytes());
        let crc = crc32(&header[..HEADER]);
        header[16..20].copy_from_slice(&crc.to_le_bytes());
        header
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::super::device::Device;
    use super::*;

    pub(crate) struct Memory(pub(crate) Vec<u8>);

    impl Blocks for Memory {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }
        fn sector(&self) -> u64 {
            512
        }
        fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
            bytes.copy_from_slice(&self.0[offset as usize..offset as usize + bytes.len()]);
            Ok(())
        }
    }

    /// An image of `mib` MiB with a GPT that holds one EFI system partition from 1 to 2 MiB.
    pub(crate) fn image(mib: u64) -> Vec<u8> {
        let sectors = mib * 2048;
        let mut table = Gpt {
            disk_guid: [7; 16],
            first_usable: 34,
            last_usable: sectors - 34,
            entry_size: 128,
            entries: vec![0; 128 * 128],
            sector: 512,
        };
        table.entries[..16].copy_from_slice(&EFI_SYSTEM);
        table.entries[16..32].copy_from_slice(&[9; 16]);
        table.entries[32..40].copy_from_slice(&2048_u64.to_le_bytes());
        table.entries[40..48].copy_from_slice(&4095_u64.to_le_bytes());
        let mut image = vec![0; (mib << 20) as usize];
        image[446 + 4] = 0xee;
        image[446 + 8] = 1;
        image[510..512].copy_from_slice(&[0x55, 0xaa]);
        image[512..1024].copy_from_slice(&table.header(1, sectors - 1, 2));
        image[1024..1024 + 16384].copy_from_slice(&table.entries);
        let backup = image.len() - 512 - 16384;
        image[backup..backup + 16384].copy_from_slice(&table.entries);
        let at = image.len() - 512;
        image[at..].copy_from_slice(&table.header(sectors - 1, 1, sectors - 33));
        image
    }

    #[test]
    fn the_backup_is_read_if_the_primary_is_damaged() {
        let mut image = image(4);
        let whole = read(&Memory(image.clone())).unwrap().unwrap();
        image[512] = 0;
        let found = read(&Memory(image)).unwrap().unwrap();
        assert_eq!(found.partitions(), whole.partitions());
        assert_eq!(whole.partitions().len(), 1);
        assert!(whole.partitions()[0].is_efi_system());
    }

    /// Reads the primary table of an image whose header was changed by `edit` and has correct checksums.
    fn read_edited(edit: impl FnOnce(&mut [u8])) -> Option<Gpt> {
        let mut image = image(4);
        edit(&mut image[512..1024]);
        let header = &image[512..1024];
        let length = u32_at(header, 80) as usize * u32_at(header, 84) as usize;
        let entries = crc32(&image[1024..1024 + length]);
        let size = u32_at(header, 12) as usize;
        let header = &mut image[512..];
        header[88..92].copy_from_slice(&entries.to_le_bytes());
        header[16..20].fill(0);
        let whole = crc32(&header[..size]);
        header[16..20].copy_from_slice(&whole.to_le_bytes());
        read_at(&Memory(image), 1).unwrap()
    }

    #[test]
    fn a_header_is_refused_for_each_wrong_field() {
        let put = |at: usize, value: u32| {
            move |header: &mut [u8]| header[at..at + 4].copy_from_slice(&value.to_le_bytes())
        };
        let whole = read(&Memory(image(4))).unwrap();
        assert_eq!(read_edited(|_| {}), whole);
        // A longer header, and the most and the largest entries.
        for (at, value) in [(12, 512), (80, 1024), (80, 1), (84, 4096)] {
            assert!(read_edited(put(at, value)).is_some(), "{value} at {at}");
        }
        for (field, at, value) in [
            ("signature", 0, 0),
            ("size below the fields", 12, 91),
            ("size above the sector", 12, 513),
            ("own position", 24, 2),
            ("high half of the own position", 28, 1),
            ("position of the entries", 72, 8191),
            ("high half of the position of the entries", 76, 1),
            ("no entries", 80, 0),
            ("too many entries", 80, 1025),
            ("short entries", 84, 64),
            ("long entries", 84, 4224),
            ("uneven entries", 84, 192),
        ] {
            assert_eq!(read_edited(put(at, value)), None, "{field}");
        }
        for at in [512 + 16, 512 + 60, 512 + 88, 1024 + 300] {
            let mut image = image(4);
            image[at] ^= 1;
            assert_eq!(read_at(&Memory(image), 1).unwrap(), None, "the checksum of byte {at}");
        }
    }

    #[test]
    fn numbers_and_checksums_are_those_of_the_specification() {
        // The check value of CRC-32 (ISO 3309, the polynomial of UEFI 2.10 §5.3.2).
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(u64_at(&[9, 1, 2, 3, 4, 5, 6, 7, 8], 1), 0x0807_0605_0403_0201);
    }

    #[test]
    fn the_smallest_disk_with_a_table_has_six_sectors() {
        assert_eq!(read(&Memory(vec![0; 512])).unwrap(), None);
        let mut table = read(&Memory(image(4))).unwrap().unwrap();
        table.entries.truncate(512);
        let mut disk = vec![0; 6 * 512];
        disk[512..1024].copy_from_slice(&table.header(1, 5, 2));
        disk[1024..1536].copy_from_slice(&table.entries);
        assert_eq!(read(&Memory(disk)).unwrap(), Some(table));
    }

    #[test]
    fn both_copies_are_written_at_the_ends_of_a_larger_disk() {
        let mut image = image(4);
        // A used last entry, so that each entry has to be copied.
        image[1024 + 127 * 128..1024 + 127 * 128 + 16].fill(8);
        let mut table = read(&Memory(image.clone())).unwrap().unwrap();
        table.entries[127 * 128..127 * 128 + 16].fill(8);
        image[512..1024].copy_from_slice(&table.header(1, 8191, 2));

        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, []).unwrap();
        let device = Device::open(&path, 32 << 20, 512).unwrap();
        let mut disk = GuardedDisk::guard(device).unwrap();
        disk.write_at(0, &image).unwrap();
        move_backup_to_end(&mut disk).unwrap();
        disk.release().unwrap();

        let bytes = std::fs::read(&path).unwrap();
        let last = 32 * 2048 - 1;
        table.last_usable = last - 33;
        assert_eq!(u32_at(&bytes, 446 + 12), last as u32, "the protective MBR covers the disk");
        assert_eq!(bytes[1024..1024 + 16384], table.entries);
        assert_eq!(bytes[bytes.len() - 33 * 512..bytes.len() - 512], table.entries);
        for (own, other, entries_at) in [(1, last, 2), (last, 1, last - 32)] {
            let header = &bytes[own as usize * 512..][..512];
            assert_eq!(header, table.header(own, other, entries_at));
            assert_eq!(read_at(&Memory(bytes.clone()), own).unwrap().as_ref(), Some(&table));
        }
        assert!(bytes[1024 + 16384..1 << 20].iter().all(|byte| *byte == 0));
        assert!(bytes[4 << 20..bytes.len() - 33 * 512].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_partition_fits_exactly_behind_the_last_one() {
        let mut table = read(&Memory(image(4))).unwrap().unwrap();
        for (last_usable, want) in
            [(6142, None), (6143, Some(4096)), (8190, Some(4096)), (8191, Some(6144))]
        {
            table.last_usable = last_usable;
            let added = table.clone().append(2048, "x", [1; 16]);
            assert_eq!(added.map(|added| added.start), want, "{last_usable}");
        }
        let mut empty = Gpt { entries: vec![0; 128], first_usable: 2049, ..table };
        empty.last_usable = 4095;
        assert_eq!(
            empty.append(2048, "x", [1; 16]),
            None,
            "it would begin before the usable sectors"
        );
    }

    #[test]
    fn a_new_table_has_partitions_where_they_fit() {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, []).unwrap();
        let device = Device::open(&path, 16 << 20, 512).unwrap();
        let mut table = Gpt::empty(32768, 512, [7; 16]);
        let raid = table.add(4096..8192, LINUX_RAID, "md0", [1; 16]).unwrap();
        let system = table.add(34..4096, EFI_SYSTEM, "esp", [2; 16]).unwrap();
        assert_eq!((raid.number, system.number), (1, 2));
        for place in [33..34, 4095..4097, 8191..8192, 5000..5001, 0..40000, 9000..9000, 9000..32736]
        {
            assert_eq!(table.add(place.clone(), LINUX_RAID, "x", [3; 16]), None, "{place:?}");
        }
        table.add(9000..32735, LINUX_RAID, "x", [3; 16]).unwrap();
        let mut disk = GuardedDisk::guard(device).unwrap();
        table.write_new(&mut disk).unwrap();
        disk.release().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(read(&Memory(bytes.clone())).unwrap(), Some(table));
        assert_eq!((bytes[446 + 4], u32_at(&bytes, 446 + 12)), (0xee, 32767));
        assert_eq!(bytes[510..512], [0x55, 0xaa]);
    }

    #[test]
    fn a_partition_is_appended_at_the_end_of_the_stretched_table() {
        let mut table = read(&Memory(image(4))).unwrap().unwrap();
        table.extend_to(16 * 2048);
        let added = table.append(2048, "config-2", [1; 16]).unwrap();
        assert_eq!((added.number, added.start, added.sectors), (2, 14 * 2048, 2048));
        assert_eq!(table.append(14 * 2048, "more", [2; 16]), None);
    }

    proptest! {
        #[test]
        fn no_damage_panics(at in 512_usize..17920, with: [u8; 8]) {
            let mut image = image(4);
            image[at..at + 8].copy_from_slice(&with);
            // The checksum is corrected, so that the parser does not stop there and reads the fields.
            if at < 600 {
                image[528..532].fill(0);
                let crc = crc32(&image[512..512 + HEADER]);
                image[528..532].copy_from_slice(&crc.to_le_bytes());
            }
            if let Some(mut table) = read(&Memory(image)).unwrap() {
                table.partitions();
                table.extend_to(8192);
                table.append(2048, "x", [1; 16]);
            }
        }
    }
}
