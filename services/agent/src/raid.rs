//! Software RAID by the kernel's md driver: the steps `create_configuration`, `apply_configuration` and `delete_configuration`.
//!
//! Limits, layout and names are those of ironic-python-agent 13 (`raid_utils.py`, `hardware.py`): a partition of each disk for each logical
//! disk, and by UEFI an EFI system partition of 550 MiB on each disk. Unlike the original, the agent makes these partitions and their array
//! together with the others, because a partition table cannot be read again while its partitions are in use.

pub mod arrays;
pub mod boot;
mod config;
mod error;
mod layout;
mod mdadm;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use agent_protocol::Disk;
use serde_json::{Map, Value};
use tracing::info;

pub use self::error::RaidError;

use self::arrays::Array;
use self::config::LogicalDisk;
use self::layout::{ArrayPlan, TablePlan};
use crate::disk::device::Device;
use crate::disk::erase;
use crate::disk::gpt::Gpt;
use crate::disk::guard::GuardedDisk;
use crate::disk::{md, table};
use crate::inventory;
use crate::root::Root;

/// The times that the agent tries to stop all arrays: an array can lie on another.
const STOP_TRIES: usize = 2;

/// Returns whether a configuration has a logical disk that the agent makes, and no RAID controller.
pub fn is_software(config: &Map<String, Value>) -> bool {
    let disks = config.get("logical_disks").and_then(Value::as_array);
    disks.is_some_and(|disks| disks.iter().any(|disk| disk["controller"] == "software"))
}

/// Checks that the agent can make the configuration on these disks.
pub fn validate(root: &Root, disks: &[Disk], config: &Map<String, Value>) -> Result<(), RaidError> {
    plan(root, disks, config).map(|_| ())
}

fn plan(
    root: &Root,
    disks: &[Disk],
    config: &Map<String, Value>,
) -> Result<(Vec<TablePlan>, Vec<ArrayPlan>), RaidError> {
    let logical = config::parse(config, disks.len())?;
    layout::plan(&logical, disks, inventory::boot_mode(root))
}

/// Makes the arrays of a configuration on these disks, which have no partitions.
pub fn create(root: &Root, disks: &[Disk], config: &Map<String, Value>) -> Result<(), RaidError> {
    let (tables, arrays) = plan(root, disks, config)?;
    for table in &tables {
        let device = shared(root, &table.disk)?;
        let found = table::partitions(&device).map_err(|source| failed(&table.disk, source))?;
        if !found.is_empty() {
            return Err(RaidError::NotBlank { disk: table.disk.name.clone() });
        }
    }
    for table in &tables {
        write_table(root, table)?;
    }
    for array in &arrays {
        let name = arrays::free_name(root);
        mdadm::create(root, &name, array)?;
        let running = arrays::running(root).into_iter().find(|it| it.name == name);
        let running = running.ok_or_else(|| RaidError::Missing(name.clone()))?;
        // The content of an earlier array at the same place would appear in the new one.
        let device = open(root, &running.as_disk())?;
        erase::metadata(&device, &[])?;
        info!(array.name = %name, "made the array {name} of {}", array.members.join(", "));
    }
    Ok(())
}

/// Removes the arrays of these disks, and the disks' partition tables. The arrays of other disks are only stopped.
pub fn delete(root: &Root, disks: &[Disk]) -> Result<(), RaidError> {
    let mut holders: BTreeSet<String> = BTreeSet::new();
    for array in arrays::running(root) {
        holders.extend(arrays::disks_of(root, &array));
    }
    stop_all(root)?;
    for disk in disks {
        let device = open(root, disk)?;
        let is_member = md::has_member(&device).map_err(|source| failed(disk, source))?;
        if is_member || holders.contains(&disk.name) {
            erase::metadata(&device, &inventory::partitions_of(root, &disk.name))?;
            drop(device);
            read_table_again(root, disk)?;
            info!(disk.name = %disk.name, "removed the arrays' partitions from {}", disk.name);
        }
    }
    Ok(())
}

