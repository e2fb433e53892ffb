//! Tests of software RAID, with a stand-in for mdadm.

#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails the test")]

#[expect(dead_code, reason = "each test program uses its part of the harness")]
mod harness;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use harness::{Machine, Reply, Server, Setup, assert_failed, images};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;

/// Starts a machine with two disks of 2 GiB, or with others.
fn machine(uefi: bool, disks: &[(&str, u64)]) -> Machine {
    let machine = Machine::with(Setup { uefi, ..Setup::default() });
    let put = |path: &str, text: &str| {
        let path = machine.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    // The disk of the harness is too small for RAID.
    fs::remove_dir_all(machine.path("sys/block/vda")).unwrap();
    for (name, mib) in disks {
        put(&format!("sys/block/{name}/size"), &(mib * 2048).to_string());
        put(&format!("sys/block/{name}/serial"), &format!("serial-{name}"));
        put(&format!("dev/{name}"), "");
        let disk = fs::File::options().write(true).open(machine.path(&format!("dev/{name}")));
        disk.unwrap().set_len(mib << 20).unwrap();
    }
    let mdadm = machine.path("bin/mdadm");
    put("bin/mdadm", include_str!("harness/mdadm.sh"));
    fs::set_permissions(mdadm, fs::Permissions::from_mode(0o755)).unwrap();
    machine
}

fn two_disks(uefi: bool) -> Machine {
    machine(uefi, &[("sda", 2048), ("sdb", 2048)])
}

fn mirror() -> Value {
    json!({"logical_disks": [{"controller": "software", "raid_level": "1", "size_gb": "MAX"}]})
}

/// Runs a clean step for a node with these RAID configurations.
fn clean(machine: &Machine, interface: &str, step: &str, node: Value) -> Value {
    let step = json!({"interface": interface, "step": step});
    machine.run("clean.execute_clean_step", json!({"step": step, "node": node, "ports": []}))
}

fn create(machine: &Machine, config: &Value) -> Value {
    clean(machine, "raid", "create_configuration", json!({"target_raid_config": config}))
}

/// The calls of mdadm that change something.
fn calls(machine: &Machine) -> Vec<String> {
    let log = fs::read_to_string(machine.path("mdadm.log")).unwrap_or_default();
    let changes = |call: &&str| call.starts_with("--create") || call.starts_with("--stop");
    log.lines().filter(changes).map(str::to_owned).collect()
}

/// The first MiB of a disk.
fn head(machine: &Machine, disk: &str) -> Vec<u8> {
    use std::io::Read;
    let mut head = vec![0; MIB];
    fs::File::open(machine.path(&format!("dev/{disk}"))).unwrap().read_exact(&mut head).unwrap();
    head
}

#[track_caller]
fn assert_succeeded(command: &Value) {
    assert_eq!(command["command_status"], "SUCCEEDED", "{command}");
}

#[test]
fn a_mirror_is_made_of_a_partition_of_each_disk() {
    let machine = two_disks(true);
    let done = create(&machine, &mirror());
    assert_succeeded(&done);
    assert_eq!(done["command_result"]["clean_result"], mirror());
    let want = [
        "--create /dev/md0 --force --run --homehost=any --metadata=1.2 --level 1 --name md0 --raid-devices 2 /dev/sda1 /dev/sdb1",
        "--create /dev/md1 --force --run --homehost=any --metadata=1.0 --level 1 --name esp --raid-devices 2 /dev/sda2 /dev/sdb2",
    ];
    assert_eq!(calls(&machine), want);
    for disk in ["sda", "sdb"] {
        let head = head(&machine, disk);
        assert!(head[510..].starts_with(&[0x55, 0xaa]) && head[512..].starts_with(b"EFI PART"));
        let bounds = |entry: usize| -> [u64; 2] {
            let at = 1024 + entry * 128 + 32;
            [at, at + 8].map(|at| u64::from_le_bytes(head[at..at + 8].try_into().unwrap()))
        };
        assert_eq!(bounds(0), [551 * 2048, 2047 * 2048 - 1]);
        assert_eq!(bounds(1), [2048, 551 * 2048 - 1]);
    }
}

#[test]
fn disks_with_partitions_are_not_overwritten() {
    let machine = two_disks(true);
    assert_succeeded(&create(&machine, &mirror()));
    let before = head(&machine, "sda");
    let refused = create(&machine, &mirror());
    let sentence = "/dev/sda has partitions, and an array would overwrite them. Run raid.delete_configuration or deploy.erase_devices_metadata before this step.";
    assert_failed(&refused, "SoftwareRAIDError", sentence);
    assert!(head(&machine, "sda") == before);
    assert_eq!(calls(&machine).len(), 2);
}

#[test]
fn a_configuration_that_cannot_be_made_changes_nothing() {
    let machine = two_disks(true);
    let mut parity = mirror();
    parity["logical_disks"][0]["size_gb"] = json!(1);
    let five = json!({"controller": "software", "raid_level": "5", "size_gb": "MAX"});
    parity["logical_disks"].as_array_mut().unwrap().push(five);
    for (config, sentence) in [
        (
            parity,
            "logical_disks[1].raid_level: needs 3 disks, and there are 2. Change the target RAID configuration",
        ),
        (
            json!({"logical_disks": [{"controller": "software", "raid_level": "1", "size_gb": 2}]}),
            "/dev/sda has 2048 MiB, and its logical disks need 2049 MiB. Choose smaller sizes",
        ),
    ] {
        assert_failed(&create(&machine, &config), "SoftwareRAIDError", sentence);
    }
    assert!(calls(&machine).is_empty());
    assert!(head(&machine, "sda").iter().all(|byte| *byte == 0));
    // A configuration for a RAID controller is none of the agent's.
    let other = json!({"logical_disks": [{"raid_level": "1", "size_gb": 1}]});
    assert_eq!(create(&machine, &other)["command_result"]["clean_result"], json!({}));
}

#[test]
fn a_failure_of_mdadm_is_reported_in_its_words() {
    let machine = two_disks(false);
    fs::write(machine.path("FAIL"), "--create").unwrap();
    let sentence = "failed: mdadm: --create was told to fail. Look for a broken disk, then run raid.delete_configuration and this step again.";
    assert_failed(&create(&machine, &mirror()), "SoftwareRAIDError", sentence);
    fs::remove_file(machine.path("bin/mdadm")).unwrap();
    assert_succeeded(&clean(&machine, "deploy", "erase_devices_metadata", json!({})));
    let sentence = "cannot start /bin/mdadm: No such file or directory (os error 2). Build the ramdisk again: it has to contain mdadm.";
    assert_failed(&create(&machine, &mirror()), "SoftwareRAIDError", sentence);
}

#[test]
fn a_deletion_removes_the_arrays_and_their_partitions_alone() {
    let machine = machine(true, &[("sda", 2048), ("sdb", 2048), ("sdc", 64), ("sdd", 64)]);
    let mut config = mirror();
    config["logical_disks"][0]["physical_disks"] =
        json!([{"name": "/dev/sda"}, {"serial": "serial-sdb"}]);
    assert_succeeded(&create(&machine, &config));
    let data = images::disk();
    fs::write(machine.path("dev/sdc"), &data).unwrap();
    // A member of an array that does not run: its superblock is of version 1.2.
    let mut member = vec![0x11; 64 * MIB];
    member[4096..4100].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9]);
    fs::write(machine.path("dev/sdd"), member).unwrap();
    let done = clean(&machine, "raid", "delete_configuration", json!({}));
    assert_succeeded(&done);
    assert_eq!(done["command_result"]["clean_result"], Value::Null);
    assert_eq!(calls(&machine)[2..], ["--stop /dev/md0", "--stop /dev/md1"]);
    for disk in ["sda", "sdb", "sdd"] {
        assert!(head(&machine, disk).iter().all(|byte| *byte == 0), "{disk}");
    }
    assert!(head(&machine, "sdc") == data[..MIB]);
    assert_succeeded(&clean(&machine, "raid", "delete_configuration", json!({})));
    assert_succeeded(&create(&machine, &config));
}

