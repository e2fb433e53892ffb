//! The partitions for a partition image, in the order and with the sizes of ironic-python-agent (`disk_utils.py`, `make_partitions`): what the
//! firmware starts from, ephemeral, swap, config drive, and the root partition last, so that the installed system can extend it.

use std::io;
use std::ops::Range;

use agent_protocol::{DiskLabel, DiskLayout};
use hardware::BootMode;

use super::gpt::{BIOS_BOOT, EFI_SYSTEM, Gpt, LINUX_DATA, LINUX_SWAP};
use super::guard::GuardedDisk;
use super::mbr;

const MIB: u64 = 1 << 20;
/// Size of the EFI system partition in MiB.
const EFI_SYSTEM_MIB: u64 = 550;
/// Size in MiB of the partition for the boot loader of a disk with a GPT that boots by BIOS.
const BIOS_BOOT_MIB: u64 = 1;

/// The purpose of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    EfiSystem,
    BiosBoot,
    Ephemeral,
    Swap,
    ConfigDrive,
    Root,
}

impl Role {
    /// The type and the name of the partition in a GPT.
    const fn in_gpt(self) -> ([u8; 16], &'static str) {
        match self {
            Role::EfiSystem => (EFI_SYSTEM, "efi-part"),
            Role::BiosBoot => (BIOS_BOOT, "bios-boot"),
            Role::Ephemeral => (LINUX_DATA, "ephemeral0"),
            Role::Swap => (LINUX_SWAP, "swap1"),
            Role::ConfigDrive => (LINUX_DATA, "config-2"),
            Role::Root => (LINUX_DATA, "root"),
        }
    }

    /// The type of the partition in an MBR.
    const fn in_mbr(self) -> u8 {
        match self {
            Role::EfiSystem => mbr::EFI_SYSTEM,
            Role::Swap => mbr::LINUX_SWAP,
            Role::BiosBoot | Role::Ephemeral | Role::ConfigDrive | Role::Root => mbr::LINUX,
        }
    }

    /// The key under which ironic-python-agent reports the partition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::EfiSystem => "efi system partition",
            Role::BiosBoot => "BIOS Boot partition",
            Role::Ephemeral => "ephemeral",
            Role::Swap => "swap",
            Role::ConfigDrive => "configdrive",
            Role::Root => "root",
        }
    }
}

/// A partition that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPartition {
    pub role: Role,
    /// The kernel's number of the partition.
    pub number: u32,
    /// The place on the disk in bytes, with ends that are multiples of a MiB.
    pub range: Range<u64>,
    /// The id of the partition in a GPT, in the byte order of the disk.
    pub guid: [u8; 16],
}

/// The partitions of a disk that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionPlan {
    pub label: DiskLabel,
    pub partitions: Vec<PlannedPartition>,
}

impl PartitionPlan {
    /// Plans the partitions of a disk for a machine that boots in this mode.
    pub fn new(layout: &DiskLayout, mode: BootMode, config_drive_bytes: u64) -> Self {
        let label = match mode {
            BootMode::Uefi => DiskLabel::Gpt,
            BootMode::Bios => layout.disk_label.unwrap_or(DiskLabel::Msdos),
        };
        let boot = match (mode, label) {
            (BootMode::Uefi, _) => (Role::EfiSystem, EFI_SYSTEM_MIB),
            (BootMode::Bios, DiskLabel::Gpt) => (Role::BiosBoot, BIOS_BOOT_MIB),
            (BootMode::Bios, DiskLabel::Msdos) => (Role::BiosBoot, 0),
        };
        let sizes = [
            boot,
            (Role::Ephemeral, layout.ephemeral_mb.into()),
            (Role::Swap, layout.swap_mb.into()),
            (Role::ConfigDrive, config_drive_bytes.div_ceil(MIB)),
            (Role::Root, layout.root_mb.into()),
        ];
        let mut at = MIB;
        let mut partitions = Vec::new();
        for (number, (role, mib)) in (1..).zip(sizes.into_iter().filter(|(_, mib)| *mib > 0)) {
            let range = at..at + mib * MIB;
            at = range.end;
            let guid = uuid::Uuid::new_v4().into_bytes();
            partitions.push(PlannedPartition { role, number, range, guid });
        }
        PartitionPlan { label, partitions }
    }

    /// Returns the partition of this role.
    pub fn get(&self, role: Role) -> Option<&PlannedPartition> {
        self.partitions.iter().find(|partition| partition.role == role)
    }

