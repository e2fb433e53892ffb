//! What a qcow2 image's tables say (QEMU's `docs/interop/qcow2.txt`), parsed without reading anything itself.
//!
//! An image comes from anywhere, so nothing in it is believed: it must stand alone (no backing file, no external
//! data, no encryption), tables are bounded, and every feature that is not known is refused. Clusters below 4 KiB
//! are refused too: they are smaller than a disk's sector may be.

mod map;

use std::ops::Range;

use self::map::MOST_EXTENTS;
pub use self::map::{ClusterTable, Content, Extent, Map};

/// The first bytes of every image.
pub const MAGIC: [u8; 4] = *b"QFI\xfb";
/// As long as version 3's header with the compression type.
const HEADER: usize = 112;
/// As QEMU bounds it.
const LARGEST_L1: u64 = 32 << 20;

/// Incompatible features, by bit.
const DIRTY: u64 = 1;
const CORRUPT: u64 = 1 << 1;
const EXTERNAL_DATA: u64 = 1 << 2;
const COMPRESSION_TYPE: u64 = 1 << 3;

/// Why an image is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Qcow2Error {
    /// Cut off.
    #[error("its header is incomplete")]
    ShortHeader,
    /// Neither 2 nor 3.
    #[error("it has version {0}; 2 and 3 are known")]
    Version(u32),
    /// Overlay.
    #[error("it needs a backing file")]
    BackingFile,
    /// Data elsewhere.
    #[error("it keeps its data in another file")]
    ExternalData,
    /// LUKS or AES.
    #[error("it is encrypted")]
    Encrypted,
    /// Marked so by QEMU.
    #[error("it is marked as corrupt")]
    Corrupt,
    /// Extended L2 entries, or something newer.
    #[error("it has features that are not known here: {0:#x}")]
    Features(u64),
    /// Outside 4 KiB to 2 MiB.
    #[error("its clusters have 2^{0} bytes; 4 KiB to 2 MiB are taken")]
    ClusterSize(u32),
    /// Neither zlib nor zstd.
    #[error("its compression is of type {0}, which is not known here")]
    Compression(u8),
    /// Too large, too small or misplaced.
    #[error("its cluster tables make no sense")]
    Tables,
    /// More pieces than memory is kept for.
    #[error("it is in more than {MOST_EXTENTS} pieces; convert it once to put them in order")]
    Fragmented,
    /// A cluster that cannot be unpacked.
    #[error("its compressed cluster at byte {0} cannot be unpacked")]
    Cluster(u64),
    /// A cluster behind the end.
    #[error("its tables point behind its end, at byte {0}")]
    BehindEnd(u64),
}

/// How compressed clusters are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Deflate without a header.
    Zlib,
    /// Zstandard frames.
    Zstd,
}

/// The parts of a header that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    cluster_bits: u32,
    virtual_size: u64,
    l1_offset: u64,
    l1_entries: u64,
    compression: Compression,
    /// As it was read, to be compared with what is summed up later.
    raw: Vec<u8>,
}

impl Header {
    /// Reads a header from the image's first bytes.
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
        // an unclean shutdown leaves only reference counts behind, which are of no interest here
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
        // an L2 table fills a cluster with entries of 8 bytes, each for a cluster
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

    /// Bytes the disk it holds has.
    pub fn virtual_size(&self) -> u64 {
        self.virtual_size
    }

    /// Where the table of tables lies.
    pub fn l1_range(&self) -> Range<u64> {
        self.l1_offset..self.l1_offset + self.l1_entries * 8
    }

    /// Bytes a cluster has.
    pub fn cluster(&self) -> u64 {
        1 << self.cluster_bits
    }

    /// How clusters are packed.
    pub fn compression(&self) -> Compression {
        self.compression
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A sound header, changed.
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
    fn an_image_that_stands_alone_is_taken() {
        let header = header(|_| {}).unwrap();
        assert_eq!(header.virtual_size(), 1 << 30);
        assert_eq!(header.l1_range(), 0x30000..0x30010);
    }

    #[test]
    fn what_reaches_outside_or_is_not_known_is_refused() {
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