#[test]
fn a_disk_that_the_node_skips_is_no_part_of_its_raid() {
    let machine = machine(true, &[("sda", 2048), ("sdb", 2048), ("sdc", 2048)]);
    // A member of an array that does not run: its superblock is of version 1.2.
    let mut member = vec![0x11; 64 * MIB];
    member[4096..4100].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9]);
    fs::write(machine.path("dev/sdc"), &member).unwrap();
    let node = json!({
        "target_raid_config": mirror(),
        "properties": {"skip_block_devices": [{"serial": "serial-sdc"}]},
    });
    assert_succeeded(&clean(&machine, "raid", "create_configuration", node.clone()));
    assert!(calls(&machine)[0].ends_with(" --raid-devices 2 /dev/sda1 /dev/sdb1"));
    assert_succeeded(&clean(&machine, "raid", "delete_configuration", node));
    assert!(head(&machine, "sda").iter().all(|byte| *byte == 0));
    assert!(head(&machine, "sdc") == member[..MIB]);

    let kept = json!({"properties": {"skip_block_devices": [{"volume_name": "data"}]}});
    let refused = clean(&machine, "raid", "delete_configuration", kept);
    assert_failed(&refused, "DeviceNotFound", "volume_name: this agent cannot keep an array");
}

#[test]
fn an_array_that_does_not_stop_is_reported() {
    let machine = two_disks(true);
    assert_succeeded(&create(&machine, &mirror()));
    fs::write(machine.path("FAIL"), "--stop").unwrap();
    let before = head(&machine, "sda");
    for (interface, step) in [("raid", "delete_configuration"), ("deploy", "erase_devices")] {
        let failed = clean(&machine, interface, step, json!({}));
        assert_failed(
            &failed,
            "SoftwareRAIDError",
            "--stop /dev/md1 failed: mdadm: --stop was told to fail.",
        );
    }
    assert!(head(&machine, "sda") == before);
}

