//! Maps the bytes of a qcow2 image to places on the disk.

use std::ops::Range;

use ring::digest::{Digest, SHA256, digest};

use super::{Header, MOST_EXTENTS, Qcow2Error};

/// Adjacent clusters are joined up to this length.
const LONGEST_EXTENT: u64 = 4 << 20;

const OFFSET_BITS: u64 = 0x00ff_ffff_ffff_fe00;
const COMPRESSED: u64 = 1 << 62;
const ZERO: u64 = 1;

/// A run of bytes in the image file, and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Position of the first byte in the file.
    pub host: u64,
    /// Length in the file, in bytes.
    pub length: u32,
    pub what: Content,
}

/// The meaning of a run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Data for the disk, from this offset on.
    Data(u64),
    /// One compressed cluster for this offset of the disk.
    Compressed(u64),
    /// A table that was read before; the number of its digest.
    Table(u32),
}

/// Position of an L2 table in the file, and the parts of the disk that it describes.
pub type ClusterTable = (Range<u64>, Vec<u64>);

/// The content of all tables of an image.
#[derive(Debug)]
pub struct Map {
    header: Header,
    extents: Vec<Extent>,
    digests: Vec<Digest>,
}

impl Map {
    /// Makes a map without clusters.
    pub fn new(header: Header) -> Self {
        let raw = header.raw.clone();
        let mut map = Map { header, extents: Vec::new(), digests: Vec::new() };
        map.remember(0, &raw);
        map
    }

    /// Size in bytes of the disk that the image contains.
    pub fn virtual_size(&self) -> u64 {
        self.header.virtual_size
    }

    /// The header of the image.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the digest of a table as it was read at first.
    pub fn digest(&self, number: u32) -> Option<&[u8]> {
        self.digests.get(number as usize).map(Digest::as_ref)
    }

    /// Keeps the digest of a table. The table passes again in the download that the checksum covers, and must be the same then.
    fn remember(&mut self, host: u64, bytes: &[u8]) {
        for (at, piece) in bytes.chunks(LONGEST_EXTENT as usize).enumerate() {
            let what = Content::Table(self.digests.len() as u32);
            let host = host + at as u64 * LONGEST_EXTENT;
            self.digests.push(digest(&SHA256, piece));
            self.extents.push(Extent { host, length: piece.len() as u32, what });
        }
    }

    /// Reads the L1 table: returns the position of each L2 table, in the order of the file, with the parts of the disk that it describes.
    pub fn add_l1(&mut self, bytes: &[u8]) -> Result<Vec<ClusterTable>, Qcow2Error> {
        self.remember(self.header.l1_offset, bytes);
        let mut tables: Vec<(u64, u64)> = Vec::new();
        for (index, entry) in entries(bytes).enumerate() {
            let host = entry & OFFSET_BITS;
            if !host.is_multiple_of(self.header.cluster()) {
                return Err(Qcow2Error::Tables);
            }
            if host != 0 {
                tables.push((host, index as u64));
            }
        }
        tables.sort_unstable();
        let groups = tables.chunk_by(|a, b| a.0 == b.0);
        let table = |group: &[(u64, u64)]| {
            let host = group.first().map_or(0, |first| first.0);
            (host..host + self.header.cluster(), group.iter().map(|(_, index)| *index).collect())
        };
        Ok(groups.map(table).collect())
    }

    /// Reads one L2 table, which describes the parts of the disk in `indices`.
    pub fn add_l2(&mut self, host: u64, bytes: &[u8], indices: &[u64]) -> Result<(), Qcow2Error> {
        self.remember(host, bytes);
        let cluster = self.header.cluster();
        for index in indices {
            let part = index * (cluster / 8) * cluster;
            for (at, entry) in (0_u64..).zip(entries(bytes)) {
                let guest = part + at * cluster;
                if guest >= self.header.virtual_size {
                    break;
                }
                if let Some(extent) = self.extent(entry, guest)? {
                    self.push(extent)?;
                }
            }
        }
        Ok(())
    }

    fn extent(&self, entry: u64, guest: u64) -> Result<Option<Extent>, Qcow2Error> {
        if entry & COMPRESSED != 0 {
            let offset_bits = 62 - (self.header.cluster_bits - 8);
            let host = entry & ((1 << offset_bits) - 1);
            let sectors = (entry & (COMPRESSED - 1)) >> offset_bits;
            let length = ((sectors + 1) * 512 - (host & 511)) as u32;
            return Ok(Some(Extent { host, length, what: Content::Compressed(guest) }));
        }
        let host = entry & OFFSET_BITS;
        if entry & ZERO != 0 || host == 0 {
            return Ok(None);
        }
        if !host.is_multiple_of(self.header.cluster()) {
            return Err(Qcow2Error::Tables);
        }
        let length = self.header.cluster() as u32;
        Ok(Some(Extent { host, length, what: Content::Data(guest) }))
    }

