//! A partition of a disk, as its table describes it.

/// A partition of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The kernel's number of the partition.
    pub number: u32,
    /// Number of the first sector.
    pub start: u64,
    pub sectors: u64,
    pub kind: PartitionKind,
}

impl Partition {
    /// Number of the first sector behind the partition.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.sectors)
    }
}

/// The part of a partition's entry that depends on the kind of table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionKind {
    /// An entry of a GPT (UEFI 2.10 §5.3.3).
    Gpt {
        /// In the byte order of the disk.
        type_guid: [u8; 16],
        /// In the byte order of the disk.
        guid: [u8; 16],
    },
    /// An entry of an MBR.
    Mbr {
        type_octet: u8,
        /// The signature of the disk, in the byte order of the disk.
        signature: [u8; 4],
    },
}
