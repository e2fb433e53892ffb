//! Which partitions a disk has, whichever table it keeps them in.

use std::io;

use super::device::Device;
use super::guard::GuardedDisk;
use super::{gpt, mbr};

/// Something partition tables can be read from. Offsets and lengths are multiples of the sector size.
pub trait Blocks {
    /// Bytes.
    fn size(&self) -> u64;
    /// Bytes a logical sector.
    fn sector(&self) -> u64;
    /// Fills `bytes` from `offset`.
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

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// As the kernel numbers it.
    pub number: u32,
    /// First sector.
    pub start: u64,
    /// How many sectors.
    pub sectors: u64,
    /// What its table says of it.
    pub kind: PartitionKind,
}

/// What a partition table says of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionKind {
    /// UEFI 2.10 §5.3.3.
    Gpt {
        /// As on disk.
        type_guid: [u8; 16],
        /// As on disk.
        guid: [u8; 16],
    },
    /// The PC's.
    Mbr {
        /// The type octet.
        type_octet: u8,
        /// The disk's, as on disk.
        signature: [u8; 4],
    },
}

impl Partition {
    /// Whether firmware looks for loaders there (UEFI 2.10 §13.3).
    pub fn is_efi_system(&self) -> bool {
        match &self.kind {
            PartitionKind::Gpt { type_guid, .. } => *type_guid == gpt::EFI_SYSTEM,
            PartitionKind::Mbr { type_octet, .. } => *type_octet == mbr::EFI_SYSTEM,
        }
    }
}

/// Every partition of a disk that either table names, a damaged GPT's from its backup.
pub fn partitions(disk: &impl Blocks) -> io::Result<Vec<Partition>> {
    match gpt::read(disk)? {
        Some(table) => Ok(table.partitions()),
        None => mbr::partitions(disk),
    }
}
