//! The config drive: a small file system from which the installed system reads its settings.

use std::io::{self, Read};

use base64::Engine as _;
use flate2::read::MultiGzDecoder;

use super::blocks::Blocks;
use super::guard::GuardedDisk;
use super::partition::Partition;
use super::{gpt, mbr};

/// The largest config drive, uncompressed; Ironic's and our conductor have the same limit.
pub const LARGEST: usize = 64 << 20;
const MIB: u64 = 1 << 20;

/// The reasons why a config drive could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigDriveError {
    /// The config drive was given as a URL, which the original protocol also allows.
    #[error("the config drive is a URL; send its contents as base64 of gzip")]
    Address,
    #[error("the config drive is not base64")]
    NotBase64(#[source] base64::DecodeError),
    #[error("the decoded config drive is not gzip")]
    NotGzip(#[source] io::Error),
    /// The config drive is larger than 64 MiB.
    #[error("the config drive is larger than 64 MiB")]
    TooLarge,
    #[error("the config drive is empty")]
    Empty,
    /// The image has no partition table that suits the disk's sector size.
    #[error(
        "cannot add a config drive: the image has no partition table for sectors of {sector} bytes"
    )]
    NoTable {
        /// Size of the disk's sectors in bytes.
        sector: u64,
    },
    /// The disk has no space, or the partition table has no free entry.
    #[error("no space for a config drive of {mib} MiB behind the image's partitions")]
    NoRoom {
        /// Size of the config drive in MiB.
        mib: u64,
    },
    #[error("cannot write the config drive")]
    Disk(#[source] io::Error),
}

/// Decodes base64 and decompresses gzip.
pub fn decode(text: &str) -> Result<Vec<u8>, ConfigDriveError> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return Err(ConfigDriveError::Address);
    }
    let bare: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let packed = base64::engine::general_purpose::STANDARD
        .decode(bare)
        .map_err(ConfigDriveError::NotBase64)?;
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(packed.as_slice())
        .take(LARGEST as u64 + 1)
        .read_to_end(&mut unpacked)
        .map_err(ConfigDriveError::NotGzip)?;
    match unpacked.len() {
        0 => Err(ConfigDriveError::Empty),
        len if len > LARGEST => Err(ConfigDriveError::TooLarge),
        _ => Ok(unpacked),
    }
}