    fn push(&mut self, extent: Extent) -> Result<(), Qcow2Error> {
        if let Some(last) = self.extents.last_mut()
            && follows(last, &extent)
        {
            last.length += extent.length;
            return Ok(());
        }
        if self.extents.len() >= MOST_EXTENTS {
            return Err(Qcow2Error::Fragmented);
        }
        self.extents.push(extent);
        Ok(())
    }

    /// Returns every run of bytes, in the order of the file.
    pub fn in_file_order(&mut self) -> &[Extent] {
        self.extents.sort_unstable_by_key(|extent| extent.host);
        self.extents.dedup_by(|next, last| {
            let joined = follows(last, next);
            if joined {
                last.length += next.length;
            }
            joined
        });
        &self.extents
    }

    /// Returns the ranges of the disk without a cluster, which read as zeros.
    pub fn gaps(&self) -> Vec<Range<u64>> {
        let size = self.header.virtual_size;
        let cluster = self.header.cluster();
        let range = |extent: &Extent| match extent.what {
            Content::Data(guest) => Some((guest, guest + u64::from(extent.length))),
            Content::Compressed(guest) => Some((guest, guest + cluster)),
            Content::Table(_) => None,
        };
        let mut filled: Vec<(u64, u64)> = self.extents.iter().filter_map(range).collect();
        filled.sort_unstable();
        let mut gaps = Vec::new();
        let mut at = 0;
        for (start, end) in filled {
            if start > at {
                gaps.push(at..start);
            }
            at = at.max(end);
        }
        if at < size {
            gaps.push(at..size);
        }
        gaps
    }
}

/// Whether `next` continues `last` both in the file and on the disk.
fn follows(last: &Extent, next: &Extent) -> bool {
    let (Content::Data(before), Content::Data(after)) = (last.what, next.what) else {
        return false;
    };
    let length = u64::from(last.length);
    last.host + length == next.host
        && before + length == after
        && length + u64::from(next.length) <= LONGEST_EXTENT
}

fn entries(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes
        .chunks_exact(8)
        .map(|raw| raw.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::header;
    use super::*;

    fn table(entries: &[u64]) -> Vec<u8> {
        let mut bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_be_bytes()).collect();
        bytes.resize(1 << 16, 0);
        bytes
    }

    #[test]
    fn clusters_next_to_each_other_are_one_run_and_the_rest_is_gaps() {
        let mut map = Map::new(header(|_| {}).unwrap());
        let l1: Vec<u8> = [0x40000_u64 | 1 << 63, 0].iter().flat_map(|e| e.to_be_bytes()).collect();
        let tables = map.add_l1(&l1).unwrap();
        assert_eq!(tables, [(0x40000..0x50000, vec![0])]);
        let compressed = COMPRESSED | 0x80123 | 1 << 54;
        map.add_l2(0x40000, &table(&[0x50000, 0x60000, compressed, ZERO, 0x70000]), &[0]).unwrap();
        let data = |what: &Content| !matches!(what, Content::Table(_));
        let runs: Vec<Extent> =
            map.in_file_order().iter().copied().filter(|extent| data(&extent.what)).collect();
        let want = [
            Extent { host: 0x50000, length: 0x20000, what: Content::Data(0) },
            Extent { host: 0x70000, length: 0x10000, what: Content::Data(0x40000) },
            Extent { host: 0x80123, length: 1024 - 0x123, what: Content::Compressed(0x20000) },
        ];
        assert_eq!(runs, want);
        assert_eq!(map.gaps(), [0x30000..0x40000, 0x50000..1 << 30]);
    }

    proptest! {
        #[test]
        fn no_tables_panic(
            bits in 12_u32..17,
            l1 in proptest::collection::vec(any::<u64>(), 1..5),
            l2 in proptest::collection::vec(any::<u64>(), 1..64),
        ) {
            let header = header(|raw| {
                raw[20..24].copy_from_slice(&bits.to_be_bytes());
                raw[24..32].copy_from_slice(&(1_u64 << 24).to_be_bytes());
                raw[36..40].copy_from_slice(&64_u32.to_be_bytes());
            });
            let mut map = Map::new(header.unwrap());
            let bytes = |numbers: &[u64]| -> Vec<u8> {
                numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
            };
            let aligned: Vec<u64> = l1.iter().map(|entry| entry << bits).collect();
            for entries in [&l1, &aligned] {
                if let Ok(tables) = map.add_l1(&bytes(entries)) {
                    for (range, indices) in tables {
                        let _ = map.add_l2(range.start, &bytes(&l2), &indices);
                    }
                }
            }
            map.in_file_order();
            map.gaps();
        }
    }
}
