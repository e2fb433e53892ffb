//! The reasons why a partition image cannot be written.

use std::io;

use super::root_files::RootFilesError;

/// The reasons why a partition image cannot be written, beside those of every image.
#[derive(Debug, thiserror::Error)]
pub enum PartitionError {
    #[error("the ephemeral partition cannot have the file system {0:?}, only ext2, ext3 or ext4")]
    EphemeralFormat(String),
    #[error("the disk cannot get an MBR, because a machine that boots by UEFI gets a GPT")]
    NeedsGpt,
    #[error(
        "the disk has no ephemeral partition of an earlier deployment with the same sizes, which is to be preserved"
    )]
    NothingToPreserve,
    #[error("a BIOS cannot boot from a disk with sectors of {0} bytes")]
    SectorSize(u32),
    #[error(transparent)]
    Files(#[from] RootFilesError),
    #[error("the image has no boot loader for UEFI in /boot/efi/EFI")]
    NoLoader,
    #[error("the image has neither /boot/grub/grub.cfg nor /boot/grub2/grub.cfg")]
    NoMenu,
    #[error("the image's {0} uses blscfg, which the ramdisk's GRUB does not know")]
    UnknownMenu(&'static str),
    #[error("cannot read the GRUB of the ramdisk")]
    NoGrub(#[source] io::Error),
    #[error("cannot start /bin/mke2fs, which makes the ephemeral file system")]
    NoProgram(#[source] io::Error),
    #[error("/bin/mke2fs could not make the ephemeral file system: {0}")]
    Program(String),
}
