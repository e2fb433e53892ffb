//! Makes UEFI firmware boot the written disk, by a boot entry in its variables (UEFI 2.10 §3.1.3, §3.3).
//!
//! The entry starts the loader that the installed system names, under the system's own name, as ironic-python-agent does (`efi_utils.py`), so
//! that the system finds its entry again. Other entries of that name, and the agent's earlier entries, are removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use tracing::warn;

use crate::disk::blocks::Blocks;
use crate::disk::esp::{self, Loader};
use crate::disk::partition::{Partition, PartitionKind};
use crate::disk::table::partitions;
use crate::root::Root;

const VARIABLES: &str = "/sys/firmware/efi/efivars";
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// Non-volatile, with boot service and runtime access. efivarfs stores the attributes before the value.
const ATTRIBUTES: [u8; 4] = [7, 0, 0, 0];
const ACTIVE: [u8; 4] = [1, 0, 0, 0];
/// The name of the entry in the firmware's menu, unless the installed system has a name.
pub const LABEL: &str = "bedplate";

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

    let loader = loader_of(disk, system);
    let label = loader.label.as_deref().unwrap_or(LABEL);
    boot_partition(root, label, system, &loader.path)
}

/// Returns the loader in an EFI system partition. Without one that the agent recognizes, it is the one that firmware starts by itself.
pub fn loader_of(disk: &impl Blocks, system: &Partition) -> Loader {
    let found = esp::find_loader(disk, system).unwrap_or_else(|error| {
        warn!("cannot read the EFI system partition: {error}");
        None
    });
    found.unwrap_or_else(|| Loader { path: esp::FALLBACK.to_owned(), label: None })
}

/// Creates or updates the entry of this name for a loader in an EFI system partition, puts it first in the boot order, and returns the
/// entry's name.
pub fn boot_partition(
    root: &Root,
    label: &str,
    system: &Partition,
    loader: &str,
) -> Result<String, EfiError> {
    let variables = root.path(VARIABLES);
    let taken = entries(root);
    let ours: Vec<u16> =
        taken.iter().copied().filter(|number| is_named(root, *number, &[label, LABEL])).collect();
    let free = || (0..=u16::MAX).find(|number| !taken.contains(number));
    let number = ours.first().copied().or_else(free).ok_or(EfiError::Full)?;
    let entry = format!("Boot{number:04X}");
    set(&variables, &entry, &load_option(label, system, loader))?;

    let mut order: Vec<u16> = get(root, "BootOrder")
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    order.retain(|other| *other != number && !ours.contains(other));
    order.insert(0, number);
    let order: Vec<u8> = order.iter().flat_map(|number| number.to_le_bytes()).collect();
    set(&variables, "BootOrder", &order)?;
    for other in ours.iter().skip(1) {
        remove(&variables, &format!("Boot{other:04X}"))?;
    }
    Ok(entry)
}

/// Returns the numbers of all boot entries, in rising order.
fn entries(root: &Root) -> Vec<u16> {
    let names = root.names(VARIABLES);
    let digits = names
        .iter()
        .filter_map(|name| name.strip_prefix("Boot")?.strip_suffix(GLOBAL)?.strip_suffix('-'))
        .filter(|digits| digits.len() == 4);
    digits.filter_map(|digits| u16::from_str_radix(digits, 16).ok()).collect()
}

/// Whether a boot entry has one of these names.
fn is_named(root: &Root, number: u16, labels: &[&str]) -> bool {
    let value = get(root, &format!("Boot{number:04X}"));
    let rest = value.get(6..).unwrap_or_default();
    labels.iter().any(|label| rest.starts_with(&utf16(label)))
}

/// Encodes text as UCS-2 with a final NUL.
fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(|unit| unit.to_le_bytes()).collect()
}

/// Builds an `EFI_LOAD_OPTION`: attributes, length of the path, label, path.
fn load_option(label: &str, system: &Partition, loader: &str) -> Vec<u8> {
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
    let loader = utf16(loader);
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
    let path = changeable(folder, variable);
    let raw = [&ATTRIBUTES, value].concat();
    fs::write(&path, raw)
        .map_err(|source| EfiError::Variable { variable: variable.to_owned(), source })
}

fn remove(folder: &Path, variable: &str) -> Result<(), EfiError> {
    match fs::remove_file(changeable(folder, variable)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => {
            removed.map_err(|source| EfiError::Variable { variable: variable.to_owned(), source })
        }
    }
}

