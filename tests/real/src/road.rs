//! The road of one machine, by `openstack baremetal`: from nobody knows it to installed, and back to blank.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{Image, Machine, Story};

/// How long a change of state may take that boots a machine, in seconds, on two cores with other machines on them.
const WAIT: &str = "420";

/// How long an installed machine may take to start.
const BOOT_TIMEOUT: Duration = Duration::from_secs(180);

/// What the ramdisk prints where nobody gave it an address.
pub const ASKS_BY_DHCP: &str = "asking for an address on";

/// How a machine is reached: the driver, what it must be told, and how the machine gets its ramdisk.
pub struct Reach {
    driver: &'static str,
    boot_interface: &'static str,
    driver_info: Vec<String>,
}

impl Reach {
    /// Over IPMI.
    pub fn ipmi(machine: &Machine, boot_interface: &'static str) -> Self {
        let driver_info = vec![
            format!("ipmi_address={}", machine.bmc),
            format!("ipmi_port={}", machine.ipmi_port),
            format!("ipmi_username={}", machine.username),
            format!("ipmi_password={}", machine.password),
            // virtualbmc has no other
            "ipmi_cipher_suite=3".to_owned(),
        ];
        Reach { driver: "ipmi", boot_interface, driver_info }
    }

    /// Over Redfish, the BMC's certificate verified.
    pub fn redfish(machine: &Machine, boot_interface: &'static str) -> Self {
        let driver_info = vec![
            format!("redfish_address={}", machine.redfish),
            format!("redfish_system_id=/redfish/v1/Systems/{}", machine.uuid),
            format!("redfish_username={}", machine.username),
            format!("redfish_password={}", machine.password),
            "redfish_verify_ca=true".to_owned(),
        ];
        Reach { driver: "redfish", boot_interface, driver_info }
    }
}

/// All of it. Every story of one machine is this, told of another machine.
#[track_caller]
pub fn there_and_back(story: &mut Story, machine: &Machine, reach: &Reach, image: &Image) {
    enroll(story, machine, reach);
    inspect(story, machine);
    provide(story, machine);
    deploy(story, machine, image);
    give_back(story, machine);
}

/// Makes the node and its port, and lets the service verify that it reaches the BMC.
#[track_caller]
pub fn enroll(story: &mut Story, machine: &Machine, reach: &Reach) {
    let mut words = vec!["node", "create", "--name", &machine.name, "--driver", reach.driver];
    words.extend(["--boot-interface", reach.boot_interface]);
    for pair in &reach.driver_info {
        words.extend(["--driver-info", pair]);
    }
    let node = story.client.json(&words);
    let uuid = node["uuid"].as_str().expect("a uuid").to_owned();
    story.client.done(&["port", "create", &machine.mac, "--node", &uuid]);

    story.client.done(&["node", "manage", &machine.name, "--wait", "60"]);
    assert_eq!(story.field(&machine.name, "provision_state"), "manageable");
}

/// Inspects the machine: what it says of itself is what QEMU was given.
#[track_caller]
pub fn inspect(story: &mut Story, machine: &Machine) {
    moved(story, machine, "inspect", "manageable");
    let saved = story.client.done(&["node", "inventory", "save", &machine.name]);
    let saved: Value = serde_json::from_str(&saved).expect("an inventory is JSON");
    let inventory = &saved["inventory"];
    assert_eq!(inventory["cpu"]["count"], machine.cpus, "{inventory}");
    assert_eq!(inventory["cpu"]["architecture"], "x86_64", "{inventory}");
    assert_eq!(inventory["memory"]["physical_mb"], machine.memory_mib, "{inventory}");
    let disks: Vec<Value> = inventory["disks"]
        .as_array()
        .expect("disks")
        .iter()
        .map(|disk| json!([disk["serial"], disk["size"]]))
        .collect();
    assert_eq!(disks, [json!([machine.disk_serial, machine.disk_bytes])], "{inventory}");
    let interfaces = inventory["interfaces"].as_array().expect("interfaces");
    let addresses: Vec<&Value> =
        interfaces.iter().map(|interface| &interface["mac_address"]).collect();
    assert_eq!(addresses, [&machine.mac], "{inventory}");
    assert_eq!(inventory["system_vendor"]["serial_number"], machine.serial, "{inventory}");
    assert_eq!(inventory["bmc_address"], machine.bmc, "{inventory}");
    let mode = if machine.firmware == crate::Firmware::Bios { "bios" } else { "uefi" };
    assert_eq!(inventory["boot"]["current_boot_mode"], mode, "{inventory}");
}

/// Cleans the machine and offers it.
#[track_caller]
pub fn provide(story: &mut Story, machine: &Machine) {
    moved(story, machine, "provide", "available");
    assert_eq!(story.field(&machine.name, "power_state"), "power off");
    assert!(is_blank(machine), "the disk of a machine on offer holds something");
}

/// Says what to install.
#[track_caller]
pub fn choose(story: &mut Story, machine: &Machine, image: &Image) {
    story.client.done(&[
        "node",
        "set",
        &machine.name,
        "--instance-info",
        &format!("image_source={}", image.url),
        "--instance-info",
        "image_os_hash_algo=sha256",
        "--instance-info",
        &format!("image_os_hash_value={}", image.sha256),
        "--instance-info",
        &format!("image_disk_format={}", image.format),
    ]);
}

/// Installs the image: it starts from the disk, by the machine's own firmware.
#[track_caller]
pub fn deploy(story: &mut Story, machine: &Machine, image: &Image) {
    choose(story, machine, image);
    moved(story, machine, "deploy", "active");
    assert_eq!(story.field(&machine.name, "power_state"), "power on");
    machine.prints(machine.firmware.boots_as(), 1, BOOT_TIMEOUT);
}

/// Takes the machine back: nothing of the image is left, and it is off.
#[track_caller]
pub fn give_back(story: &mut Story, machine: &Machine) {
    moved(story, machine, "undeploy", "available");
    assert_eq!(story.field(&machine.name, "power_state"), "power off");
    assert!(is_blank(machine), "the disk of a machine given back holds something");
    assert_eq!(machine.printed().matches("DISK-BOOTED").count(), 1, "the image ran again");
}

/// Whether nothing finds a partition or a boot loader on the disk.
#[track_caller]
pub fn is_blank(machine: &Machine) -> bool {
    machine.edges().iter().all(|byte| *byte == 0)
}

/// Asks for a change of state by its verb, and waits for where it ends.
#[track_caller]
fn moved(story: &mut Story, machine: &Machine, verb: &str, end: &str) {
    let answer = story.client.run(&["node", verb, &machine.name, "--wait", WAIT]);
    let error = story.field(&machine.name, "last_error");
    assert_eq!(answer.code, 0, "{verb} {}: {}\nlast_error: {error}", machine.name, answer.stderr);
    assert_eq!(
        story.field(&machine.name, "provision_state"),
        end,
        "after {verb}; last_error: {error}"
    );
}
