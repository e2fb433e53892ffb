//! The partitions of a disk, from a GPT or an MBR.

use std::io;

use super::blocks::Blocks;
use super::partition::{Partition, PartitionKind};
use super::{gpt, mbr};

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