/// Stops all arrays, so that their disks can be erased. Nothing is removed from the disks.
pub fn stop_all(root: &Root) -> Result<(), RaidError> {
    let mut last = Ok(());
    for _ in 0..STOP_TRIES {
        for array in arrays::running(root) {
            if let Err(error) = mdadm::stop(root, &array.name) {
                last = Err(error);
            }
        }
    }
    let left: Vec<String> = arrays::running(root).into_iter().map(|array| array.name).collect();
    match (left.is_empty(), last) {
        (true, _) => Ok(()),
        (false, Err(error)) => Err(error),
        (false, Ok(())) => Err(RaidError::StillRunning(left)),
    }
}

/// Starts the arrays of a configuration that the node has, and returns them. The arrays of the EFI system partitions are not among them.
pub fn assemble(root: &Root) -> Result<Vec<Array>, RaidError> {
    mdadm::assemble(root)?;
    let mut found = arrays::running(root);
    found.retain(|array| mdadm::name_of(root, &array.name).as_deref() != Some(config::ESP_NAME));
    Ok(found)
}

/// Returns the array of the configuration's root volume, if the configuration has one.
pub fn root_volume<'a>(
    root: &Root,
    config: &Map<String, Value>,
    found: &'a [Array],
) -> Result<Option<&'a Array>, RaidError> {
    let logical = config::parse(config, usize::MAX)?;
    let logical = layout::in_order(&logical);
    let wanted = logical.iter().position(|disk: &&LogicalDisk| disk.is_root == Some(true));
    let Some(wanted) = wanted.map(|index| layout::name_of(logical[index], index)) else {
        return Ok(None);
    };
    let is_wanted = |array: &&Array| mdadm::name_of(root, &array.name).as_ref() == Some(&wanted);
    found.iter().find(is_wanted).map(Some).ok_or(RaidError::NoArray)
}

/// Writes a new partition table, after both ends of the disk were zeroed.
fn write_table(root: &Root, plan: &TablePlan) -> Result<(), RaidError> {
    let failed = |source| failed(&plan.disk, source);
    let device = open(root, &plan.disk)?;
    let sector = u64::from(device.sector());
    let mut table = Gpt::empty(device.size() / sector, sector, uuid::Uuid::new_v4().into_bytes());
    for part in &plan.partitions {
        let guid = uuid::Uuid::new_v4().into_bytes();
        let added =
            table.add(part.start..part.start + part.sectors, part.type_guid, &part.name, guid);
        added.ok_or_else(|| failed(io::Error::other("a partition does not fit")))?;
    }
    let mut disk = GuardedDisk::guard(device).map_err(failed)?;
    table.write_new(&mut disk).map_err(failed)?;
    disk.release().map_err(failed)?;
    read_table_again(root, &plan.disk)
}

/// Makes the kernel read a partition table again. A file in the place of a disk has no partitions of its own in the kernel.
fn read_table_again(root: &Root, disk: &Disk) -> Result<(), RaidError> {
    let path = root.path(&disk.name);
    match is_block_device(&path) {
        true => mdadm::read_table_again(root, &disk.name),
        false => Ok(()),
    }
}

fn is_block_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|found| found.file_type().is_block_device())
}

fn open(root: &Root, disk: &Disk) -> Result<Device, RaidError> {
    let path = root.path(&disk.name);
    Device::open(&path, disk.size, disk.logical_sectors.unwrap_or(512))
        .map_err(|source| failed(disk, source))
}

/// Opens a disk only to read, which is possible while an array uses the disk.
fn shared(root: &Root, disk: &Disk) -> Result<Device, RaidError> {
    let path = root.path(&disk.name);
    Device::open_shared(&path, disk.size, disk.logical_sectors.unwrap_or(512))
        .map_err(|source| failed(disk, source))
}

fn failed(disk: &Disk, source: io::Error) -> RaidError {
    RaidError::Disk { disk: disk.name.clone(), source }
}
