//! Tells partition images from images of whole disks, and parses the partitions that a node asks for, as Ironic does (`images.py`,
//! `is_whole_disk_image`; `deploy_utils.py`, `parse_instance_info`).

use agent_protocol::{DiskLabel, DiskLayout, ImageType};
use hardware::BootMode;
use serde_json::Value;

use crate::fast_track::flag;
use crate::instance::{refuse, text};
use crate::wanted_boot::{declared_boot_mode, declared_capability, wanted_boot};
use crate::{DeployMethod, Node, RequestRefused, glance_image};

/// The largest partition in MiB: one PiB.
const LARGEST_MIB: u64 = 1 << 30;

/// The properties of an image in Glance that tell its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageProperties<'a> {
    pub img_type: Option<&'a str>,
    pub kernel_id: Option<&'a str>,
    pub ramdisk_id: Option<&'a str>,
}

/// Returns the type that `instance_info` names.
fn named_type(node: &Node) -> Result<Option<ImageType>, RequestRefused> {
    match text(node, "image_type")? {
        None => Ok(None),
        Some("whole-disk") => Ok(Some(ImageType::WholeDisk)),
        Some("partition") => Ok(Some(ImageType::Partition)),
        Some(other) => {
            let other: String = other.chars().take(32).collect();
            Err(refuse("image_type", format!("{other:?} is neither whole-disk nor partition")))
        }
    }
}

/// Whether `instance_info` has a kernel or a ramdisk, which only a partition image of a URL does.
fn has_kernel(node: &Node) -> bool {
    let is_set = |key| match node.instance_info.get(key) {
        None | Some(Value::Null) => false,
        Some(value) => value != "",
    };
    is_set("kernel") || is_set("ramdisk")
}

impl Node {
    /// Whether the image of the node may be a partition image, as far as its record tells: it does not know the properties of an image in
    /// Glance.
    pub fn may_have_partition_image(&self) -> bool {
        self.deploy_method() == DeployMethod::Direct
            && match named_type(self) {
                Ok(Some(named)) => named == ImageType::Partition,
                Ok(None) => glance_image(self).is_some() || has_kernel(self),
                Err(_) => false,
            }
    }
}

/// Returns the partitions for the image of `node` at a URL; `None` for the image of a whole disk.
pub fn layout_at_url(node: &Node) -> Result<Option<DiskLayout>, RequestRefused> {
    let otherwise = if has_kernel(node) { ImageType::Partition } else { ImageType::WholeDisk };
    layout(node, named_type(node)?.unwrap_or(otherwise))
}

/// Returns the partitions for the image of `node` in an OCI registry, which is one of a whole disk unless the node tells.
pub fn layout_in_registry(node: &Node) -> Result<Option<DiskLayout>, RequestRefused> {
    layout(node, named_type(node)?.unwrap_or_default())
}

/// Returns the partitions for the image of `node` in Glance, which has these properties.
pub fn layout_in_glance(
    node: &Node,
    properties: ImageProperties<'_>,
) -> Result<Option<DiskLayout>, RequestRefused> {
    let is_set = |value: Option<&str>| value.is_some_and(|value| !value.is_empty());
    let ImageProperties { img_type, kernel_id, ramdisk_id } = properties;
    let is_partition = match img_type.filter(|named| !named.is_empty()) {
        Some(named) => named == "partition",
        None => is_set(kernel_id) || is_set(ramdisk_id),
    };
    let otherwise = if is_partition { ImageType::Partition } else { ImageType::WholeDisk };
    layout(node, named_type(node)?.unwrap_or(otherwise))
}

/// Checks what is known of the partitions for the image of `node`, wherever the image is.
pub(crate) fn check_layout(node: &Node) -> Result<(), RequestRefused> {
    match named_type(node)? {
        Some(named) => layout(node, named).map(drop),
        None => Ok(()),
    }
}

