//! The partitions and arrays of a RAID configuration, with the limits of ironic-python-agent 13 (`raid_utils.py`).

use agent_protocol::Disk;
use hardware::BootMode;

use super::config::{ESP_NAME, LogicalDisk, Size};
use super::error::RaidError;
use crate::disk::gpt::{EFI_SYSTEM, LINUX_RAID};
use crate::hints;

/// Where the first array begins on a machine that boots by UEFI; an EFI system partition of 550 MiB precedes it.
const START_BY_UEFI_MIB: u64 = 551;
/// Where the first array begins on another machine: a partition for a boot loader can precede it.
const START_BY_BIOS_MIB: u64 = 8;
const MIB: u64 = 1 << 20;

/// The new partition table of a disk.
#[derive(Clone, Debug)]
pub(super) struct TablePlan {
    pub(super) disk: Disk,
    pub(super) partitions: Vec<PartitionPlan>,
}

/// A partition, in sectors of its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionPlan {
    pub(super) start: u64,
    pub(super) sectors: u64,
    pub(super) type_guid: [u8; 16],
    pub(super) name: String,
}

/// An array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArrayPlan {
    pub(super) level: &'static str,
    /// The version of the superblock. Version 1.0 is at the end, so that firmware sees the file system in a member.
    pub(super) metadata: &'static str,
    pub(super) name: String,
    /// The devices of the partitions.
    pub(super) members: Vec<String>,
}

/// Plans partitions and arrays, in the order of the partitions' numbers.
pub(super) fn plan(
    logical: &[LogicalDisk],
    disks: &[Disk],
    mode: BootMode,
) -> Result<(Vec<TablePlan>, Vec<ArrayPlan>), RaidError> {
    let mut tables: Vec<DraftTable> = Vec::new();
    let mut arrays = Vec::new();
    let start_mib = match mode {
        BootMode::Uefi => START_BY_UEFI_MIB,
        BootMode::Bios => START_BY_BIOS_MIB,
    };
    for (index, disk) in in_order(logical).into_iter().enumerate() {
        let name = name_of(disk, index);
        let mut members = Vec::new();
        for chosen in chosen(disk, disks)? {
            let at = tables.iter().position(|table| table.disk.name == chosen.name);
            let at = at.unwrap_or_else(|| {
                tables.push(DraftTable::new(chosen, start_mib));
                tables.len() - 1
            });
            members.push(tables[at].add(disk.size, &name)?);
        }
        let (level, metadata) = (disk.level.as_str(), "1.2");
        arrays.push(ArrayPlan { level, metadata, name, members });
    }
    if mode == BootMode::Uefi {
        let members = tables.iter_mut().map(DraftTable::add_system_partition).collect();
        let name = ESP_NAME.to_owned();
        arrays.push(ArrayPlan { level: "1", metadata: "1.0", name, members });
    }
    let plan = |table: DraftTable| TablePlan { disk: table.disk, partitions: table.partitions };
    Ok((tables.into_iter().map(plan).collect(), arrays))
}

/// Returns the logical disks in the order of their arrays: the one with the rest of the space is last.
pub(super) fn in_order(logical: &[LogicalDisk]) -> Vec<&LogicalDisk> {
    let (rest, sized): (Vec<_>, Vec<_>) = logical.iter().partition(|disk| disk.size == Size::Rest);
    sized.into_iter().chain(rest).collect()
}

/// Returns the name of the array with this number.
pub(super) fn name_of(disk: &LogicalDisk, index: usize) -> String {
    disk.name.clone().unwrap_or_else(|| format!("md{index}"))
}

