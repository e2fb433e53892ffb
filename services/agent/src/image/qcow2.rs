//! The header and tables of a qcow2 image (QEMU's `docs/interop/qcow2.txt`). The parser does no I/O.
//!
//! An image is untrusted input. It must be complete (no backing file, no external data, no encryption), its tables are limited in size, and
//! every unknown feature is refused. Clusters below 4 KiB are refused too, because they may be smaller than a disk's sector.

mod map;

use std::ops::Range;

pub use self::map::{ClusterTable, Content, Extent, Map};

/// The first bytes of every qcow2 image.
pub const MAGIC: [u8; 4] = *b"QFI\xfb";
/// Length of a version 3 header including the compression type.
const HEADER: usize = 112;
/// QEMU's own limit.
const LARGEST_L1: u64 = 32 << 20;

/// About 128 MiB of memory, which is enough for 256 GiB of data even if no two clusters are adjacent.
const MOST_EXTENTS: usize = 4 << 20;

/// Incompatible features, one bit each.
const DIRTY: u64 = 1;
const CORRUPT: u64 = 1 << 1;
const EXTERNAL_DATA: u64 = 1 << 2;
const COMPRESSION_TYPE: u64 = 1 << 3;

/// The reasons why an image is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Qcow2Error {
    /// The header is cut off.
    #[error("its header is incomplete")]
    ShortHeader,
    /// The version is neither 2 nor 3.
    #[error("it has version {0}; the agent reads 2 and 3")]
    Version(u32),
    #[error("it needs a backing file")]
    BackingFile,
    #[error("it keeps its data in another file")]
    ExternalData,
    #[error("it is encrypted")]
    Encrypted,
    /// QEMU marked the image as corrupt.
    #[error("it is marked as corrupt")]
    Corrupt,
    /// Extended L2 entries, or a newer feature.
    #[error("it has unknown features: {0:#x}")]
    Features(u64),
    /// The cluster size is not between 4 KiB and 2 MiB.
    #[error("its clusters have 2^{0} bytes; the agent reads 4 KiB to 2 MiB")]
    ClusterSize(u32),
    /// The compression is neither zlib nor zstd.
    #[error("its compression type {0} is unknown")]
    Compression(u8),
    /// The cluster tables are too large, too small or misplaced.
    #[error("its cluster tables are invalid")]
    Tables,
    /// The image has more extents than this agent keeps in memory.
    #[error(
        "it has more than {MOST_EXTENTS} extents; convert it once with qemu-img to reorder them"
    )]
    Fragmented,
    /// A compressed cluster cannot be decompressed.
    #[error("its compressed cluster at byte {0} cannot be decompressed")]
    Cluster(u64),
    /// A cluster lies beyond the end of the file.
    #[error("its tables point beyond its end, at byte {0}")]
    BehindEnd(u64),
}

/// The compression of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Deflate without a header.
    Zlib,
    Zstd,
}

/// The fields of a header that the agent uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    cluster_bits: u32,
    virtual_size: u64,
    l1_offset: u64,
    l1_entries: u64,
    compression: Compression,
    /// The header's bytes, to compare them with those that the checksum covers.
    raw: Vec<u8>,
}