#[test]
fn erasing_erases_whole_disks_and_keeps_the_raid_of_the_node() {
    let machine = two_disks(true);
    assert_succeeded(&create(&machine, &mirror()));
    let done =
        clean(&machine, "deploy", "erase_devices_metadata", json!({"raid_config": mirror()}));
    assert_succeeded(&done);
    assert_eq!(done["command_result"]["clean_result"].as_array().unwrap().len(), 2);
    let calls_so_far = calls(&machine);
    assert_eq!(calls_so_far.iter().filter(|call| call.starts_with("--create")).count(), 4);
    assert!(head(&machine, "sda")[512..].starts_with(b"EFI PART"));
    // Without a recorded configuration, the arrays go with the disks.
    assert_succeeded(&clean(&machine, "deploy", "erase_devices", json!({"raid_config": {}})));
    assert_eq!(calls(&machine).len(), calls_so_far.len() + 2);
    assert!(head(&machine, "sda").iter().all(|byte| *byte == 0));
}

#[test]
fn a_deploy_step_replaces_the_existing_raid() {
    let machine = two_disks(true);
    let apply = |args: Value| {
        let step = json!({"interface": "raid", "step": "apply_configuration", "args": args});
        machine.run("deploy.execute_deploy_step", json!({"step": step, "node": {}, "ports": []}))
    };
    let done = apply(json!({"raid_config": mirror()}));
    assert_succeeded(&done);
    assert_eq!(done["command_result"]["deploy_result"], mirror());
    assert_succeeded(&apply(json!({"raid_config": mirror()})));
    assert_eq!(calls(&machine).len(), 6);
    let kept = apply(json!({"raid_config": mirror(), "delete_existing": false}));
    assert_failed(&kept, "SoftwareRAIDError", "has partitions");
    // A wrong configuration leaves the arrays that are there.
    let wrong = apply(json!({"raid_config": {"logical_disks": []}}));
    assert_failed(&wrong, "SoftwareRAIDError", "software RAID has one or two logical disks");
    assert_eq!(calls(&machine).len(), 6);
}

/// Serves an image with an EFI system partition of 1 MiB, whose bytes are 0x77, and returns the parameters of its `write_image`.
fn image_to_write(node: Value) -> (Server, Value) {
    let mut image = vec![0; 4 * MIB];
    image[446..462].copy_from_slice(&[0, 0, 0, 0, 0xef, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0]);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    image[MIB..2 * MIB].fill(0x77);
    let bytes = image.clone();
    let server = Server::start(move |request| Reply::file(&request, &bytes));
    let mut parameters =
        harness::write_image(images::info(&server.url("/image"), "raw", &image), Value::Null);
    parameters["node"] = node;
    (server, parameters)
}

