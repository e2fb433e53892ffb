//! Disks, from `/sys/block`.

use std::fs;

use agent_protocol::Disk;

use super::pci;
use crate::root::Root;

/// Prefixes of devices that are not disks for an image: memory, loops, assembled devices, CDs, floppies, network disks.
const NOT_DISKS: &[&str] = &["loop", "ram", "zram", "sr", "fd", "md", "dm-", "nbd", "mtdblock"];

/// Returns every fixed disk, by name. USB sticks and virtual media are marked as removable and are left out.
pub fn disks(root: &Root) -> Vec<Disk> {
    let names = root.names("/sys/block").into_iter();
    let hardware = names.filter(|name| !NOT_DISKS.iter().any(|prefix| name.starts_with(prefix)));
    hardware.filter_map(|name| disk(root, &name)).collect()
}

fn disk(root: &Root, name: &str) -> Option<Disk> {
    let at = |file: &str| format!("/sys/block/{name}/{file}");
    let flag = |file: &str| root.number::<u8>(at(file)) == Some(1);
    // The kernel counts in units of 512 bytes, whatever the sector size.
    let size = root.number::<u64>(at("size")).unwrap_or(0).saturating_mul(512);
    if size == 0 || flag("removable") || flag("hidden") {
        return None;
    }
    let path = fs::canonicalize(root.path(format!("/sys/block/{name}")))
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    let wwid = root.text(at("device/wwid")).or_else(|| root.text(at("wwid")));
    let wwn = wwid.as_deref().and_then(world_wide_name);
    let hctl = root.link_name(at("device")).filter(|link| link.split(':').count() == 4);
    Some(Disk {
        name: format!("/dev/{name}"),
        model: root.text(at("device/model")),
        size,
        rotational: flag("queue/rotational"),
        wwn: wwn.as_ref().map(|(short, _)| short.clone()),
        serial: serial(root, name),
        vendor: root.text(at("device/vendor")),
        wwn_with_extension: wwn.as_ref().map(|(short, extension)| format!("{short}{extension}")),
        wwn_vendor_extension: wwn
            .map(|(_, extension)| format!("0x{extension}"))
            .filter(|extension| extension != "0x"),
        by_path: by_path(root, name, &path, hctl.as_deref()),
        hctl,
        logical_sectors: root.number(at("queue/logical_block_size")),
        physical_sectors: root.number(at("queue/physical_block_size")),
        tran: transport(&path),
    })
}

/// Virtio and NVMe have a file with the serial number; SCSI and ATA have a VPD page (SPC-4 §7.8.15).
fn serial(root: &Root, name: &str) -> Option<String> {
    let at = |file: &str| format!("/sys/block/{name}/{file}");
    let page = || {
        let raw = fs::read(root.path(at("device/vpd_pg80"))).ok()?;
        let text = String::from_utf8_lossy(raw.get(4..)?).trim_matches(['\0', ' ']).to_owned();
        (!text.is_empty()).then_some(text)
    };
    root.text(at("serial")).or_else(|| root.text(at("device/serial"))).or_else(page)
}

/// Splits `naa.5000c500a1b2c3d4…` or `eui.…` like udev: the first 16 digits, and the rest.
fn world_wide_name(wwid: &str) -> Option<(String, String)> {
    if let Some(digits) = wwid.strip_prefix("naa.") {
        let (short, extension) = digits.split_at_checked(16).unwrap_or((digits, ""));
        return Some((format!("0x{short}"), extension.to_owned()));
    }
    wwid.starts_with("eui.").then(|| (wwid.to_owned(), String::new()))
}

/// Computes the name that udev would derive from the disk's slot; the ramdisk has no udev.
fn by_path(root: &Root, name: &str, path: &str, hctl: Option<&str>) -> Option<String> {
    const LINKS: &str = "/dev/disk/by-path";
    let links = root.names(LINKS).into_iter();
    let linked = links
        .map(|link| format!("{LINKS}/{link}"))
        .find(|link| root.link_name(link).as_deref() == Some(name));
    let computed = || {
        let pci = pci::address_in(path)?;
        let part = |prefix: &str| {
            path.split('/').find(|part| {
                part.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok())
            })
        };
        let tail = if let Some(port) = part("ata") {
            let number =
                format!("{}/ata_port/{port}/port_no", path.split_once(port)?.0.to_owned() + port);
            let number = fs::read_to_string(number).ok()?;
            format!("-ata-{}", number.trim())
        } else if path.contains("/nvme/") {
            format!("-nvme-{}", root.number::<u32>(format!("/sys/block/{name}/nsid"))?)
        } else if let Some(hctl) = hctl {
            // udev numbers hosts from 0 on each controller.
            format!("-scsi-0:{}", hctl.split_once(':')?.1)
        } else {
            String::new()
        };
        Some(format!("{LINKS}/pci-{pci}{tail}"))
    };
    linked.or_else(computed)
}

fn transport(path: &str) -> Option<String> {
    let known = [("/nvme/", "nvme"), ("/ata", "sata"), ("/usb", "usb"), ("/end_device-", "sas")];
    known.iter().find(|(part, _)| path.contains(part)).map(|(_, name)| (*name).to_owned())
}

/// Returns the partitions that the kernel sees on a disk, as `(start, length)` in bytes.
pub fn partitions_of(root: &Root, name: &str) -> Vec<(u64, u64)> {
    let name = name.trim_start_matches("/dev/");
    let children = root.names(format!("/sys/block/{name}")).into_iter();
    let sectors =
        |child: &str, file: &str| root.number::<u64>(format!("/sys/block/{name}/{child}/{file}"));
    children
        .filter(|child| child.starts_with(name))
        .filter_map(|child| {
            let (start, size) = (sectors(&child, "start")?, sectors(&child, "size")?);
            Some((start.checked_mul(512)?, size.checked_mul(512)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn world_wide_names_of_every_kind_are_split() {
        let naa = world_wide_name("naa.600508b1001c5a5b0a1b2c3d4e5f6071").unwrap();
        assert_eq!(naa, ("0x600508b1001c5a5b".to_owned(), "0a1b2c3d4e5f6071".to_owned()));
        let eui = world_wide_name("eui.0025385b61b0a1b2").unwrap();
        assert_eq!(eui.0, "eui.0025385b61b0a1b2");
        assert_eq!(world_wide_name("t10.ATA     QEMU"), None);
    }

    #[test]
    fn only_fixed_hardware_is_listed() {
        let folder = crate::scratch::Folder::new();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/block/vda/size", "2097152\n");
        put("sys/block/vda/serial", "disk-1\n");
        put("sys/block/vda/queue/rotational", "1\n");
        put("sys/block/vda/queue/logical_block_size", "512\n");
        put("sys/block/vda/vda1/start", "2048\n");
        put("sys/block/vda/vda1/size", "4096\n");
        put("sys/block/loop0/size", "8\n");
        put("sys/block/sr0/size", "8\n");
        put("sys/block/sdb/size", "8\n");
        put("sys/block/sdb/removable", "1\n");
        put("sys/block/sdc/size", "0\n");
        let root = Root::new(folder.path());
        let found = disks(&root);
        let want = Disk {
            name: "/dev/vda".to_owned(),
            size: 1 << 30,
            rotational: true,
            serial: Some("disk-1".to_owned()),
            logical_sectors: Some(512),
            ..Disk::default()
        };
        assert_eq!(found, [want]);
        assert_eq!(partitions_of(&root, "/dev/vda"), [(1 << 20, 2 << 20)]);
    }
}
