//! What is on the disks of a machine.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use bmc_emulator::DiskSpec;
use serde::{Deserialize, Serialize};

/// How much of a real file is looked at to say whether it is blank.
const LOOKED_AT: usize = 1 << 20;

/// A disk, and what was written to it.
#[derive(Clone, Debug)]
pub struct Disk {
    /// What it is made of.
    pub spec: DiskSpec,
    kept: Kept,
    /// The config drive that was written with the image, as it was sent.
    drive: Option<String>,
}

/// Where a disk's bytes are.
#[derive(Clone, Debug)]
enum Kept {
    /// Nowhere: it is only known what they are.
    Remembered(Content),
    /// In a file.
    File(PathBuf),
}

/// What is on a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Nothing but zeros where partition tables and signatures would be.
    Blank,
    /// So many bytes of an image that did not arrive whole, or could not be trusted: nothing boots from this.
    Broken {
        /// How many.
        bytes: u64,
    },
    /// An image.
    Image {
        /// Where it came from.
        name: String,
        /// How many bytes were written.
        bytes: u64,
        /// The checksum of the bytes as they were served, hexadecimal; empty where nobody counted.
        checksum: String,
        /// Whether its first sector ends like one that can be booted.
        bootable: bool,
        /// Whether a config drive was written with it.
        config_drive: bool,
    },
}

impl Content {
    /// Whether firmware can start it.
    pub fn is_bootable(&self) -> bool {
        matches!(self, Content::Image { bootable: true, .. })
    }

    /// An operating system of an earlier owner.
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
        Disk { spec, kept: Kept::Remembered(Content::Blank), drive: None }
    }

    pub(crate) fn file(spec: DiskSpec, path: PathBuf) -> Disk {
        Disk { spec, kept: Kept::File(path), drive: None }
    }

    /// What is on it now.
    pub fn content(&self) -> Content {
        match &self.kept {
            Kept::Remembered(content) => content.clone(),
            Kept::File(path) => look_at(path).unwrap_or(Content::Blank),
        }
    }

    /// The config drive beside its image, as it was sent.
    pub(crate) fn drive(&self) -> Option<&str> {
        self.drive.as_deref()
    }

    /// Puts a config drive beside its image.
    pub(crate) fn set_drive(&mut self, drive: Option<String>) {
        self.drive = drive;
    }

    /// Puts `content` on it, and no config drive. A disk that is a file keeps what it has.
    pub(crate) fn set(&mut self, content: Content) {
        self.drive = None;
        if let Kept::Remembered(kept) = &mut self.kept {
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

/// A PC's firmware wants 0x55 0xAA at the end of the first sector; a GPT has it too (UEFI 2.10 §5.2.3).
pub(crate) fn can_be_booted(head: &[u8]) -> bool {
    head.get(510..512) == Some(&[0x55, 0xaa])
}
