//! The errors of writing an image, each with advice for an operator.

use std::io;

use agent_protocol::CommandError;
use hardware::HostRefused;

use super::partition_error::PartitionError;
use super::qcow2::Qcow2Error;
use crate::disk::config_drive::ConfigDriveError;
use crate::error::{chain, failure};

/// The reasons why an image could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A field of the image's description is invalid.
    #[error("the image's {field} {value:?} is invalid: {reason}")]
    Description { field: &'static str, value: String, reason: String },
    /// The image server could not be reached.
    #[error("cannot reach the image server for {url}")]
    Unreachable { url: String, source: reqwest::Error },
    /// The image server's certificate is not trusted.
    #[error("cannot trust the image server's certificate for {url}")]
    Tls { url: String, source: reqwest::Error },
    /// The URL, or a redirect from it, leads to a host that is not allowed.
    #[error("the image's URL {url} leads to a host that is not allowed")]
    HostRefused {
        url: String,
        /// The refused host, with the reason.
        source: HostRefused,
    },
    /// The image server answered with an error status.
    #[error("the image server answered {status} to GET {url}")]
    Status { url: String, status: u16 },
    /// The download ended before the end of the file.
    #[error("the image ended after {received} bytes{}", of(*expected))]
    Truncated {
        url: String,
        /// Bytes that arrived.
        received: u64,
        /// Bytes that the server announced.
        expected: Option<u64>,
    },
    /// The checksum of the image is wrong.
    #[error("the image's {algorithm} is {found}, not {expected}")]
    Checksum { algorithm: &'static str, expected: String, found: String },
    /// The server sent different bytes for the same range.
    #[error("the image changed on the server while it was read")]
    Changed,
    /// The image cannot be decompressed.
    #[error("cannot decompress the image")]
    Corrupt(#[source] io::Error),
    /// The description says raw, but the image is qcow2.
    #[error("the image is declared as raw, but it is qcow2")]
    NotRaw,
    /// The description says qcow2, but the image is not.
    #[error("the image is declared as qcow2, but it is not, or it is compressed")]
    NotQcow2,
    /// A qcow2 image that this agent cannot write.
    #[error("cannot use the qcow2 image")]
    Qcow2(#[from] Qcow2Error),
    /// The image is larger than the disk.
    #[error("the image needs {needed} bytes and {disk} has {size}")]
    DiskFull {
        disk: String,
        /// Size of the image in bytes or, if that is unknown, the number of bytes so far.
        needed: u64,
        size: u64,
    },
    /// The disk reported an error.
    #[error("cannot write to {disk}")]
    Disk { disk: String, source: io::Error },
    /// The disk is smaller than the partitions that were asked for.
    #[error("the partitions need {needed} bytes and {disk} has {size}")]
    LayoutTooLarge { disk: String, needed: u64, size: u64 },
    /// A partition image could not be written.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// The config drive could not be written.
    #[error(transparent)]
    ConfigDrive(#[from] ConfigDriveError),
    /// A thread panicked.
    #[error("the agent failed while writing; its log has the reason")]
    Panicked,
}

fn of(expected: Option<u64>) -> String {
    expected.map(|bytes| format!(" of {bytes}")).unwrap_or_default()
}

impl ImageError {
    /// Returns the same error with the name of the disk.
    pub(super) fn on(self, name: &str) -> Self {
        match self {
            ImageError::Disk { source, .. } => ImageError::Disk { disk: name.to_owned(), source },
            ImageError::DiskFull { needed, size, .. } => {
                ImageError::DiskFull { disk: name.to_owned(), needed, size }
            }
            other @ (ImageError::Description { .. }
            | ImageError::Unreachable { .. }
            | ImageError::Tls { .. }
            | ImageError::HostRefused { .. }
            | ImageError::Status { .. }
            | ImageError::Truncated { .. }
            | ImageError::Checksum { .. }
            | ImageError::Changed
            | ImageError::Corrupt(_)
            | ImageError::NotRaw
            | ImageError::NotQcow2
            | ImageError::Qcow2(_)
            | ImageError::LayoutTooLarge { .. }
            | ImageError::Partition(_)
            | ImageError::ConfigDrive(_)
            | ImageError::Panicked) => other,
        }
    }

    /// Returns the kind of the error, and advice on what to do.
    fn advice(&self) -> (&'static str, &'static str) {
        match self {
            ImageError::Description { .. } => {
                ("ImageDescriptionError", "Correct the node's instance_info and deploy again.")
            }
            ImageError::Unreachable { .. } => (
                "ImageServerUnreachable",
                "Check that the image server runs and that the machine's network reaches its address, then deploy again.",
            ),
            ImageError::Tls { .. } => (
                "ImageServerUntrusted",
                "Give the authority that signed the image server's certificate as image_ca, or use another address.",
            ),
            ImageError::HostRefused { .. } => (
                "ImageHostRefused",
                "Add the host to images.hosts in baremetald's configuration if images may come from there, then deploy again.",
            ),
            ImageError::Status { .. } => {
                ("ImageServerRefused", "Check the image's URL, then deploy again.")
            }
            ImageError::Truncated { .. } => (
                "ImageTruncated",
                "Check the file on the image server and the network between, then deploy again.",
            ),
            ImageError::Checksum { .. } | ImageError::Changed => (
                "ImageChecksumError",
                "Check that the image and its checksum belong together; the disk was left blank.",
            ),
            ImageError::Corrupt(_) => (
                "ImageCorrupt",
                "The checksum matches, so the image was already faulty when it was compressed: build it again.",
            ),
            ImageError::NotRaw | ImageError::NotQcow2 => {
                ("ImageFormatError", "Correct disk_format, or convert the image.")
            }
            ImageError::Qcow2(_) => (
                "ImageFormatError",
                "Convert it with `qemu-img convert -O qcow2` into an image that stands alone.",
            ),
            ImageError::DiskFull { .. } => {
                ("DiskFull", "Choose a larger disk by root_device, or a smaller image.")
            }
            ImageError::Disk { .. } => {
                ("DiskWriteError", "Look at the machine's console and at the disk's health.")
            }
            ImageError::LayoutTooLarge { .. } => (
                "DiskFull",
                "Choose a larger disk by root_device, or smaller root_gb, ephemeral_gb and swap_mb.",
            ),
            ImageError::Partition(_) => (
                "PartitionImageError",
                "Correct the image or the node's instance_info, and deploy again.",
            ),
            ImageError::ConfigDrive(_) => {
                ("ConfigDriveError", "Correct the config drive and deploy again.")
            }
            ImageError::Panicked => ("AgentError", "Collect the agent's logs and report a defect."),
        }
    }
}

impl From<ImageError> for CommandError {
    fn from(error: ImageError) -> CommandError {
        let (kind, advice) = error.advice();
        failure(kind, "cannot write the image", &format!("{}. {advice}", chain(&error)))
    }
}
