//! The partitions of a disk, from a GPT or an MBR.

use std::io;

use super::device::Device;
use super::guard::GuardedDisk;
use super::{gpt, mbr};

/// A source of partition tables. Offsets and lengths are multiples of the sector size.
pub trait Blocks {
    /// Size in bytes.
    fn size(&self) -> u64;
    /// Size of a logical sector in bytes.
    fn sector(&self) -> u64;
    /// Fills `bytes` with the data at `offset`.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

impl Blocks for Device {
    fn size(&self) -> u64 {
        Device::size(self)
    }

    fn sector(&self) -> u64 {
        u64::from(Device::sector(self))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        Device::read_at(self, offset, bytes)
    }
}

impl Blocks for GuardedDisk {
    fn size(&self) -> u64 {
        self.device().size()
    }

    fn sector(&self) -> u64 {
        u64::from(self.device().sector())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        GuardedDisk::read_at(self, offset, bytes)
    }
}

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

impl Partition {
    /// Whether firmware looks for boot loaders in this partition (UEFI 2.10 §13.3).
    pub fn is_efi_system(&self) -> bool {
        match &self.kind {
            PartitionKind::Gpt { type_guid, .. } => *type_guid == gpt::EFI_SYSTEM,
            PartitionKind::Mbr { type_octet, .. } => *type_octet == mbr::EFI_SYSTEM,
        }
    }
}

/// Returns every partition in the disk's GPT or, if it has none, in its MBR. A damaged GPT is read from its backup.
pub fn partitions(disk: &impl Blocks) -> io::Result<Vec<Partition>> {
    match gpt::read(disk)? {
        Some(table) => Ok(table.partitions()),
        None => mbr::partitions(disk),
    }
}