/// Returns the physical disks of a logical disk. Each hint takes the first disk that no earlier hint has taken.
fn chosen<'a>(logical: &LogicalDisk, disks: &'a [Disk]) -> Result<Vec<&'a Disk>, RaidError> {
    if logical.physical_disks.is_empty() {
        return Ok(disks.iter().collect());
    }
    let mut taken: Vec<&Disk> = Vec::new();
    for hint in &logical.physical_disks {
        let free: Vec<Disk> = disks.iter().filter(|disk| !taken.contains(disk)).cloned().collect();
        let name = hints::first(&free, hint).map_err(RaidError::Hint)?.name.clone();
        taken.extend(disks.iter().filter(|disk| disk.name == name));
    }
    Ok(taken)
}

/// The partition table of a disk while it is planned.
struct DraftTable {
    disk: Disk,
    partitions: Vec<PartitionPlan>,
    /// Where the next partition begins.
    next_mib: u64,
    /// The end of the last partition, counted in GiB from the beginning of the disk.
    used_gib: u64,
}

impl DraftTable {
    fn new(disk: &Disk, start_mib: u64) -> Self {
        DraftTable { disk: disk.clone(), partitions: Vec::new(), next_mib: start_mib, used_gib: 0 }
    }

    /// Adds a partition, and returns its device. As in the original, the first one is smaller than its logical disk by its beginning.
    fn add(&mut self, size: Size, name: &str) -> Result<String, RaidError> {
        let too_small = |needs_mib| RaidError::TooSmall {
            disk: self.disk.name.clone(),
            has_mib: self.disk.size / MIB,
            needs_mib,
        };
        // The last MiB is for the backup of the table.
        let end_mib = (self.disk.size / MIB).saturating_sub(1);
        let end = match size {
            Size::Rest => end_mib,
            Size::Gib(gib) => {
                self.used_gib = self.used_gib.saturating_add(gib);
                self.used_gib.saturating_mul(1024)
            }
        };
        let least = self.next_mib + 8;
        if end > end_mib || end < least {
            return Err(too_small(end.max(least).saturating_add(1)));
        }
        let start = std::mem::replace(&mut self.next_mib, end);
        Ok(self.push(start, end, LINUX_RAID, name))
    }

    fn add_system_partition(&mut self) -> String {
        self.push(1, START_BY_UEFI_MIB, EFI_SYSTEM, ESP_NAME)
    }

    fn push(&mut self, start_mib: u64, end_mib: u64, type_guid: [u8; 16], name: &str) -> String {
        let sectors_each = MIB / u64::from(self.disk.logical_sectors.unwrap_or(512));
        let (start, sectors) = (start_mib * sectors_each, (end_mib - start_mib) * sectors_each);
        self.partitions.push(PartitionPlan { start, sectors, type_guid, name: name.to_owned() });
        partition_device(&self.disk.name, self.partitions.len())
    }
}

