//! Why an image could not be written, in words an operator can act on.

use std::io;

use agent_protocol::CommandError;
use hardware::HostRefused;

use super::qcow2::Qcow2Error;
use crate::disk::config_drive::ConfigDriveError;
use crate::error::{chain, failure};

/// Why an image could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The image's description itself is no use.
    #[error("the image's {field} {value:?} is no use: {reason}")]
    Description {
        /// Which part.
        field: &'static str,
        /// What it says.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No connection.
    #[error("cannot reach the image server for {url}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// No trust.
    #[error("cannot trust the image server's certificate for {url}")]
    Tls {
        /// What was asked for.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// It is where no image may come from, or leads there.
    #[error("the image's address {url} leads where no image may come from")]
    Elsewhere {
        /// What was asked for.
        url: String,
        /// Where it leads.
        source: HostRefused,
    },
    /// It answered, but not with the image.
    #[error("the image server answered {status} to GET {url}")]
    Status {
        /// What was asked for.
        url: String,
        /// What came.
        status: u16,
    },
    /// It stopped before the end.
    #[error("the image ended after {received} bytes{}", of(*expected))]
    Truncated {
        /// Where from.
        url: String,
        /// How many bytes came.
        received: u64,
        /// How many were announced.
        expected: Option<u64>,
    },
    /// The bytes are not the right ones.
    #[error("the image's {algorithm} is {found}, not {expected}")]
    Checksum {
        /// Which checksum.
        algorithm: &'static str,
        /// As told.
        expected: String,
        /// As it is.
        found: String,
    },
    /// The server serves different bytes for the same range.
    #[error("the image changed on the server while it was read")]
    Changed,
    /// gzip, xz or zstd.
    #[error("cannot unpack the image")]
    Corrupt(#[source] io::Error),
    /// Announced as raw.
    #[error("the image is said to be raw, but it is qcow2")]
    NotRaw,
    /// Announced as qcow2.
    #[error("the image is said to be qcow2, but it is not, or is packed once more")]
    NotQcow2,
    /// A qcow2 image this agent does not write.
    #[error("cannot use the qcow2 image")]
    Qcow2(#[from] Qcow2Error),
    /// The disk is too small.
    #[error("the image needs {needed} bytes and {disk} has {size}")]
    DiskFull {
        /// Which disk.
        disk: String,
        /// What it needs; where that is not known, what came so far.
        needed: u64,
        /// What there is.
        size: u64,
    },
    /// The disk.
    #[error("cannot write to {disk}")]
    Disk {
        /// Which disk.
        disk: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The config drive.
    #[error(transparent)]
    ConfigDrive(#[from] ConfigDriveError),
    /// A thread ended that must not.
    #[error("the agent failed while writing; its log has the reason")]
    Panicked,
}

fn of(expected: Option<u64>) -> String {
    expected.map(|bytes| format!(" of {bytes}")).unwrap_or_default()
}

impl ImageError {
    /// The same error, naming the disk.
    pub(super) fn on(self, name: &str) -> Self {
        match self {
            ImageError::Disk { source, .. } => ImageError::Disk { disk: name.to_owned(), source },
            ImageError::DiskFull { needed, size, .. } => {
                ImageError::DiskFull { disk: name.to_owned(), needed, size }
            }
            other @ (ImageError::Description { .. }
            | ImageError::Unreachable { .. }
            | ImageError::Tls { .. }
            | ImageError::Elsewhere { .. }
            | ImageError::Status { .. }
            | ImageError::Truncated { .. }
            | ImageError::Checksum { .. }
            | ImageError::Changed
            | ImageError::Corrupt(_)
            | ImageError::NotRaw
            | ImageError::NotQcow2
            | ImageError::Qcow2(_)
            | ImageError::ConfigDrive(_)
            | ImageError::Panicked) => other,
        }
    }

    /// The word for the kind of error, and what to do about it.
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
            ImageError::Elsewhere { .. } => (
                "ImageHostRefused",
                "Add the host to images.hosts in baremetald's configuration if images may come from there, then deploy again.",
            ),
            ImageError::Status { .. } => {
                ("ImageServerRefused", "Check the image's address, then deploy again.")
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
                "The checksum matches, so the image was packed badly: make it anew.",
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
