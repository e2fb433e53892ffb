//! The file system of an EFI system partition (UEFI 2.10 §13.3): finds the boot loader in one, and makes a new one.

use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fatfs::{Dir, FatType, FileSystem, FormatVolumeOptions, FsOptions, format_volume};

use super::blocks::Blocks;
use super::partition::Partition;
use super::window::{Changes, Window};

/// The loader that firmware starts from a disk without a boot entry (UEFI 2.10 §3.5.1.1).
#[cfg(target_arch = "x86_64")]
pub const FALLBACK: &str = "\\EFI\\BOOT\\BOOTX64.EFI";
/// The loader that firmware for 64-bit ARM starts.
#[cfg(target_arch = "aarch64")]
pub const FALLBACK: &str = "\\EFI\\BOOT\\BOOTAA64.EFI";

/// Files that name the loader of the installed system, as its shim has them; the first counts.
#[cfg(target_arch = "x86_64")]
const LISTS: &[&str] = &["bootx64.csv", "boot.csv"];
#[cfg(target_arch = "aarch64")]
const LISTS: &[&str] = &["bootaa64.csv", "boot.csv"];

/// Loaders by the names that distributions use; the first counts.
#[cfg(target_arch = "x86_64")]
const LOADERS: &[&str] = &["bootx64.efi", "shimx64.efi", "grubx64.efi"];
#[cfg(target_arch = "aarch64")]
const LOADERS: &[&str] = &["bootaa64.efi", "shimaa64.efi", "grubaa64.efi"];

/// Limits of the search for a loader.
const DEEPEST: usize = 6;
const MOST_ENTRIES: usize = 4096;
const LONGEST_LIST: u64 = 64 << 10;
/// The most characters of the name of a boot entry.
const LONGEST_LABEL: usize = 64;

/// The boot loader of an installed system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loader {
    /// The path in the EFI system partition, with backslashes.
    pub path: String,
    /// The name that the system gives its boot entry.
    pub label: Option<String>,
}

/// A file of the EFI system partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The path, with slashes and without one at the beginning. The parent directories come with the file.
    pub path: String,
    pub content: Vec<u8>,
}

type Fat<'a, D> = FileSystem<Window<'a, D>>;

/// Finds the loader that the system in this partition wants to be started by: that of its list of loaders, or one with a usual name.
pub fn find_loader(disk: &impl Blocks, system: &Partition) -> io::Result<Option<Loader>> {
    let sector = disk.sector();
    let (start, end) = (system.start.checked_mul(sector), system.end().checked_mul(sector));
    let range = start.unwrap_or(u64::MAX)..end.unwrap_or(u64::MAX);
    let window = Window::new(disk, range)?;
    // The file system comes from an image. The library computes with damaged fields unchecked, which panics in a build with overflow checks.
    let search = AssertUnwindSafe(|| search(FileSystem::new(window, FsOptions::new())?));
    let damaged = |_| Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged"));
    catch_unwind(search).unwrap_or_else(damaged)
}

fn search<D: Blocks>(fat: Fat<'_, D>) -> io::Result<Option<Loader>> {
    let mut files = Vec::new();
    list(&fat.root_dir(), "", 0, &mut files)?;
    // The order on the disk has no meaning.
    files.sort();

    for name in LISTS {
        for path in files.iter().filter(|path| is_named(path, name)) {
            if let Some(loader) = read_list(&fat, path, &files)? {
                return Ok(Some(loader));
            }
        }
    }
    let named = |name: &&str| files.iter().find(|path| is_named(path, name));
    let found = LOADERS.iter().find_map(named);
    Ok(found.map(|path| Loader { path: backslashed(path), label: None }))
}

/// Collects the paths of all files below a directory.
fn list<D: Blocks>(
    folder: &Dir<'_, Window<'_, D>>,
    path: &str,
    depth: usize,
    files: &mut Vec<String>,
) -> io::Result<()> {
    for entry in folder.iter() {
        let (entry, count) = (entry?, files.len());
        let name = entry.file_name();
        if count >= MOST_ENTRIES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "too many files"));
        }
        if name == "." || name == ".." {
            continue;
        }
        let path = format!("{path}/{name}");
        if entry.is_file() {
            files.push(path);
        } else if entry.is_dir() && depth < DEEPEST {
            list(&entry.to_dir(), &path, depth + 1, files)?;
        }
    }
    Ok(())
}

fn is_named(path: &str, name: &str) -> bool {
    path.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(name))
}

fn backslashed(path: &str) -> String {
    path.replace('/', "\\")
}

/// Reads a list of loaders in UTF-16: `shimx64.efi,debian,,…`. The loader is beside the list, and has to exist.
fn read_list<D: Blocks>(
    fat: &Fat<'_, D>,
    path: &str,
    files: &[String],
) -> io::Result<Option<Loader>> {
    let mut raw = Vec::new();
    fat.root_dir()
        .open_file(path.trim_start_matches('/'))?
        .take(LONGEST_LIST)
        .read_to_end(&mut raw)?;
    let units = raw.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let text: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let line = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default();
    let mut fields = line.split(',').map(str::trim);
    let (file, label) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let wanted = format!("{folder}/{file}");
    let found = files.iter().find(|known| known.eq_ignore_ascii_case(&wanted));
    let label: String = label.chars().filter(|c| !c.is_control()).take(LONGEST_LABEL).collect();
    let label = Some(label).filter(|label| !label.is_empty());
    Ok(found.map(|path| Loader { path: backslashed(path), label }))
}