fn layout(node: &Node, kind: ImageType) -> Result<Option<DiskLayout>, RequestRefused> {
    if kind == ImageType::WholeDisk {
        return Ok(None);
    }
    let root_mb = size(node, "root_gb", 1024)?;
    if root_mb == 0 {
        return Err(refuse("root_gb", "missing; a partition image needs the size".to_owned()));
    }
    let ephemeral_mb = size(node, "ephemeral_gb", 1024)?;
    let disk_label = disk_label(node)?;
    check_boot_option(node)?;
    if has_software_raid(node) {
        let problem = "only whole-disk images are written to software RAID".to_owned();
        return Err(refuse("image_type", problem));
    }
    Ok(Some(DiskLayout {
        root_mb,
        swap_mb: size(node, "swap_mb", 1)?,
        ephemeral_mb,
        ephemeral_format: ephemeral_format(node)?.filter(|_| ephemeral_mb > 0),
        preserve_ephemeral: preserve_ephemeral(node)?,
        disk_label,
    }))
}

/// Returns a size of `instance_info` in MiB; 0 if it is missing. Nova writes numbers as text.
fn size(node: &Node, key: &str, unit_mib: u64) -> Result<u32, RequestRefused> {
    let number = match node.instance_info.get(key) {
        None | Some(Value::Null) => Some(0),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => None,
    };
    let mib = number.and_then(|number| number.checked_mul(unit_mib));
    let fits = mib.filter(|mib| *mib <= LARGEST_MIB).and_then(|mib| u32::try_from(mib).ok());
    fits.ok_or_else(|| refuse(key, "must be a whole number from 0 to one PiB".to_owned()))
}

fn ephemeral_format(node: &Node) -> Result<Option<String>, RequestRefused> {
    match text(node, "ephemeral_format")? {
        None => Ok(Some("ext4".to_owned())),
        Some(known @ ("ext2" | "ext3" | "ext4")) => Ok(Some(known.to_owned())),
        Some(other) => {
            let other: String = other.chars().take(32).collect();
            let problem = format!("{other:?} is not ext2, ext3 or ext4");
            Err(refuse("ephemeral_format", problem))
        }
    }
}

fn preserve_ephemeral(node: &Node) -> Result<bool, RequestRefused> {
    let key = "preserve_ephemeral";
    match node.instance_info.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(value) => flag(value).ok_or_else(|| refuse(key, "must be true or false".to_owned())),
    }
}

/// Returns the kind of partition table that the instance wants, or else the one that the operator declares.
fn disk_label(node: &Node) -> Result<Option<DiskLabel>, RequestRefused> {
    let wrong = |problem: &str| refuse("capabilities.disk_label", problem.to_owned());
    let label = match capability(node, "disk_label") {
        None | Some(Value::Null) => None,
        Some(wanted) => {
            let known = wanted.as_str().and_then(DiskLabel::find);
            Some(known.ok_or_else(|| wrong("must be gpt or msdos"))?)
        }
    };
    let mode = wanted_boot(node).mode.or(declared_boot_mode(node)).or(node.boot_mode);
    if label == Some(DiskLabel::Msdos) && mode == Some(BootMode::Uefi) {
        return Err(wrong("must be gpt for a machine that boots by UEFI"));
    }
    Ok(label.or(match declared_capability(node, "disk_label") {
        Some("gpt") => Some(DiskLabel::Gpt),
        Some(_) | None => None,
    }))
}

/// Refuses a boot other than from the disk (ironic: `boot_option`, which is deprecated and not read).
fn check_boot_option(node: &Node) -> Result<(), RequestRefused> {
    match capability(node, "boot_option") {
        None | Some(Value::Null) => Ok(()),
        Some(wanted) if wanted == "local" => Ok(()),
        Some(_) => Err(refuse("capabilities.boot_option", "must be local".to_owned())),
    }
}

fn capability<'a>(node: &'a Node, name: &str) -> Option<&'a Value> {
    node.instance_info.get("capabilities")?.get(name)
}

