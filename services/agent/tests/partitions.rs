//! Tests of partition images: the partitions, the boot loader, and a disk that stays unbootable after a failure.

#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails the test")]

#[expect(dead_code, reason = "each test program uses its part of the harness")]
mod harness;

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Machine, Reply, Server, Setup, assert_failed, images, write_image};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;
const MKE2FS: &str = "/usr/sbin/mke2fs";
const ROOT_ID: &str = "5bf1c9ab-94a4-4d1c-8d1e-3f2f6a2f9d10";
const CODE: u8 = 0xb0;

/// Begins a test, unless mke2fs is missing.
fn begin(test: &str) -> bool {
    let is_there = Path::new(MKE2FS).exists();
    if !is_there {
        peers::skip(test, "it needs mke2fs");
    }
    is_there
}

/// Starts a machine with a disk of 800 MiB, and with mke2fs and GRUB in its ramdisk.
fn machine(uefi: bool) -> Machine {
    let machine = Machine::with(Setup { uefi, ..Setup::default() });
    let put = |path: &str, content: &[u8]| {
        let path = machine.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    put("sys/block/vda/size", (800 * 2048).to_string().as_bytes());
    put("dev/vda", &[0xaa; MIB]);
    let disk = fs::File::options().write(true).open(machine.path("dev/vda")).unwrap();
    disk.set_len((800 * MIB) as u64).unwrap();
    put("lib/grub/boot.img", &[CODE; 512]);
    put("lib/grub/core.img", &[CODE; 3000]);
    fs::create_dir_all(machine.path("bin")).unwrap();
    symlink(MKE2FS, machine.path("bin/mke2fs")).unwrap();
    machine
}

/// The image of a root file system of 16 MiB with these files.
fn root_image(machine: &Machine, kind: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let (tree, image) = (machine.path("tree"), machine.path("image"));
    let _ = fs::remove_dir_all(&tree);
    for (path, content) in files {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::create_dir_all(&tree).unwrap();
    let made = Command::new(MKE2FS)
        .args(["-q", "-F", "-t", kind, "-U", ROOT_ID, "-d"])
        .args([&tree, &image])
        .arg("16M")
        .status();
    assert!(made.unwrap().success());
    fs::read(image).unwrap()
}

fn uefi_files() -> Vec<(&'static str, &'static [u8])> {
    const LIST: &[u8] = b"s\0h\0i\0m\0x\x006\x004\0.\0e\0f\0i\0,\0d\0e\0b\0i\0a\0n\0";
    vec![
        ("boot/efi/EFI/BOOT/BOOTX64.EFI", b"MZ fallback"),
        ("boot/efi/EFI/debian/shimx64.efi", b"MZ shim"),
        ("boot/efi/EFI/debian/grub.cfg", b"search"),
        ("boot/efi/EFI/debian/BOOTX64.CSV", LIST),
    ]
}

/// A description of the image with the partitions.
fn described(server: &Server, image: &[u8], more: &Value) -> Value {
    let mut info = images::info(&server.url("/image"), "raw", image);
    let layout = json!({
        "image_type": "partition", "root_mb": 40, "swap_mb": 8, "ephemeral_mb": 24, "ephemeral_format": null,
        "preserve_ephemeral": false,
    });
    for fields in [&layout, more] {
        info.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    }
    info
}

fn serve(image: &[u8]) -> Server {
    let bytes = image.to_vec();
    Server::start(move |request| Reply::file(&request, &bytes))
}

/// Writes the image with a config drive.
fn deploy(machine: &Machine, image: &[u8], more: &Value) -> Value {
    let server = serve(image);
    // "drive" as base64 of gzip.
    let drive = "H4sIAAAAAAACA0spyixLBQCP9R1oBQAAAA==";
    let params = write_image(described(&server, image, more), drive.into());
    machine.run("deploy.execute_deploy_step", params)
}

fn disk(machine: &Machine) -> fs::File {
    fs::File::open(machine.path("dev/vda")).unwrap()
}

fn bytes(disk: &fs::File, at_mib: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    disk.read_exact_at(&mut bytes, (at_mib * MIB) as u64).unwrap();
    bytes
}

/// The label of the ext file system at this place.
fn label(disk: &fs::File, at_mib: usize) -> String {
    let start = bytes(disk, at_mib, 4096);
    assert_eq!(start[1080..1082], [0x53, 0xef], "no ext file system at {at_mib} MiB");
    String::from_utf8_lossy(&start[1144..1160]).trim_end_matches('\0').to_owned()
}

#[track_caller]
fn assert_blank_ends(disk: &fs::File) {
    for at in [0, 799] {
        assert!(bytes(disk, at, MIB).iter().all(|byte| *byte == 0), "MiB {at} is not blank");
    }
}

fn succeeded(ended: &Value) {
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
}

#[test]
fn a_uefi_machine_gets_the_loader_of_its_image() {
    if !begin("a_uefi_machine_gets_the_loader_of_its_image") {
        return;
    }
    let machine = machine(true);
    let image = root_image(&machine, "ext4", &uefi_files());
    succeeded(&deploy(&machine, &image, &json!({})));

    let disk = disk(&machine);
    // The layout in MiB: EFI system 1-551, ephemeral 551-575, swap 575-583, config drive 583-584, root 584-624.
    assert_eq!(bytes(&disk, 584, image.len()), image);
    assert_eq!(label(&disk, 551), "ephemeral0");
    let swap = bytes(&disk, 575, 4096);
    assert!(swap.ends_with(b"SWAPSPACE2") && swap[1052..].starts_with(b"swap1\0"));
    assert!(bytes(&disk, 583, 16).starts_with(b"drive\0"));
    assert_eq!(&bytes(&disk, 0, 1024)[512..520], b"EFI PART");
    let fat = bytes(&disk, 1, 512);
    assert_eq!((&fat[82..90], &fat[71..82]), (&b"FAT32   "[..], &b"efi-part   "[..]));

    let ids = machine.run("standby.get_partition_uuids", json!({}))["command_result"].take();
    assert_eq!(ids["root uuid"], ROOT_ID);
    assert_eq!(ids["partitions"]["root"], "/dev/vda5");
    assert_eq!(ids["efi system partition uuid"].as_str().map(str::len), Some(36));

    succeeded(&machine.run("image.install_bootloader", json!({"root_uuid": ROOT_ID})));
    let entry =
        machine.path("sys/firmware/efi/efivars/Boot0000-8be4df61-93ca-11d2-aa0d-00e098032b8c");
    let entry = fs::read(entry).unwrap();
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let has = |text: &str| {
        let wanted = utf16(text);
        entry.windows(wanted.len()).any(|part| part == wanted)
    };
    assert!(has("debian\0") && has("\\EFI\\debian\\shimx64.efi\0"));
}

#[test]
fn a_bios_machine_gets_the_grub_of_the_ramdisk() {
    if !begin("a_bios_machine_gets_the_grub_of_the_ramdisk") {
        return;
    }
    for (label, root, core) in [("msdos", 34, 1), ("gpt", 35, 2048)] {
        let machine = machine(false);
        let menu: &[u8] = b"menuentry x {}\n";
        let image = root_image(&machine, "ext3", &[("boot/grub/grub.cfg", menu)]);
        let label = json!({"disk_label": label});
        succeeded(&deploy(&machine, &image, &label));
        let disk = disk(&machine);
        assert_eq!(bytes(&disk, root, image.len()), image, "{label}");
        let first = bytes(&disk, 0, MIB);
        assert_eq!(first[0], CODE);
        assert_eq!(first[510..512], [0x55, 0xaa]);
        assert_eq!(bytes(&disk, core / 2048, 2 * MIB)[core % 2048 * 512], CODE);
        let commands = String::from_utf8_lossy(&first[2040 * 512..2041 * 512]).into_owned();
        assert!(commands.contains(&format!("--set=root {ROOT_ID}\n")), "{commands}");
        assert!(commands.contains("configfile ($root)/boot/grub/grub.cfg\n"), "{commands}");
    }
}

#[test]
fn an_image_that_cannot_boot_leaves_the_disk_unbootable() {
    if !begin("an_image_that_cannot_boot_leaves_the_disk_unbootable") {
        return;
    }
    let uefi = machine(true);
    let image = root_image(&uefi, "ext4", &[("etc/hostname", b"x")]);
    let ended = deploy(&uefi, &image, &json!({}));
    assert_failed(&ended, "PartitionImageError", "no boot loader for UEFI in /boot/efi/EFI");
    assert_blank_ends(&disk(&uefi));
    let ended = deploy(&uefi, &images::disk(), &json!({}));
    assert_failed(&ended, "PartitionImageError", "the image is no ext2, ext3 or ext4");
    assert_blank_ends(&disk(&uefi));

    let bios = machine(false);
    let image = root_image(&bios, "ext4", &uefi_files());
    let ended = deploy(&bios, &image, &json!({}));
    assert_failed(&ended, "PartitionImageError", "neither /boot/grub/grub.cfg nor /boot/grub2");
    let image =
        root_image(&bios, "ext2", &[("boot/grub2/grub.cfg", b"if x; then\n  blscfg\nfi\n")]);
    let ended = deploy(&bios, &image, &json!({}));
    assert_failed(&ended, "PartitionImageError", "/boot/grub2/grub.cfg uses blscfg");
    assert_blank_ends(&disk(&bios));
}

#[test]
fn a_wrong_checksum_leaves_the_disk_unbootable() {
    if !begin("a_wrong_checksum_leaves_the_disk_unbootable") {
        return;
    }
    let machine = machine(true);
    let image = root_image(&machine, "ext4", &uefi_files());
    let ended = deploy(&machine, &image, &json!({"os_hash_value": "0".repeat(64)}));
    assert_failed(&ended, "ImageChecksumError", "the image's SHA-256 is");
    assert_blank_ends(&disk(&machine));
    assert_eq!(machine.run("standby.get_partition_uuids", json!({}))["command_result"], json!({}));
}

#[test]
fn a_layout_that_does_not_fit_changes_nothing() {
    let machine = machine(true);
    let untouched = |path: PathBuf| {
        let disk = fs::File::open(path).unwrap();
        bytes(&disk, 0, MIB).iter().all(|byte| *byte == 0xaa)
    };
    for (more, kind, sentence) in [
        (json!({"root_mb": 300}), "DiskFull", "the partitions need"),
        (json!({"root_mb": 4}), "DiskFull", "the root partition of /dev/vda has 4194304"),
        (json!({"root_mb": null}), "ImageDescriptionError", "a partition image needs the size"),
        (json!({"ephemeral_format": "xfs"}), "PartitionImageError", "only ext2, ext3 or ext4"),
        (json!({"disk_label": "msdos"}), "PartitionImageError", "gets a GPT"),
        (json!({"preserve_ephemeral": true}), "PartitionImageError", "to be preserved"),
    ] {
        let ended = deploy(&machine, &images::disk(), &more);
        assert_failed(&ended, kind, sentence);
        assert!(untouched(machine.path("dev/vda")), "{more}: the disk was touched");
    }
}

#[test]
fn the_ephemeral_partition_survives_a_rebuild_and_a_failed_one() {
    if !begin("the_ephemeral_partition_survives_a_rebuild_and_a_failed_one") {
        return;
    }
    let machine = machine(true);
    let image = root_image(&machine, "ext4", &uefi_files());
    succeeded(&deploy(&machine, &image, &json!({})));
    let mark = |at: u64| {
        let disk = fs::File::options().write(true).open(machine.path("dev/vda")).unwrap();
        disk.write_all_at(b"precious", at).unwrap();
    };
    let at = 560 * MIB as u64;
    mark(at);
    let kept = json!({"preserve_ephemeral": true});
    let is_kept = || bytes(&disk(&machine), 560, 8) == b"precious";
    // A failed deployment leaves no partition table, and the next finds the partition by its label.
    let wrong = json!({"preserve_ephemeral": true, "os_hash_value": "0".repeat(64)});
    assert_failed(&deploy(&machine, &image, &wrong), "ImageChecksumError", "SHA-256");
    assert_blank_ends(&disk(&machine));
    succeeded(&deploy(&machine, &image, &kept));
    assert!(is_kept());
    succeeded(&deploy(&machine, &image, &kept));
    assert!(is_kept());
    let larger = json!({"preserve_ephemeral": true, "ephemeral_mb": 25});
    assert_failed(&deploy(&machine, &image, &larger), "PartitionImageError", "to be preserved");
    succeeded(&deploy(&machine, &image, &json!({})));
    assert_eq!(label(&disk(&machine), 551), "ephemeral0");
}
