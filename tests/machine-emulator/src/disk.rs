//! The disks of a machine and their content.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use bmc_emulator::DiskSpec;
use serde::{Deserialize, Serialize};

/// How much of a real file is read to decide whether it is blank.
const LOOKED_AT: usize = 1 << 20;

/// A disk with its content.
#[derive(Clone, Debug)]
pub struct Disk {
    pub spec: DiskSpec,
    kept: DiskStorage,
    /// The config drive that was written with the image, as it was sent.
    drive: Option<String>,
}

#[derive(Clone, Debug)]
enum DiskStorage {
    /// Only a description of the content.
    Remembered(Content),
    File(PathBuf),
}

/// The content of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Zeros at the places of partition tables and signatures.
    Blank,
    /// An incomplete or untrusted image, which cannot be booted.
    Broken { bytes: u64 },
    Image {
        /// The source of the image.
        name: String,
        bytes: u64,
        /// The checksum of the bytes as the server sent them, hexadecimal; empty if unknown.
        checksum: String,
        /// Whether the first sector has a boot signature.
        bootable: bool,
        /// Whether a config drive was written with the image.
        config_drive: bool,
    },
    /// The image of a partition, without a boot loader.
    Partition {
        /// The image as it is once the boot loader was installed.
        image: Box<Content>,
        /// The id of the root partition.
        root_id: String,
    },
}

impl Content {
    /// Whether firmware can boot it.
    pub fn is_bootable(&self) -> bool {
        matches!(self, Content::Image { bootable: true, .. })
    }

    /// Returns an operating system of an earlier owner.
    pub fn leftover() -> Content {
        Content::Image {
            name: "an earlier owner's system".to_owned(),
            bytes: 1 << 30,
            checksum: String::new(),
            bootable: true,
            config_drive: false,
        }
    }
}

impl Disk {
    pub(crate) fn remembered(spec: DiskSpec) -> Disk {
        Disk { spec, kept: DiskStorage::Remembered(Content::Blank), drive: None }
    }

    pub(crate) fn file(spec: DiskSpec, path: PathBuf) -> Disk {
        Disk { spec, kept: DiskStorage::File(path), drive: None }
    }

    /// Returns the current content.
    pub fn content(&self) -> Content {
        match &self.kept {
            DiskStorage::Remembered(content) => content.clone(),
            DiskStorage::File(path) => look_at(path).unwrap_or(Content::Blank),
        }
    }

    /// Returns the config drive next to the image, as it was sent.
    pub(crate) fn drive(&self) -> Option<&str> {
        self.drive.as_deref()
    }

    /// Sets the config drive next to the image.
    pub(crate) fn set_drive(&mut self, drive: Option<String>) {
        self.drive = drive;
    }

    /// Replaces the content and removes the config drive. A disk that is a file keeps its content.
    pub(crate) fn set(&mut self, content: Content) {
        self.drive = None;
        if let DiskStorage::Remembered(kept) = &mut self.kept {
            *kept = content;
        }
    }
}

fn look_at(path: &PathBuf) -> io::Result<Content> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut head = Vec::with_capacity(LOOKED_AT);
    file.take(LOOKED_AT as u64).read_to_end(&mut head)?;
    if head.iter().all(|byte| *byte == 0) {
        return Ok(Content::Blank);
    }
    match can_be_booted(&head) {
        true => Ok(Content::Image {
            name: path.display().to_string(),
            bytes,
            checksum: String::new(),
            bootable: true,
            config_drive: false,
        }),
        false => Ok(Content::Broken { bytes }),
    }
}

/// A PC's firmware needs 0x55 0xAA at the end of the first sector; a GPT disk has it too (UEFI 2.10 §5.2.3).
pub(crate) fn can_be_booted(head: &[u8]) -> bool {
    head.get(510..512) == Some(&[0x55, 0xaa])
}
