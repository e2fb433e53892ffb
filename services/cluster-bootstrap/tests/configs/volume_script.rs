//! Runs the script that finds volumes, with the real programs that the script starts.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use cluster_bootstrap::{Volume, with_volumes};

use crate::example::cluster;
use crate::{file, member};

const ID: &str = "0f3c2f9a-8a5b-4b8e-9d7e-3d2c1b0a9f8e";

/// A member with `reported` in its config drive, and with a blank disk that is named `disk` in `/dev/disk/by-id`.
fn machine(reported: &str, disk: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let drive = root.path().join("config-drive/openstack/latest");
    fs::create_dir_all(&drive).unwrap();
    fs::write(drive.join("meta_data.json"), reported).unwrap();
    let device = root.path().join("vdc");
    File::create(&device).unwrap().set_len(512 << 20).unwrap();
    let by_id = root.path().join("by-id");
    fs::create_dir(&by_id).unwrap();
    symlink(&device, by_id.join(disk)).unwrap();
    root
}

/// Runs the script for the tag `etcd` on that member. Returns whether the script succeeded, and its output.
fn run(root: &Path) -> (bool, String) {
    let at = |path: &str| root.join(path).to_str().unwrap().to_owned();
    let node = with_volumes(&member(&cluster("v1.30.1"), "cp-1"), &[Volume::Etcd]);
    let script = file(&node, "/etc/bedplate/volumes").unwrap();
    let script = script
        .replace("/run/bedplate/volumes", &at("volumes"))
        .replace("/run/bedplate/config-drive", &at("config-drive"))
        .replace("/dev/disk/by-id", &at("by-id"));
    let run = Command::new("bash").args(["-c", &script, "volumes", "etcd"]).output().unwrap();
    let said = [run.stdout, run.stderr].concat();
    (run.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn meta_data(tag: &str) -> String {
    let disk = |id: &str, tag: &str| {
        format!(r#"{{"type":"disk","bus":"pci","serial":"{id}","tags":["{tag}"]}}"#)
    };
    let other = disk("99999999-8a5b-4b8e-9d7e-3d2c1b0a9f8e", "containers");
    format!(r#"{{"uuid":"u","devices":[{{"type":"nic","mac":"a"}},{other},{}]}}"#, disk(ID, tag))
}

/// Whether the programs that the script starts are installed here.
fn is_possible() -> bool {
    let missing = ["jq", "mkfs.xfs", "blkid"].into_iter().find(|it| !peers::installed(it));
    if let Some(program) = missing {
        peers::skip(
            "a volume is found",
            format!("{program} is not installed (Debian's packages jq, xfsprogs)"),
        );
    }
    missing.is_none()
}

#[test]
fn a_blank_volume_gets_a_file_system_once_on_virtio_and_scsi() {
    if !is_possible() {
        return;
    }
    for disk in [format!("virtio-{}", &ID[..20]), format!("scsi-0QEMU_QEMU_HARDDISK_{ID}")] {
        let root = machine(&meta_data("etcd"), &disk);
        let (well, said) = run(root.path());
        assert!(well && said.contains("made a file system for etcd on the blank volume"), "{said}");
        let device = root.path().join("vdc");
        assert_eq!(fs::canonicalize(root.path().join("volumes/etcd")).unwrap(), device);
        let blkid = Command::new("blkid").args(["-p", "-o", "export"]).arg(&device).output();
        let seen = String::from_utf8(blkid.unwrap().stdout).unwrap();
        assert!(seen.contains("LABEL=etcd\n") && seen.contains("TYPE=xfs\n"), "{seen}");
        // The next boot finds the volume and changes nothing.
        let before = seen;
        let (well, said) = run(root.path());
        assert!(well && said.is_empty(), "{said}");
        let blkid = Command::new("blkid").args(["-p", "-o", "export"]).arg(&device).output();
        assert_eq!(String::from_utf8(blkid.unwrap().stdout).unwrap(), before);
    }
}

#[test]
fn a_volume_with_another_file_system_is_left_unchanged() {
    if !is_possible() {
        return;
    }
    let root = machine(&meta_data("etcd"), &format!("virtio-{}", &ID[..20]));
    let device = root.path().join("vdc");
    let made = Command::new("mkfs.xfs").args(["-q", "-L", "other"]).arg(&device).status();
    assert!(made.unwrap().success());
    let (well, said) = run(root.path());
    assert!(!well && said.contains("existing filesystem"), "{said}");
    assert!(!root.path().join("volumes/etcd").exists());
}

#[test]
fn a_missing_volume_is_named_in_the_output() {
    if !is_possible() {
        return;
    }
    let disk = format!("virtio-{}", &ID[..20]);
    let (well, said) = run(machine(&meta_data("swap"), &disk).path());
    assert!(!well && said.contains("has no volume with the tag etcd"), "{said}");
    let (well, said) = run(machine(r#"{"uuid":"u"}"#, &disk).path());
    assert!(!well && said.contains("has no volume with the tag etcd"), "{said}");
    let (well, said) = run(machine(&meta_data("etcd"), "virtio-99999999-8a5b-4b8e-9").path());
    assert!(!well && said.contains(&format!("no disk found for volume {ID}")), "{said}");
}
