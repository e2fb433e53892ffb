//! The description of the image that an agent writes.

use hardware::AllowedHosts;
use serde::{Deserialize, Deserializer, Serialize};

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
    #[serde(default)]
    pub image_type: ImageType,
    /// The partitions to make, for a partition image.
    #[serde(flatten)]
    pub layout: Option<DiskLayout>,
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

/// Whether an image contains a partition table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageType {
    /// The image of a disk, with its partitions and its boot loader.
    #[default]
    WholeDisk,
    /// The image of a file system, for which the agent makes the partitions.
    Partition,
}

/// The partitions that the agent makes for a partition image. ironic-python-agent requires each field, also a null one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLayout {
    /// Size of the root partition in MiB.
    pub root_mb: u32,
    /// Size of the swap partition in MiB, without one if it is 0.
    #[serde(default, deserialize_with = "zero_if_null")]
    pub swap_mb: u32,
    /// Size of the ephemeral partition in MiB, without one if it is 0.
    #[serde(default, deserialize_with = "zero_if_null")]
    pub ephemeral_mb: u32,
    /// The file system of the ephemeral partition: `ext2`, `ext3` or `ext4`, which is the default.
    #[serde(default)]
    pub ephemeral_format: Option<String>,
    /// Keeps the ephemeral partition of an earlier deployment with the same layout.
    #[serde(default)]
    pub preserve_ephemeral: bool,
    /// The kind of partition table of a machine that boots by BIOS, `msdos` by default. By UEFI it is always a GPT.
    #[serde(default)]
    pub disk_label: Option<DiskLabel>,
}

fn zero_if_null<'de, D: Deserializer<'de>>(value: D) -> Result<u32, D::Error> {
    Option::<u32>::deserialize(value).map(Option::unwrap_or_default)
}

words::words! {
    /// A kind of partition table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum DiskLabel {
        Gpt = "gpt",
        Msdos = "msdos",
    }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(more: Value) -> ImageInfo {
        let mut image = json!({
            "id": "image", "urls": ["http://10.0.0.1/x"], "disk_format": "raw", "os_hash_algo": "sha256",
            "os_hash_value": "00",
        });
        image.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(image).unwrap()
    }

    #[test]
    fn the_partition_image_of_ironic_is_read() {
        let image = read(json!({
            "image_type": "partition", "kernel": null, "ramdisk": null, "root_gb": 4, "root_mb": 4096, "swap_mb": 0,
            "ephemeral_mb": 1024, "ephemeral_format": "ext4", "configdrive": null, "preserve_ephemeral": true,
            "deploy_boot_mode": "uefi", "boot_option": "local", "disk_label": "gpt",
        }));
        assert_eq!(image.image_type, ImageType::Partition);
        let want = DiskLayout {
            root_mb: 4096,
            swap_mb: 0,
            ephemeral_mb: 1024,
            ephemeral_format: Some("ext4".to_owned()),
            preserve_ephemeral: true,
            disk_label: Some(DiskLabel::Gpt),
        };
        assert_eq!(image.layout, Some(want));
    }

    #[test]
    fn the_layout_is_written_with_each_field_and_only_for_partition_images() {
        let whole = read(json!({}));
        assert_eq!((whole.image_type, &whole.layout), (ImageType::WholeDisk, &None));
        let written = serde_json::to_value(&whole).unwrap();
        assert_eq!(written["image_type"], "whole-disk");
        assert_eq!(written.get("root_mb"), None);
        let image = read(json!({"image_type": "partition", "root_mb": 1, "swap_mb": null}));
        let written = serde_json::to_value(&image).unwrap();
        for field in
            ["root_mb", "swap_mb", "ephemeral_mb", "ephemeral_format", "preserve_ephemeral"]
        {
            assert!(written.get(field).is_some(), "{field}");
        }
        assert_eq!(serde_json::from_value::<ImageInfo>(written).unwrap(), image);
    }
}
