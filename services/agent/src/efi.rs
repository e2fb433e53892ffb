//! Makes UEFI firmware boot the written disk, by a boot entry in its variables (UEFI 2.10 §3.1.3, §3.3).

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use crate::disk::blocks::Blocks;
use crate::disk::partition::{Partition, PartitionKind};
use crate::disk::table::partitions;
use crate::root::Root;

const VARIABLES: &str = "/sys/firmware/efi/efivars";
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// Non-volatile, with boot service and runtime access. efivarfs stores the attributes before the value.
const ATTRIBUTES: [u8; 4] = [7, 0, 0, 0];
const ACTIVE: [u8; 4] = [1, 0, 0, 0];
/// The name of the entry in the firmware's menu. The agent also finds its earlier entry by this name.
pub const LABEL: &str = "bedplate";
#[cfg(target_arch = "x86_64")]
const LOADER: &str = "\\EFI\\BOOT\\BOOTX64.EFI";
#[cfg(target_arch = "aarch64")]
const LOADER: &str = "\\EFI\\BOOT\\BOOTAA64.EFI";

/// The reasons why the boot entry could not be written.
#[derive(Debug, thiserror::Error)]
pub enum EfiError {
    /// The disk has no EFI system partition.
    #[error("{disk} has no EFI system partition, and the machine boots by UEFI")]
    NoSystemPartition { disk: String },
    #[error("cannot read the partitions of {disk}")]
    Disk { disk: String, source: io::Error },
    /// A variable could not be written.
    #[error("cannot set the firmware's variable {variable}")]
    Variable { variable: String, source: io::Error },
    /// All 65536 numbers of boot entries are in use.
    #[error("the firmware has no free boot entry")]
    Full,
}

/// Creates or updates the entry for the disk's EFI system partition, puts it first in the boot order, and returns the entry's name.
pub fn boot_from(root: &Root, disk: &impl Blocks, name: &str) -> Result<String, EfiError> {
    let found =
        partitions(disk).map_err(|source| EfiError::Disk { disk: name.to_owned(), source })?;
    let system = found.iter().find(|partition| partition.is_efi_system());
    let system = system.ok_or_else(|| EfiError::NoSystemPartition { disk: name.to_owned() })?;

    boot_partition(root, LABEL, system)
}

/// Creates or updates the entry of this name for an EFI system partition, puts it first in the boot order, and returns the entry's name.
pub fn boot_partition(root: &Root, label: &str, system: &Partition) -> Result<String, EfiError> {
    let variables = root.path(VARIABLES);
    let number = free_entry(root, label)?;
    let entry = format!("Boot{number:04X}");
    set(&variables, &entry, &load_option(label, system))?;

    let mut order: Vec<u16> = get(root, "BootOrder")
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    order.retain(|other| *other != number);
    order.insert(0, number);
    let order: Vec<u8> = order.iter().flat_map(|number| number.to_le_bytes()).collect();
    set(&variables, "BootOrder", &order)?;
    Ok(entry)
}

/// Returns the number of the agent's own earlier entry, or the first free number.
fn free_entry(root: &Root, label: &str) -> Result<u16, EfiError> {
    let taken: Vec<u16> = root
        .names(VARIABLES)
        .iter()
        .filter_map(|name| name.strip_prefix("Boot")?.strip_suffix(GLOBAL)?.strip_suffix('-'))
        .filter(|digits| digits.len() == 4)
        .filter_map(|digits| u16::from_str_radix(digits, 16).ok())
        .collect();
    let label = utf16(label);
    let is_ours = |number: &&u16| {
        let value = get(root, &format!("Boot{number:04X}"));
        value.get(6..).is_some_and(|rest| rest.starts_with(&label))
    };
    match taken.iter().find(is_ours) {
        Some(ours) => Ok(*ours),
        None => (0..=u16::MAX).find(|number| !taken.contains(number)).ok_or(EfiError::Full),
    }
}

/// Encodes text as UCS-2 with a final NUL.
fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(|unit| unit.to_le_bytes()).collect()
}