impl Header {
    /// Parses a header from the image's first bytes.
    pub fn parse(start: &[u8]) -> Result<Self, Qcow2Error> {
        let raw = start.get(..HEADER).ok_or(Qcow2Error::ShortHeader)?;
        let u32_at =
            |at: usize| u32::from_be_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) << 32 | u64::from(u32_at(at + 4));
        if raw[..4] != MAGIC {
            return Err(Qcow2Error::ShortHeader);
        }
        let version = u32_at(4);
        if !matches!(version, 2 | 3) {
            return Err(Qcow2Error::Version(version));
        }
        if u64_at(8) != 0 || u32_at(16) != 0 {
            return Err(Qcow2Error::BackingFile);
        }
        if u32_at(32) != 0 {
            return Err(Qcow2Error::Encrypted);
        }
        let features = if version == 3 { u64_at(72) } else { 0 };
        if features & EXTERNAL_DATA != 0 {
            return Err(Qcow2Error::ExternalData);
        }
        if features & CORRUPT != 0 {
            return Err(Qcow2Error::Corrupt);
        }
        // An unclean shutdown leaves only wrong reference counts, which this agent does not use.
        match features & !(DIRTY | COMPRESSION_TYPE) {
            0 => {}
            unknown => return Err(Qcow2Error::Features(unknown)),
        }
        let compression = match (features & COMPRESSION_TYPE != 0, raw[104]) {
            (false, _) | (true, 0) => Compression::Zlib,
            (true, 1) => Compression::Zstd,
            (true, other) => return Err(Qcow2Error::Compression(other)),
        };
        let cluster_bits = u32_at(20);
        if !(12..=21).contains(&cluster_bits) {
            return Err(Qcow2Error::ClusterSize(cluster_bits));
        }
        let virtual_size = u64_at(24);
        // An L2 table fills one cluster with entries of 8 bytes, one for each data cluster.
        let l1_entries = virtual_size.div_ceil(1 << (2 * cluster_bits - 3));
        let l1_offset = u64_at(40);
        let sane = u64::from(u32_at(36)) >= l1_entries
            && l1_entries * 8 <= LARGEST_L1
            && l1_offset.is_multiple_of(1 << cluster_bits)
            && l1_offset < 1 << 56
            && (l1_offset > 0 || l1_entries == 0);
        if !sane {
            return Err(Qcow2Error::Tables);
        }
        Ok(Header {
            cluster_bits,
            virtual_size,
            l1_offset,
            l1_entries,
            compression,
            raw: raw.to_vec(),
        })
    }

    /// Size in bytes of the disk that the image contains.
    pub fn virtual_size(&self) -> u64 {
        self.virtual_size
    }

    /// Position of the L1 table, which lists the L2 tables.
    pub fn l1_range(&self) -> Range<u64> {
        self.l1_offset..self.l1_offset + self.l1_entries * 8
    }

    /// Size of a cluster in bytes.
    pub fn cluster(&self) -> u64 {
        1 << self.cluster_bits
    }

    /// The compression of the image's clusters.
    pub fn compression(&self) -> Compression {
        self.compression
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses a valid header after `change` has modified it.
    pub(super) fn header(change: impl FnOnce(&mut Vec<u8>)) -> Result<Header, Qcow2Error> {
        let mut raw = vec![0; HEADER];
        raw[..4].copy_from_slice(&MAGIC);
        raw[4..8].copy_from_slice(&3_u32.to_be_bytes());
        raw[20..24].copy_from_slice(&16_u32.to_be_bytes());
        raw[24..32].copy_from_slice(&(1_u64 << 30).to_be_bytes());
        raw[36..40].copy_from_slice(&2_u32.to_be_bytes());
        raw[40..48].copy_from_slice(&0x30000_u64.to_be_bytes());
        raw[100..104].copy_from_slice(&112_u32.to_be_bytes());
        change(&mut raw);
        Header::parse(&raw)
    }

    #[test]
    fn a_complete_image_is_accepted() {
        let header = header(|_| {}).unwrap();
        assert_eq!(header.virtual_size(), 1 << 30);
        assert_eq!(header.l1_range(), 0x30000..0x30010);
    }

    #[test]
    fn external_data_and_unknown_features_are_refused() {
        let refused = |at: usize, byte: u8| header(|raw| raw[at] = byte).unwrap_err();
        assert_eq!(refused(15, 8), Qcow2Error::BackingFile);
        assert_eq!(refused(79, 4), Qcow2Error::ExternalData);
        assert_eq!(refused(79, 2), Qcow2Error::Corrupt);
        assert_eq!(refused(79, 16), Qcow2Error::Features(16));
        assert_eq!(refused(35, 2), Qcow2Error::Encrypted);
        assert_eq!(refused(7, 4), Qcow2Error::Version(4));
        assert_eq!(refused(23, 9), Qcow2Error::ClusterSize(9));
        assert_eq!(refused(39, 1), Qcow2Error::Tables);
        assert_eq!(refused(24, 0xff), Qcow2Error::Tables);
        let compression = header(|raw| {
            raw[79] = 8;
            raw[104] = 7;
        });
        assert_eq!(compression.unwrap_err(), Qcow2Error::Compression(7));
    }

    proptest! {
        #[test]
        fn no_header_panics(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut raw = MAGIC.to_vec();
            raw.extend([0, 0, 0, 3]);
            raw.extend(tail);
            let _ = Header::parse(&raw);
        }
    }
}