/// Returns the device of a partition. The kernel separates the number by a `p` if the disk's name ends with a digit.
fn partition_device(disk: &str, number: usize) -> String {
    let separator = if disk.ends_with(|c: char| c.is_ascii_digit()) { "p" } else { "" };
    format!("{disk}{separator}{number}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::config::parse;
    use super::*;

    fn disk(name: &str, gib: u64) -> Disk {
        Disk {
            name: format!("/dev/{name}"),
            size: gib << 30,
            logical_sectors: Some(512),
            ..Disk::default()
        }
    }

    fn planned(
        config: &Value,
        disks: &[Disk],
        mode: BootMode,
    ) -> Result<(Vec<TablePlan>, Vec<ArrayPlan>), RaidError> {
        let logical = parse(config.as_object().unwrap(), disks.len()).unwrap();
        plan(&logical, disks, mode)
    }

    /// The partitions of a disk in MiB: start, end, name.
    fn shown(table: &TablePlan) -> Vec<(u64, u64, &str)> {
        let mib = |sectors: u64| sectors / 2048;
        let each = table.partitions.iter();
        each.map(|it| (mib(it.start), mib(it.start + it.sectors), it.name.as_str())).collect()
    }

    fn logical(level: &str, size: Value) -> Value {
        json!({"controller": "software", "raid_level": level, "size_gb": size})
    }

    #[test]
    fn a_mirror_of_all_disks_leaves_space_for_its_boot_loader() {
        let config = json!({"logical_disks": [logical("1", json!("MAX"))]});
        let disks = [disk("vda", 4), disk("nvme0n1", 5)];
        let (tables, arrays) = planned(&config, &disks, BootMode::Uefi).unwrap();
        assert_eq!(shown(&tables[0]), [(551, 4095, "md0"), (1, 551, "esp")]);
        assert_eq!(shown(&tables[1]), [(551, 5119, "md0"), (1, 551, "esp")]);
        let array = |metadata, name: &str, members: [&str; 2]| ArrayPlan {
            level: "1",
            metadata,
            name: name.to_owned(),
            members: members.map(str::to_owned).to_vec(),
        };
        let want = [
            array("1.2", "md0", ["/dev/vda1", "/dev/nvme0n1p1"]),
            array("1.0", "esp", ["/dev/vda2", "/dev/nvme0n1p2"]),
        ];
        assert_eq!(arrays, want);

        let (tables, arrays) = planned(&config, &disks, BootMode::Bios).unwrap();
        assert_eq!(shown(&tables[0]), [(8, 4095, "md0")]);
        assert_eq!(arrays, want[..1]);
    }

    #[test]
    fn the_array_with_the_rest_is_the_last() {
        let mut first = logical("1", json!("MAX"));
        first["volume_name"] = json!("root");
        let config = json!({"logical_disks": [first, logical("1+0", json!(2))]});
        let disks = [disk("sda", 8), disk("sdb", 8)];
        let (tables, arrays) = planned(&config, &disks, BootMode::Uefi).unwrap();
        assert_eq!(shown(&tables[0]), [(551, 2048, "md0"), (2048, 8191, "root"), (1, 551, "esp")]);
        let arrays: Vec<_> = arrays.iter().map(|it| (it.level, it.name.as_str())).collect();
        assert_eq!(arrays, [("10", "md0"), ("1", "root"), ("1", "esp")]);
    }

    #[test]
    fn hints_choose_different_disks() {
        let mut mirror = logical("1", json!("MAX"));
        mirror["physical_disks"] = json!([{"size": ">= 4"}, {"size": ">= 4"}]);
        let config = json!({"logical_disks": [mirror]});
        let disks = [disk("sda", 3), disk("sdb", 4), disk("sdc", 9), disk("sdd", 9)];
        let (tables, _) = planned(&config, &disks, BootMode::Bios).unwrap();
        let names: Vec<_> = tables.iter().map(|it| it.disk.name.as_str()).collect();
        assert_eq!(names, ["/dev/sdb", "/dev/sdc"]);
        let refused = planned(&config, &disks[..2], BootMode::Bios).unwrap_err().to_string();
        assert!(refused.starts_with("physical_disks: no disk matches"), "{refused}");
    }

    #[test]
    fn a_disk_that_is_too_small_is_named() {
        let config = |size| json!({"logical_disks": [logical("1", json!(size))]});
        let disks = [disk("sda", 9), disk("sdb", 4)];
        planned(&config(3), &disks, BootMode::Uefi).unwrap();
        let refused = planned(&config(4), &disks, BootMode::Uefi).unwrap_err().to_string();
        let want = "/dev/sdb has 4096 MiB, and its logical disks need 4097 MiB";
        assert_eq!(refused, want);
        let rest = json!({"logical_disks": [logical("1", json!(3)), logical("0", json!("MAX"))]});
        let mut small = disks;
        small[1].size = (3 << 30) + (8 << 20);
        let refused = planned(&rest, &small, BootMode::Uefi).unwrap_err().to_string();
        assert_eq!(refused, "/dev/sdb has 3080 MiB, and its logical disks need 3081 MiB");
        planned(&config(u64::MAX), &small, BootMode::Uefi).unwrap_err();
    }
}