/// Writes `contents` into a new partition at the end of the disk.
pub fn write(disk: &mut GuardedDisk, contents: &[u8]) -> Result<Partition, ConfigDriveError> {
    let sector = disk.sector();
    let disk_sectors = disk.size() / sector;
    let bytes = (contents.len() as u64).next_multiple_of(MIB);
    let no_room = ConfigDriveError::NoRoom { mib: bytes / MIB };

    let partition = match gpt::read(disk).map_err(ConfigDriveError::Disk)? {
        Some(mut table) => {
            table.extend_to(disk_sectors);
            let guid = uuid::Uuid::new_v4().into_bytes();
            let added = table.append(bytes / sector, "config-2", guid).ok_or(no_room)?;
            table.write(disk).map_err(ConfigDriveError::Disk)?;
            added
        }
        None => {
            let mut first = vec![0; sector as usize];
            disk.read_at(0, &mut first).map_err(ConfigDriveError::Disk)?;
            if mbr::partitions(disk).map_err(ConfigDriveError::Disk)?.is_empty() {
                return Err(ConfigDriveError::NoTable { sector });
            }
            let added = mbr::append(&mut first, disk_sectors, sector, bytes / sector);
            let added = added.ok_or(no_room)?;
            disk.write_at(0, &first).map_err(ConfigDriveError::Disk)?;
            added
        }
    };

    let mut padded = contents.to_vec();
    padded.resize(bytes as usize, 0);
    disk.write_at(partition.start * sector, &padded).map_err(ConfigDriveError::Disk)?;
    Ok(partition)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::super::device::Device;
    use super::super::table::partitions;
    use super::*;

    fn packed(contents: &[u8]) -> String {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(contents).unwrap();
        base64::engine::general_purpose::STANDARD.encode(gzip.finish().unwrap())
    }

    fn disk_with(image: &[u8], size: u64) -> (crate::scratch::Folder, GuardedDisk) {
        let folder = crate::scratch::Folder::new();
        let path = folder.path().join("disk");
        std::fs::write(&path, []).unwrap();
        let mut disk = GuardedDisk::guard(Device::open(&path, size, 512).unwrap()).unwrap();
        disk.write_at(0, image).unwrap();
        (folder, disk)
    }

    #[test]
    fn a_config_drive_becomes_the_last_partition_of_a_gpt() {
        let (folder, mut disk) = disk_with(&gpt::tests::image(4), 32 << 20);
        let added = write(&mut disk, b"a small file system").unwrap();
        disk.release().unwrap();
        let bytes = std::fs::read(folder.path().join("disk")).unwrap();
        let at = added.start as usize * 512;
        assert!(bytes[at..].starts_with(b"a small file system"));
        assert_eq!(&bytes[bytes.len() - 512..][..8], b"EFI PART");
        let found = partitions(&gpt::tests::Memory(bytes.clone())).unwrap();
        assert_eq!(found, [found[0].clone(), added]);
        // The backup table lists the same partitions.
        let mut damaged = bytes;
        damaged[512..1024].fill(0);
        assert_eq!(partitions(&gpt::tests::Memory(damaged)).unwrap(), found);
    }

    #[test]
    fn a_config_drive_becomes_a_primary_partition_of_an_mbr() {
        let mut image = vec![0; 4 << 20];
        image[446..462].copy_from_slice(&[0x80, 0, 0, 0, 0xef, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0]);
        image[510..512].copy_from_slice(&[0x55, 0xaa]);
        let (folder, mut disk) = disk_with(&image, 32 << 20);
        let added = write(&mut disk, &[7; 4096]).unwrap();
        assert_eq!((added.number, added.start), (2, 31 * 2048));
        disk.release().unwrap();
        let bytes = std::fs::read(folder.path().join("disk")).unwrap();
        assert!(bytes[31 << 20..].starts_with(&[7; 4096]));
    }

    #[test]
    fn a_missing_place_for_a_config_drive_is_an_error() {
        let (_folder, mut disk) = disk_with(&[0xaa; 4096], 32 << 20);
        let error = write(&mut disk, b"x").unwrap_err();
        assert!(error.to_string().contains("no partition table"), "{error}");
        let (_folder, mut disk) = disk_with(&gpt::tests::image(4), 4 << 20);
        let error = write(&mut disk, &vec![1; 3 << 20]).unwrap_err();
        assert!(error.to_string().contains("no space for a config drive of 3 MiB"), "{error}");
    }

    #[test]
    fn each_fault_of_a_config_drive_has_its_error() {
        assert_eq!(decode(&packed(b"hello")).unwrap(), b"hello");
        assert!(matches!(decode("http://10.0.0.1/x"), Err(ConfigDriveError::Address)));
        assert!(matches!(decode("*"), Err(ConfigDriveError::NotBase64(_))));
        assert!(matches!(decode("aGVsbG8="), Err(ConfigDriveError::NotGzip(_))));
        assert!(matches!(decode(&packed(b"")), Err(ConfigDriveError::Empty)));
    }

    #[test]
    fn a_config_drive_of_the_largest_size_is_accepted_and_a_decompression_bomb_is_refused() {
        assert_eq!(decode(&packed(&vec![0; LARGEST])).unwrap().len(), LARGEST);
        let bomb = packed(&vec![0; LARGEST + 1]);
        assert!(matches!(decode(&bomb), Err(ConfigDriveError::TooLarge)));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = decode(&text);
        }
    }
}