/// Builds an `EFI_LOAD_OPTION`: attributes, length of the path, label, path.
fn load_option(label: &str, system: &Partition) -> Vec<u8> {
    let (signature, format, kind) = match &system.kind {
        PartitionKind::Gpt { guid, .. } => (*guid, 2, 2),
        PartitionKind::Mbr { signature, .. } => {
            let mut long = [0; 16];
            long[..4].copy_from_slice(signature);
            (long, 1, 1)
        }
    };
    // Hard drive media device path (UEFI 2.10 §10.3.5.1).
    let mut path = vec![4, 1, 42, 0];
    path.extend(system.number.to_le_bytes());
    path.extend(system.start.to_le_bytes());
    path.extend(system.sectors.to_le_bytes());
    path.extend(signature);
    path.extend([format, kind]);
    // File path media device path (§10.3.5.4).
    let loader = utf16(LOADER);
    path.extend([4, 4]);
    path.extend((loader.len() as u16 + 4).to_le_bytes());
    path.extend(loader);
    // End of the device path (§10.3.1).
    path.extend([0x7f, 0xff, 4, 0]);

    let mut option = ACTIVE.to_vec();
    option.extend((path.len() as u16).to_le_bytes());
    option.extend(utf16(label));
    option.extend(path);
    option
}

fn get(root: &Root, variable: &str) -> Vec<u8> {
    let path = root.path(format!("{VARIABLES}/{variable}-{GLOBAL}"));
    fs::read(path).ok().and_then(|raw| raw.get(4..).map(<[u8]>::to_vec)).unwrap_or_default()
}

fn set(folder: &Path, variable: &str, value: &[u8]) -> Result<(), EfiError> {
    let path = folder.join(format!("{variable}-{GLOBAL}"));
    // efivarfs makes every variable immutable, to protect it against accidental removal.
    if let Ok(file) = File::open(&path)
        && let Ok(flags) = ioctl_getflags(&file)
    {
        let _ = ioctl_setflags(&file, flags - IFlags::IMMUTABLE);
    }
    let raw = [&ATTRIBUTES, value].concat();
    fs::write(&path, raw)
        .map_err(|source| EfiError::Variable { variable: variable.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::gpt::tests::{Memory, image};

    #[test]
    fn the_entry_is_made_once_and_comes_first() {
        let folder = crate::scratch::Folder::new();
        let variables = folder.path().join("sys/firmware/efi/efivars");
        fs::create_dir_all(&variables).unwrap();
        let of = |name: &str| variables.join(format!("{name}-{GLOBAL}"));
        fs::write(of("Boot0000"), [7, 0, 0, 0, 1]).unwrap();
        fs::write(of("BootOrder"), [7, 0, 0, 0, 0, 0]).unwrap();
        let root = Root::new(folder.path());
        let disk = Memory(image(4));
        assert_eq!(boot_from(&root, &disk, "/dev/vda").unwrap(), "Boot0001");
        assert_eq!(boot_from(&root, &disk, "/dev/vda").unwrap(), "Boot0001");
        assert_eq!(fs::read(of("BootOrder")).unwrap(), [7, 0, 0, 0, 1, 0, 0, 0]);
        let entry = fs::read(of("Boot0001")).unwrap();
        let path = &entry[4 + 6 + utf16(LABEL).len()..];
        assert_eq!(path[..8], [4, 1, 42, 0, 1, 0, 0, 0]);
        assert_eq!(path[8..16], 2048_u64.to_le_bytes());
        assert_eq!(path[40..42], [2, 2]);
        assert!(path.ends_with(&[0x7f, 0xff, 4, 0]));
    }

    #[test]
    fn a_disk_without_a_system_partition_is_an_error() {
        let folder = crate::scratch::Folder::new();
        let error = boot_from(&Root::new(folder.path()), &Memory(vec![0; 4 << 20]), "/dev/vda");
        assert!(error.unwrap_err().to_string().contains("no EFI system partition"));
    }
}