    /// Size in bytes that a disk needs for the partitions and their table.
    pub fn needed_bytes(&self) -> u64 {
        let end = self.partitions.last().map_or(0, |last| last.range.end);
        match self.label {
            // The backup of the table.
            DiskLabel::Gpt => end + MIB,
            DiskLabel::Msdos => end,
        }
    }

    /// Writes the partition table.
    pub fn write(&self, disk: &mut GuardedDisk) -> io::Result<()> {
        let sector = u64::from(disk.device().sector());
        let place = |range: &Range<u64>| range.start / sector..range.end / sector;
        let no_room = || io::Error::other("the partition table has no room");
        match self.label {
            DiskLabel::Gpt => {
                let guid = uuid::Uuid::new_v4().into_bytes();
                let mut table = Gpt::empty(disk.device().size() / sector, sector, guid);
                for PlannedPartition { role, range, guid, .. } in &self.partitions {
                    let (kind, name) = role.in_gpt();
                    table.add(place(range), kind, name, *guid).ok_or_else(no_room)?;
                }
                table.write_new(disk)
            }
            DiskLabel::Msdos => {
                let rows = self.partitions.iter().map(|partition| mbr::Row {
                    kind: partition.role.in_mbr(),
                    is_active: partition.role == Role::Root,
                    place: place(&partition.range),
                });
                let table = mbr::table(rows, rand::random()).ok_or_else(no_room)?;
                let mut first = vec![0; sector as usize];
                disk.read_at(0, &mut first)?;
                first[mbr::PLACE].copy_from_slice(&table);
                disk.write_at(0, &first)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::device::Device;
    use super::super::table::partitions;
    use super::*;

    const LAYOUT: DiskLayout = DiskLayout {
        root_mb: 20,
        swap_mb: 3,
        ephemeral_mb: 5,
        ephemeral_format: None,
        preserve_ephemeral: false,
        disk_label: None,
    };

    /// The roles of a plan, with the starts and ends in MiB.
    fn shown(plan: &PartitionPlan) -> String {
        let one = |it: &PlannedPartition| {
            format!("{} {:?} {}-{}", it.number, it.role, it.range.start >> 20, it.range.end >> 20)
        };
        plan.partitions.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_root_partition_is_the_last() {
        let gpt = DiskLayout { disk_label: Some(DiskLabel::Gpt), ..LAYOUT };
        let small = DiskLayout { swap_mb: 0, ephemeral_mb: 0, ..LAYOUT };
        for (layout, mode, drive, want) in [
            (
                &LAYOUT,
                BootMode::Bios,
                1,
                "1 Ephemeral 1-6, 2 Swap 6-9, 3 ConfigDrive 9-10, 4 Root 10-30",
            ),
            (&gpt, BootMode::Bios, 0, "1 BiosBoot 1-2, 2 Ephemeral 2-7, 3 Swap 7-10, 4 Root 10-30"),
            (&small, BootMode::Bios, 0, "1 Root 1-21"),
            (
                &small,
                BootMode::Uefi,
                MIB + 1,
                "1 EfiSystem 1-551, 2 ConfigDrive 551-553, 3 Root 553-573",
            ),
        ] {
            assert_eq!(shown(&PartitionPlan::new(layout, mode, drive)), want);
        }
    }

    #[test]
    fn the_table_has_each_partition() {
        for (mode, size) in [(BootMode::Bios, 30 << 20), (BootMode::Uefi, 581 << 20)] {
            let folder = crate::scratch::Folder::new();
            let path = folder.path().join("disk");
            std::fs::write(&path, []).unwrap();
            let mut disk = GuardedDisk::guard(Device::open(&path, size, 512).unwrap()).unwrap();
            let plan = PartitionPlan::new(&LAYOUT, mode, 1);
            assert_eq!(plan.needed_bytes(), size);
            plan.write(&mut disk).unwrap();
            let found = partitions(&disk).unwrap();
            let places: Vec<_> = found.iter().map(|it| (it.number, it.start, it.end())).collect();
            let sector = |partition: &PlannedPartition| {
                (partition.number, partition.range.start / 512, partition.range.end / 512)
            };
            assert_eq!(places, plan.partitions.iter().map(sector).collect::<Vec<_>>());
            assert_eq!(found[0].is_efi_system(), mode == BootMode::Uefi);
        }
    }
}
