//! Writes a partition image: makes the partitions, writes the image to the root partition, and makes the disk boot.
//!
//! The boot loader for UEFI is the image's, copied from its `/boot/efi/EFI` to the EFI system partition. By BIOS, the GRUB of the ramdisk starts
//! the image's menu. ironic-python-agent runs the image's `grub-install` instead, with the rights of the agent; its release 13 has stopped
//! to do so unless it is told to (CVE-2026-43003).

use std::io;
use std::ops::Range;
use std::rc::Rc;

use agent_protocol::{DiskLabel, DiskLayout};
use hardware::BootMode;
use serde_json::{Map, Value, json};

use super::error::ImageError;
use super::mke2fs;
use super::partition_error::PartitionError;
use super::root_files::RootFiles;
use crate::disk::device::Device;
use crate::disk::esp::{self, File};
use crate::disk::grub::{self, Grub};
use crate::disk::guard::GuardedDisk;
use crate::disk::plan::{PartitionPlan, PlannedPartition, Role};
use crate::disk::{swap, table};
use crate::root::Root;

const DEFAULT_FORMAT: &str = "ext4";
/// The labels of ironic-python-agent, by which an installed system finds the file systems.
const SWAP_LABEL: &str = "swap1";
const EFI_SYSTEM_LABEL: [u8; 11] = *b"efi-part   ";
const MIB: u64 = 1 << 20;

/// A partition image to write, and the partitions to make for it.
pub struct PartitionImage {
    layout: DiskLayout,
    mode: BootMode,
    root: Root,
    plan: PartitionPlan,
}

impl PartitionImage {
    /// Plans the partitions for a machine that boots in this mode.
    pub fn new(
        layout: DiskLayout,
        mode: BootMode,
        root: Root,
        config_drive: Option<&[u8]>,
    ) -> Result<Self, PartitionError> {
        let format = layout.ephemeral_format.as_deref().unwrap_or(DEFAULT_FORMAT);
        if !matches!(format, "ext2" | "ext3" | "ext4") {
            return Err(PartitionError::EphemeralFormat(format.chars().take(32).collect()));
        }
        if mode == BootMode::Uefi && layout.disk_label == Some(DiskLabel::Msdos) {
            return Err(PartitionError::NeedsGpt);
        }
        let plan = PartitionPlan::new(&layout, mode, config_drive.map_or(0, |it| it.len() as u64));
        Ok(PartitionImage { layout, mode, root, plan })
    }

    /// The place of the root partition, to which the image is written, in bytes.
    pub(super) fn range(&self) -> Range<u64> {
        self.plan.get(Role::Root).map_or(0..0, |root| root.range.clone())
    }

