//! The description of the image that an agent writes.

use hardware::AllowedHosts;
use serde::{Deserialize, Serialize};

/// The `image_info` argument of `write_image`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageInfo {
    /// Our agent shows it in logs only. ironic-python-agent uses it as the name of a file, so it contains no slash.
    #[serde(default)]
    pub id: String,
    /// `http` or `https` URLs, in the order in which the agent tries them.
    pub urls: Vec<String>,
    /// Format after decompression. The agent recognizes gz, xz and zst compression by the first bytes.
    pub disk_format: DiskFormat,
    pub os_hash_algo: ChecksumAlgorithm,
    /// Checksum of the bytes as the server sends them, hexadecimal.
    pub os_hash_value: String,
    #[serde(default)]
    pub node_uuid: String,
    /// Always `whole-disk`: Bedplate has no partition images.
    #[serde(default)]
    pub image_type: String,
    /// Whether ironic-python-agent writes a raw image to the disk while it arrives. Without it, that agent keeps the image in memory first.
    #[serde(default)]
    pub stream_raw_images: bool,
    /// Bedplate only: PEM of a certificate authority that signed the image server's certificate, trusted beside the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_ca: Option<String>,
    /// Bedplate only: the hosts that the image may come from. The list also binds redirects of the image server.
    #[serde(default)]
    pub image_hosts: AllowedHosts,
}

/// The format of an image after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskFormat {
    /// The bytes of the disk as they are.
    Raw,
    /// QEMU's copy-on-write format, version 2 or 3, without backing file or external data.
    Qcow2,
}

/// The algorithm of an image's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChecksumAlgorithm {
    Sha256,
    Sha512,
}
