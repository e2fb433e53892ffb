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

#[cfg(test)]
mod tests {
    use super::super::gpt::tests::{Memory, image};
    use super::*;

    #[test]
    fn each_kind_of_table_marks_its_efi_system_partitions() {
        let found = partitions(&Memory(image(4))).unwrap();
        assert_eq!(found.iter().map(Partition::is_efi_system).collect::<Vec<_>>(), [true]);
        let mut disk = vec![0; 1024];
        disk[446..462].copy_from_slice(&[0, 0, 0, 0, 0xef, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
        disk[462..478].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        let found = partitions(&Memory(disk)).unwrap();
        assert_eq!(found.iter().map(Partition::is_efi_system).collect::<Vec<_>>(), [true, false]);
    }
}