/// Returns the file of a variable, which can be written and removed. efivarfs makes every variable immutable, to protect it against accidental
/// removal.
fn changeable(folder: &Path, variable: &str) -> PathBuf {
    let path = folder.join(format!("{variable}-{GLOBAL}"));
    if let Ok(file) = File::open(&path)
        && let Ok(flags) = ioctl_getflags(&file)
    {
        let _ = ioctl_setflags(&file, flags - IFlags::IMMUTABLE);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::gpt::tests::{Memory, image};

    /// A machine with an entry of its firmware.
    fn machine() -> (crate::scratch::Folder, Root) {
        let folder = crate::scratch::Folder::new();
        fs::create_dir_all(folder.path().join("sys/firmware/efi/efivars")).unwrap();
        let root = Root::new(folder.path());
        put(&root, "Boot0000", &option("UiApp"));
        put(&root, "BootOrder", &[0, 0]);
        (folder, root)
    }

    fn put(root: &Root, variable: &str, value: &[u8]) {
        set(&root.path(VARIABLES), variable, value).unwrap();
    }

    /// A boot entry of this name, without a path.
    fn option(label: &str) -> Vec<u8> {
        [&[1, 0, 0, 0, 0, 0], &*utf16(label)].concat()
    }

    fn system() -> Partition {
        partitions(&Memory(image(4))).unwrap().remove(0)
    }

    #[test]
    fn the_entry_is_made_once_and_comes_first() {
        let (_folder, root) = machine();
        let disk = Memory(image(4));
        assert_eq!(boot_from(&root, &disk, "/dev/vda").unwrap(), "Boot0001");
        assert_eq!(boot_from(&root, &disk, "/dev/vda").unwrap(), "Boot0001");
        assert_eq!(get(&root, "BootOrder"), [1, 0, 0, 0]);
        let entry = get(&root, "Boot0001");
        let path = &entry[6 + utf16(LABEL).len()..];
        assert_eq!(path[..8], [4, 1, 42, 0, 1, 0, 0, 0]);
        assert_eq!(path[8..16], 2048_u64.to_le_bytes());
        assert_eq!(path[40..42], [2, 2]);
        // Firmware finds the usual loader of a system partition that the agent cannot read.
        assert!(path.ends_with(&[&*utf16(esp::FALLBACK), &[0x7f, 0xff, 4, 0]].concat()));
    }

    #[test]
    fn the_entry_has_the_name_and_the_loader_of_the_installed_system() {
        let (_folder, root) = machine();
        let list = "shimx64.efi,debian,,The boot entry\n";
        let file = |path: &str, content: Vec<u8>| esp::File { path: path.to_owned(), content };
        let (disk, system) = esp::tests::disk_with(&[
            file(
                "EFI/debian/BOOTX64.CSV",
                list.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            ),
            file("EFI/debian/shimx64.efi", b"MZ".to_vec()),
        ]);
        let loader = loader_of(&disk, &system);
        assert_eq!(loader.label.as_deref(), Some("debian"));
        boot_partition(&root, "debian", &system, &loader.path).unwrap();
        let entry = get(&root, "Boot0001");
        assert!(is_named(&root, 1, &["debian"]));
        let loader = utf16("\\EFI\\debian\\shimx64.efi");
        assert!(entry.ends_with(&[&*loader, &[0x7f, 0xff, 4, 0]].concat()));
    }

    #[test]
    fn entries_of_the_same_name_and_earlier_entries_of_the_agent_are_removed() {
        let (_folder, root) = machine();
        for (number, label) in
            [(1, "debian"), (2, "fedora"), (3, LABEL), (4, "debian"), (5, "debi")]
        {
            put(&root, &format!("Boot{number:04X}"), &option(label));
        }
        put(&root, "BootOrder", &[5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0]);
        assert_eq!(boot_partition(&root, "debian", &system(), esp::FALLBACK).unwrap(), "Boot0001");
        assert_eq!(get(&root, "BootOrder"), [1, 0, 5, 0, 2, 0, 0, 0]);
        assert_eq!(entries(&root), [0, 1, 2, 5]);
    }

    #[test]
    fn a_disk_without_a_system_partition_is_an_error() {
        let folder = crate::scratch::Folder::new();
        let error = boot_from(&Root::new(folder.path()), &Memory(vec![0; 4 << 20]), "/dev/vda");
        assert!(error.unwrap_err().to_string().contains("no EFI system partition"));
    }
}
