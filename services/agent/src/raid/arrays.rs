//! The arrays that the kernel runs, from `/sys/block`.

use agent_protocol::Disk;

use crate::root::Root;

/// The directory of a disk or an array that lists its partitions, members or users.
const BLOCK: &str = "/sys/block";

/// A running array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Path of the device, such as `/dev/md0`.
    pub name: String,
    /// Size in bytes; 0 if too many members are missing.
    pub size: u64,
    /// Size of a logical sector in bytes.
    pub sector: u32,
    /// Kernel names of the members, such as `vda1`.
    pub members: Vec<String>,
}

impl Array {
    /// Returns the array in the form of a disk, to choose it and to write to it.
    pub fn as_disk(&self) -> Disk {
        Disk {
            name: self.name.clone(),
            size: self.size,
            logical_sectors: Some(self.sector),
            ..Disk::default()
        }
    }
}

/// Returns every array, by name.
pub fn running(root: &Root) -> Vec<Array> {
    let is_array = |name: &String| {
        name.strip_prefix("md").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let names = root.names(BLOCK).into_iter().filter(is_array);
    let array = |name: String| Array {
        size: root.number::<u64>(format!("{BLOCK}/{name}/size")).unwrap_or(0).saturating_mul(512),
        sector: root.number(format!("{BLOCK}/{name}/queue/logical_block_size")).unwrap_or(512),
        members: root.names(format!("{BLOCK}/{name}/slaves")),
        name: format!("/dev/{name}"),
    };
    // A stopped array can keep its device for a moment.
    names.map(array).filter(|array| array.size > 0 || !array.members.is_empty()).collect()
}

/// Returns a device for a new array.
pub(super) fn free_name(root: &Root) -> String {
    let taken = running(root);
    let names = (0..).map(|number| format!("/dev/md{number}"));
    let mut free = names.filter(|name| taken.iter().all(|array| array.name != *name));
    free.next().expect("the machine has fewer arrays than numbers")
}

/// Returns the disks that hold the members of an array.
pub fn disks_of(root: &Root, array: &Array) -> Vec<String> {
    let disk = |member: &String| {
        let disks = root.names(BLOCK).into_iter();
        let mut holding = disks.filter(|disk| {
            disk == member || root.names(format!("{BLOCK}/{disk}")).contains(member)
        });
        holding.next().map(|disk| format!("/dev/{disk}"))
    };
    array.members.iter().filter_map(disk).collect()
}

/// Returns the array that a partition of a disk is a member of.
pub(super) fn array_of(root: &Root, disk: &str, partition: u32) -> Option<String> {
    let disk = disk.trim_start_matches("/dev/");
    let children = root.names(format!("{BLOCK}/{disk}")).into_iter();
    let number = partition.to_string();
    let is_partition = |child: &String| {
        child.strip_prefix(disk).map(|rest| rest.trim_start_matches('p')) == Some(number.as_str())
    };
    let child = children.filter(|child| child.starts_with(disk)).find(is_partition)?;
    let holders = root.names(format!("{BLOCK}/{disk}/{child}/holders")).into_iter();
    holders.map(|holder| format!("/dev/{holder}")).next()
}
