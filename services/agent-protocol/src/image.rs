//! What an agent is told of the image it writes.

use hardware::AllowedHosts;
use serde::{Deserialize, Serialize};

/// The `image_info` argument of `write_image`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageInfo {
    /// A name for logs.
    #[serde(default)]
    pub id: String,
    /// Where to get it, first choice first; `http` or `https`.
    pub urls: Vec<String>,
    /// What it is once decompressed. An agent decompresses gz, xz and zst by looking at the first bytes.
    pub disk_format: DiskFormat,
    /// How to check it.
    pub os_hash_algo: ChecksumAlgorithm,
    /// The checksum of the bytes as they are served, hexadecimal.
    pub os_hash_value: String,
    /// The node the image is for.
    #[serde(default)]
    pub node_uuid: String,
    /// Always `whole-disk` here.
    #[serde(default)]
    pub image_type: String,
    /// Ours: PEM of an authority that signs the image server's certificate, beside the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_ca: Option<String>,
    /// Ours: where images may come from, redirects of the image server included.
    #[serde(default)]
    pub image_hosts: AllowedHosts,
}

/// What an image is, once decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskFormat {
    /// The disk's bytes.
    Raw,
    /// QEMU's copy-on-write format, version 2 or 3, without backing file or external data.
    Qcow2,
}

/// How an image is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChecksumAlgorithm {
    /// SHA-2 of 256 bits.
    Sha256,
    /// SHA-2 of 512 bits.
    Sha512,
}