/// Makes a new file system in a range, in bytes, and puts files into it.
pub fn make(
    disk: &impl Blocks,
    range: Range<u64>,
    label: [u8; 11],
    files: &[File],
) -> io::Result<Changes> {
    let sector = u16::try_from(disk.sector()).unwrap_or(4096);
    let sectors = u32::try_from((range.end - range.start) / u64::from(sector)).unwrap_or(u32::MAX);
    let mut window = Window::new(disk, range)?;
    // Firmware is only required to read FAT32 on a disk (UEFI 2.10 §13.3.1.1).
    let options = FormatVolumeOptions::new()
        .fat_type(FatType::Fat32)
        .bytes_per_sector(sector)
        .total_sectors(sectors)
        .volume_id(rand::random())
        .volume_label(label);
    format_volume(&mut window, options)?;
    window.rewind()?;
    let fat = FileSystem::new(&mut window, FsOptions::new())?;
    {
        let root = fat.root_dir();
        for file in files {
            for (at, _) in file.path.match_indices('/') {
                root.create_dir(&file.path[..at])?;
            }
            let mut made = root.create_file(&file.path)?;
            made.write_all(&file.content)?;
            made.flush()?;
        }
    }
    fat.unmount()?;
    Ok(window.into_changes())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::super::device::Device;
    use super::super::gpt::tests::{Memory, image};
    use super::super::guard::GuardedDisk;
    use super::super::partition::PartitionKind;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn file(path: &str, content: &[u8]) -> File {
        File { path: path.to_owned(), content: content.to_owned() }
    }

    /// A disk of 48 MiB with an EFI system partition of 40 MiB that contains these files.
    pub(crate) fn disk_with(files: &[File]) -> (Memory, Partition) {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, image(48)).unwrap();
        let device = Device::open(&path, 48 * MIB, 512).unwrap();
        let mut disk = GuardedDisk::guard(device).unwrap();
        let changes = make(&disk, MIB..41 * MIB, *b"efi-part   ", files).unwrap();
        changes.write(&mut disk).unwrap();
        disk.release().unwrap();
        let kind = PartitionKind::Mbr { type_octet: 0xef, signature: [0; 4] };
        let system = Partition { number: 1, start: 2048, sectors: 40 * 2048, kind };
        (Memory(std::fs::read(&path).unwrap()), system)
    }

    #[track_caller]
    fn check(files: &[File], want: Option<(&str, Option<&str>)>) {
        let (disk, system) = disk_with(files);
        let found = find_loader(&disk, &system).unwrap();
        let found = found.as_ref().map(|it| (it.path.as_str(), it.label.as_deref()));
        assert_eq!(found, want);
    }

    #[test]
    fn the_list_of_the_installed_system_names_the_loader() {
        let debian = "\u{feff}shimx64.efi,debian,,This is the boot entry for debian\n";
        check(
            &[
                file("EFI/BOOT/BOOTX64.EFI", b"MZ"),
                file("EFI/debian/shimx64.efi", b"MZ"),
                file("EFI/debian/BOOTX64.CSV", &utf16(debian)),
            ],
            Some(("\\EFI\\debian\\shimx64.efi", Some("debian"))),
        );
        // Without a byte order mark, and without a name.
        check(
            &[file("EFI/x/boot.csv", &utf16("GRUBX64.EFI,")), file("EFI/x/grubx64.efi", b"MZ")],
            Some(("\\EFI\\x\\grubx64.efi", None)),
        );
    }

    #[test]
    fn a_list_that_names_no_file_is_ignored() {
        for list in ["", "gone.efi,debian", "../BOOT/BOOTX64.EFI,up", "\u{d7ff}"] {
            check(
                &[
                    file("EFI/BOOT/bootx64.efi", b"MZ"),
                    file("EFI/debian/BOOTX64.CSV", &utf16(list)),
                ],
                Some(("\\EFI\\BOOT\\bootx64.efi", None)),
            );
        }
    }

    #[test]
    fn a_loader_with_a_usual_name_is_found_anywhere() {
        check(
            &[file("EFI/a/grubx64.efi", b"MZ"), file("EFI/b/c/shimx64.efi", b"MZ")],
            Some(("\\EFI\\b\\c\\shimx64.efi", None)),
        );
        check(&[file("EFI/debian/mmx64.efi", b"MZ")], None);
        check(&[], None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn no_damage_makes_the_search_panic_or_last_forever(
            bytes in proptest::collection::vec((0_usize..1 << 20, any::<u8>()), 1..200),
            header in proptest::collection::vec((0_usize..512, any::<u8>()), 0..4),
        ) {
            let content = utf16("shimx64.efi,debian");
            let (mut disk, system) =
                disk_with(&[file("EFI/x/BOOTX64.CSV", &content), file("EFI/x/shimx64.efi", b"MZ")]);
            for (at, byte) in bytes.into_iter().chain(header) {
                disk.0[MIB as usize + at] = byte;
            }
            let _ = find_loader(&disk, &system);
        }
    }
}