#[test]
fn an_image_on_a_mirror_boots_from_each_disk() {
    let machine = two_disks(true);
    assert_succeeded(&create(&machine, &mirror()));
    let (_server, parameters) = image_to_write(json!({"raid_config": mirror()}));
    let written = machine.run("deploy.execute_deploy_step", parameters);
    assert_succeeded(&written);
    assert_eq!(written["command_result"]["deploy_result"]["disk"], "/dev/md0");
    let array = fs::read(machine.path("dev/md0")).unwrap();
    assert!(array[MIB..2 * MIB].iter().all(|byte| *byte == 0x77));
    for _ in 0..2 {
        let ended = machine.run("image.install_bootloader", json!({"root_uuid": null}));
        assert_succeeded(&ended);
        assert_eq!(ended["command_result"]["boot_entry"], "Boot0001");
        let mirrored = fs::read(machine.path("dev/md1")).unwrap();
        assert!(mirrored[..MIB].iter().all(|byte| *byte == 0x77));
        let array = fs::read(machine.path("dev/md0")).unwrap();
        assert!(array[MIB..2 * MIB].iter().all(|byte| *byte == 0), "two file systems with one id");
        let variable = |name: &str| {
            let path =
                format!("sys/firmware/efi/efivars/{name}-8be4df61-93ca-11d2-aa0d-00e098032b8c");
            fs::read(machine.path(&path)).unwrap()
        };
        assert_eq!(variable("BootOrder"), [7, 0, 0, 0, 1, 0, 0, 0]);
        for (entry, disk) in [("Boot0001", "sda"), ("Boot0000", "sdb")] {
            let entry = variable(entry);
            let label: Vec<u8> =
                format!("bedplate {disk}").encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert!(entry[10..].starts_with(&label));
            let guid = &head(&machine, disk)[1024 + 128 + 16..][..16];
            assert!(
                entry.windows(16).any(|bytes| bytes == guid),
                "{disk} starts by its own partition"
            );
        }
    }
}

#[test]
fn an_image_that_cannot_boot_from_the_mirror_is_refused() {
    let bios = two_disks(false);
    assert_succeeded(&create(&bios, &mirror()));
    let (_server, parameters) = image_to_write(json!({"raid_config": mirror()}));
    let refused = bios.run("deploy.execute_deploy_step", parameters);
    assert_failed(&refused, "DeviceNotFound", "/dev/md0 is an array, which a BIOS cannot start.");

    let uefi = two_disks(true);
    let (_server, parameters) = image_to_write(json!({"raid_config": mirror()}));
    let refused = uefi.run("deploy.execute_deploy_step", parameters);
    let sentence = "the node has a RAID configuration, and no array of it is on the disks. Run the clean steps raid.delete_configuration and raid.create_configuration.";
    assert_failed(&refused, "SoftwareRAIDError", sentence);
}

#[test]
fn the_root_volume_and_hints_choose_the_disk() {
    let machine = machine(true, &[("sda", 4096), ("sdb", 4096), ("sdc", 64)]);
    let mut config = json!({"logical_disks": [
        {"controller": "software", "raid_level": "1", "size_gb": "MAX", "volume_name": "root", "is_root_volume": true},
        {"controller": "software", "raid_level": "0", "size_gb": 1, "is_root_volume": false},
    ]});
    for disk in config["logical_disks"].as_array_mut().unwrap() {
        disk["physical_disks"] = json!([{"name": "/dev/sda"}, {"name": "/dev/sdb"}]);
    }
    assert_succeeded(&create(&machine, &config));
    let write = |node: Value| {
        let (_server, parameters) = image_to_write(node);
        machine.run("deploy.execute_deploy_step", parameters)
    };
    let disk = |written: &Value| written["command_result"]["deploy_result"]["disk"].clone();
    // The logical disk with the rest of the space is the second array.
    assert_eq!(disk(&write(json!({"raid_config": config}))), "/dev/md1");
    let hint = |name: &str| json!({"root_device": {"name": name}});
    let raid = mirror();
    let with = |name: &str| write(json!({"raid_config": raid, "instance_info": hint(name)}));
    assert_eq!(disk(&with("/dev/md0")), "/dev/md0");
    assert_eq!(disk(&with("/dev/sdc")), "/dev/sdc");
    let held = with("/dev/sda");
    assert_failed(&held, "DeviceNotFound", "no disk matches the root device hints");
}
