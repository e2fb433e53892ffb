//! The reasons why a step of the RAID interface failed.

use std::io;

use crate::disk::erase::EraseError;
use crate::hints::HintError;

/// The reasons why a step of the RAID interface failed.
#[derive(Debug, thiserror::Error)]
pub enum RaidError {
    #[error("the RAID configuration cannot be made: {}", .problems.join("; "))]
    Invalid {
        /// One problem for each wrong field.
        problems: Vec<String>,
    },
    #[error("physical_disks: {0}")]
    Hint(#[source] HintError),
    #[error("{disk} has partitions, and an array would overwrite them")]
    NotBlank { disk: String },
    #[error("{disk} has {has_mib} MiB, and its logical disks need {needs_mib} MiB")]
    TooSmall { disk: String, has_mib: u64, needs_mib: u64 },
    #[error("cannot start {program}")]
    NoProgram { program: &'static str, source: io::Error },
    #[error("{command} failed: {said}")]
    Program {
        command: String,
        /// The end of the program's error output.
        said: String,
    },
    #[error("cannot make partitions on {disk}")]
    Disk { disk: String, source: io::Error },
    #[error(transparent)]
    Erase(#[from] EraseError),
    #[error("the array {0} was made, and the kernel does not show it")]
    Missing(String),
    #[error("the arrays {} are still running", .0.join(", "))]
    StillRunning(Vec<String>),
    #[error("the node has a RAID configuration, and no array of it is on the disks")]
    NoArray,
}

impl RaidError {
    /// Returns advice for the operator.
    pub fn advice(&self) -> &'static str {
        match self {
            RaidError::Invalid { .. } | RaidError::Hint(_) => {
                "Change the target RAID configuration of the node, and run the step again."
            }
            RaidError::NotBlank { .. } => {
                "Run raid.delete_configuration or deploy.erase_devices_metadata before this step."
            }
            RaidError::TooSmall { .. } => {
                "Choose smaller sizes, or larger disks by physical_disks, and run the step again."
            }
            RaidError::NoProgram { .. } => "Build the ramdisk again: it has to contain mdadm.",
            RaidError::Program { .. }
            | RaidError::Disk { .. }
            | RaidError::Erase(_)
            | RaidError::Missing(_)
            | RaidError::StillRunning(_) => {
                "Look for a broken disk, then run raid.delete_configuration and this step again."
            }
            RaidError::NoArray => {
                "Run the clean steps raid.delete_configuration and raid.create_configuration."
            }
        }
    }
}