/// Returns the id of the root file system in the image, if the image is written to software RAID. ironic-python-agent installs a boot loader
/// for BIOS only if it gets the id (ironic, `configure_local_boot`).
pub fn mirrored_root(node: &Node) -> Result<Option<&str>, RequestRefused> {
    let key = "image_rootfs_uuid";
    let Some(root) = text(node, key)? else { return Ok(None) };
    let is_legal = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if root.len() > 36 || !root.bytes().all(is_legal) {
        return Err(refuse(key, "must be the UUID of a file system".to_owned()));
    }
    Ok(has_software_raid(node).then_some(root))
}

fn has_software_raid(node: &Node) -> bool {
    let disks = node.raid_config.get("logical_disks").and_then(Value::as_array);
    disks.is_some_and(|disks| {
        disks.iter().any(|disk| disk.get("controller").is_some_and(|it| it == "software"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_with_image;

    fn node(more: Value) -> Node {
        let mut info = json!({
            "image_source": "http://images/root.raw", "image_checksum": "0".repeat(64),
        });
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node_with_image(info.as_object().unwrap())
    }

    #[track_caller]
    fn refused(more: Value, want: &str) {
        let why = layout_at_url(&node(more)).unwrap_err().to_string();
        assert_eq!(why, format!("instance_info.{want}"));
    }

    #[test]
    fn the_type_is_named_or_follows_from_a_kernel() {
        let kinds = [
            (json!({}), false),
            (json!({"root_gb": 10, "swap_mb": 1, "kernel": "", "ramdisk": null}), false),
            (json!({"image_type": "whole-disk", "kernel": "http://h/k"}), false),
            (json!({"image_type": "partition", "root_gb": 10}), true),
            (json!({"kernel": "http://h/k", "root_gb": 10}), true),
            (json!({"ramdisk": "http://h/k", "root_gb": "10"}), true),
        ];
        for (more, is_partition) in kinds {
            let machine = node(more.clone());
            assert_eq!(layout_at_url(&machine).unwrap().is_some(), is_partition, "{more}");
            assert_eq!(machine.may_have_partition_image(), is_partition, "{more}");
        }
        refused(
            json!({"image_type": "disk"}),
            "image_type: \"disk\" is neither whole-disk nor partition",
        );
    }

    #[test]
    fn glance_tells_the_type_of_its_images() {
        let id = "b7f1b8a4-6c2b-4a1e-8b57-6a1d4f6c2a11";
        let machine = |more: Value| {
            let mut info = json!({"image_source": id, "root_gb": 4});
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            node_with_image(info.as_object().unwrap())
        };
        let plain = ImageProperties::default();
        let kernel = ImageProperties { kernel_id: Some(id), ..plain };
        let ramdisk = ImageProperties { ramdisk_id: Some(id), ..plain };
        let whole = ImageProperties { img_type: Some("whole-disk"), ..kernel };
        let named = ImageProperties { img_type: Some("partition"), ..plain };
        for (properties, want) in
            [(plain, false), (kernel, true), (ramdisk, true), (whole, false), (named, true)]
        {
            let found = layout_in_glance(&machine(json!({})), properties).unwrap();
            assert_eq!(found.is_some(), want, "{properties:?}");
            let whole = machine(json!({"image_type": "whole-disk"}));
            assert_eq!(layout_in_glance(&whole, properties).unwrap(), None);
            assert!(!whole.may_have_partition_image());
        }
        assert!(machine(json!({})).may_have_partition_image());
    }

    #[test]
    fn the_partitions_have_the_sizes_that_nova_writes() {
        let read = |more: Value| {
            let mut info = json!({"image_type": "partition"});
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            layout_at_url(&node(info)).unwrap().unwrap()
        };
        let least = read(json!({"root_gb": "20"}));
        let want = DiskLayout {
            root_mb: 20480,
            swap_mb: 0,
            ephemeral_mb: 0,
            ephemeral_format: None,
            preserve_ephemeral: false,
            disk_label: None,
        };
        assert_eq!(least, want);
        let all = read(json!({
            "root_gb": 1, "swap_mb": "512", "ephemeral_gb": 2, "preserve_ephemeral": "True",
            "capabilities": {"disk_label": "gpt", "boot_option": "local"},
        }));
        let want = DiskLayout {
            root_mb: 1024,
            swap_mb: 512,
            ephemeral_mb: 2048,
            ephemeral_format: Some("ext4".to_owned()),
            preserve_ephemeral: true,
            disk_label: Some(DiskLabel::Gpt),
        };
        assert_eq!(all, want);
    }

    #[test]
    fn a_wrong_layout_is_refused_with_the_name_of_its_field() {
        let with = |more: Value| {
            let mut info = json!({"image_type": "partition", "root_gb": 1});
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            info
        };
        refused(
            json!({"image_type": "partition"}),
            "root_gb: missing; a partition image needs the size",
        );
        for bad in [json!(-1), json!("1.5"), json!(true), json!(1_u64 << 40)] {
            let number = "must be a whole number from 0 to one PiB";
            refused(with(json!({"root_gb": bad})), &format!("root_gb: {number}"));
            refused(with(json!({"swap_mb": bad})), &format!("swap_mb: {number}"));
            refused(with(json!({"ephemeral_gb": bad})), &format!("ephemeral_gb: {number}"));
        }
        refused(
            with(json!({"ephemeral_format": "btrfs"})),
            "ephemeral_format: \"btrfs\" is not ext2, ext3 or ext4",
        );
        refused(
            with(json!({"preserve_ephemeral": "maybe"})),
            "preserve_ephemeral: must be true or false",
        );
        refused(
            with(json!({"capabilities": {"disk_label": "bsd"}})),
            "capabilities.disk_label: must be gpt or msdos",
        );
        refused(
            with(json!({"capabilities": {"disk_label": "msdos", "boot_mode": "uefi"}})),
            "capabilities.disk_label: must be gpt for a machine that boots by UEFI",
        );
        refused(
            with(json!({"capabilities": {"boot_option": "netboot"}})),
            "capabilities.boot_option: must be local",
        );
    }

    #[test]
    fn a_partition_image_is_not_written_to_software_raid() {
        let mut machine = node(json!({"image_type": "partition", "root_gb": 1}));
        let raid = json!({"logical_disks": [{"controller": "software"}]});
        machine.raid_config = raid.as_object().unwrap().clone();
        let why = layout_at_url(&machine).unwrap_err().to_string();
        let want = "instance_info.image_type: only whole-disk images are written to software RAID";
        assert_eq!(why, want);
    }

    #[test]
    fn the_root_of_an_image_is_told_for_software_raid_only() {
        let root = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
        let mut machine = node(json!({"image_rootfs_uuid": root}));
        assert_eq!(mirrored_root(&machine), Ok(None));
        let raid = json!({"logical_disks": [{"controller": "software"}]});
        machine.raid_config = raid.as_object().unwrap().clone();
        assert_eq!(mirrored_root(&machine), Ok(Some(root)));
        let long = "0".repeat(37);
        for wrong in ["root; reboot", "LABEL=root", long.as_str()] {
            machine.instance_info.insert("image_rootfs_uuid".to_owned(), wrong.into());
            let why = mirrored_root(&machine).unwrap_err().to_string();
            assert_eq!(why, "instance_info.image_rootfs_uuid: must be the UUID of a file system");
        }
    }

    #[test]
    fn the_operator_may_declare_the_partition_table() {
        let mut machine = node(json!({"image_type": "partition", "root_gb": 1}));
        machine.properties.insert("capabilities".to_owned(), "x:y, disk_label:gpt".into());
        assert_eq!(layout_at_url(&machine).unwrap().unwrap().disk_label, Some(DiskLabel::Gpt));
    }
}