    /// Checks that the disk has room for the partitions, and the partition that is to be preserved.
    pub(super) fn check(&self, device: &Device, disk_name: &str) -> Result<(), ImageError> {
        let (needed, size) = (self.plan.needed_bytes(), device.size());
        if needed > size {
            return Err(ImageError::LayoutTooLarge { disk: disk_name.to_owned(), needed, size });
        }
        if self.mode == BootMode::Bios && device.sector() != 512 {
            return Err(PartitionError::SectorSize(device.sector()).into());
        }
        let failed = |source| ImageError::Disk { disk: disk_name.to_owned(), source };
        match self.plan.get(Role::Ephemeral).filter(|_| self.layout.preserve_ephemeral) {
            Some(kept) if !has_kept(device, kept).map_err(failed)? => {
                Err(PartitionError::NothingToPreserve.into())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Makes everything beside the root partition, and returns the disk with the ids of its partitions.
    pub(super) fn finish(
        &self,
        disk: GuardedDisk,
        config_drive: Option<&[u8]>,
        disk_name: &str,
    ) -> Result<(GuardedDisk, Map<String, Value>), ImageError> {
        let failed = |source| ImageError::Disk { disk: disk_name.to_owned(), source };
        let disk = Rc::new(disk);
        let boot = self.boot_files(&disk)?;
        let mut disk = Rc::try_unwrap(disk).map_err(|_| ImageError::Panicked)?;

        self.plan.write(&mut disk).map_err(failed)?;
        if let (Some(place), Some(content)) = (self.plan.get(Role::ConfigDrive), config_drive) {
            let mut padded = content.to_vec();
            padded.resize(content.len().next_multiple_of(MIB as usize), 0);
            disk.write_at(place.range.start, &padded).map_err(failed)?;
        }
        if let Some(place) = self.plan.get(Role::Swap) {
            let uuid = uuid::Uuid::new_v4().into_bytes();
            swap::make(&mut disk, place.range.clone(), SWAP_LABEL, uuid).map_err(failed)?;
        }
        let ids = self.ids(&boot.root_id, disk_name);
        self.install_boot(&mut disk, boot).map_err(failed)?;
        if let Some(place) =
            self.plan.get(Role::Ephemeral).filter(|_| !self.layout.preserve_ephemeral)
        {
            disk.unclaim().map_err(failed)?;
            let format = self.layout.ephemeral_format.as_deref().unwrap_or(DEFAULT_FORMAT);
            mke2fs::make(&self.root, (disk.device().path(), &place.range), format)?;
        }
        Ok((disk, ids))
    }

    /// Reads what the disk needs to boot from the image.
    fn boot_files(&self, disk: &Rc<GuardedDisk>) -> Result<BootFiles, PartitionError> {
        let files = RootFiles::open(disk.clone(), self.range())?;
        let root_id = files.id();
        let kind = match self.mode {
            BootMode::Uefi => match files.loaders()? {
                loaders if loaders.is_empty() => return Err(PartitionError::NoLoader),
                loaders => BootKind::Uefi(loaders),
            },
            BootMode::Bios => {
                let (menu, text) = files.menu()?.ok_or(PartitionError::NoMenu)?;
                if text.lines().any(|line| line.trim() == "blscfg") {
                    return Err(PartitionError::UnknownMenu(menu));
                }
                let grub = Grub::read(&self.root).map_err(PartitionError::NoGrub)?;
                BootKind::Bios(grub, grub::commands(&root_id, menu))
            }
        };
        Ok(BootFiles { root_id, kind })
    }

    fn install_boot(&self, disk: &mut GuardedDisk, boot: BootFiles) -> io::Result<()> {
        match (boot.kind, self.plan.get(Role::EfiSystem), self.plan.get(Role::BiosBoot)) {
            (BootKind::Uefi(files), Some(place), _) => {
                let made = esp::make(&*disk, place.range.clone(), EFI_SYSTEM_LABEL, &files)?;
                made.write(disk)
            }
            (BootKind::Uefi(_), None, _) => Err(io::Error::other("no EFI system partition")),
            (BootKind::Bios(grub, commands), _, Some(place)) => {
                let place = (place.range.start / 512, place.range.end / 512);
                grub.install(disk, place, &commands)
            }
            (BootKind::Bios(grub, commands), _, None) => {
                grub.install(disk, (1, MIB / 512), &commands)
            }
        }
    }

    /// Returns the ids of the partitions in the form of ironic-python-agent.
    fn ids(&self, root_id: &str, disk_name: &str) -> Map<String, Value> {
        let separator = if disk_name.ends_with(|c: char| c.is_ascii_digit()) { "p" } else { "" };
        let device = |it: &PlannedPartition| {
            (it.role.as_str().to_owned(), format!("{disk_name}{separator}{}", it.number).into())
        };
        let devices: Map<String, Value> = self.plan.partitions.iter().map(device).collect();
        let efi = self.plan.get(Role::EfiSystem);
        let efi = efi.map(|it| uuid::Uuid::from_bytes_le(it.guid).to_string());
        let ids = json!({
            "partitions": devices, "root uuid": root_id, "efi system partition uuid": efi,
        });
        ids.as_object().cloned().unwrap_or_default()
    }

    /// The kind of partition table that the disk gets.
    pub fn label(&self) -> DiskLabel {
        self.plan.label
    }
}

struct BootFiles {
    /// The id of the image's file system.
    root_id: String,
    kind: BootKind,
}

enum BootKind {
    Uefi(Vec<File>),
    Bios(Grub, String),
}

/// Whether the disk has the ephemeral partition of an earlier deployment: in its table or, after a deployment that failed, by its label.
fn has_kept(device: &Device, kept: &PlannedPartition) -> io::Result<bool> {
    let sector = u64::from(device.sector());
    let place = (kept.number, kept.range.start / sector, kept.range.end / sector);
    let found = table::partitions(device)?;
    if !found.is_empty() {
        return Ok(found.iter().any(|it| (it.number, it.start, it.end()) == place));
    }
    let mut start = vec![0; 4096];
    device.read_at(kept.range.start, &mut start)?;
    // The magic number and the label of an ext file system (Linux, `struct ext4_super_block`).
    let is_ext = start[1024 + 56..1024 + 58] == [0x53, 0xef];
    Ok(is_ext && start[1024 + 120..].starts_with(mke2fs::LABEL.as_bytes()))
}
