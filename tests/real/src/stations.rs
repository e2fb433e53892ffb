//! The stations of one machine, by `openstack baremetal`: from enrolling to the installed system, and back to a blank disk.

use std::time::Duration;

use api_client::baremetald::Inventory;
use compat::wait::wait_for;
use serde_json::Value;

use crate::daemon::ramdisk_folder;
use crate::{Firmware, Image, Keyboard, Machine, Story, image};

/// How long a change of state that boots a machine may take, in seconds, on two cores with other machines.
const WAIT: &str = "420";

/// How long an installed machine may take to boot.
const BOOT_TIMEOUT: Duration = Duration::from_secs(400);

/// The line that the ramdisk prints if it has no configured address.
pub const ASKS_BY_DHCP: &str = "asking for an address on";

/// The driver, its settings, and the boot interface for a machine.
pub struct ManagementAccess {
    driver: &'static str,
    boot_interface: &'static str,
    driver_info: Vec<String>,
}

impl ManagementAccess {
    /// Manages the machine over IPMI.
    pub fn ipmi(machine: &Machine, boot_interface: &'static str) -> Self {
        let driver_info = vec![
            format!("ipmi_address={}", machine.bmc),
            format!("ipmi_port={}", machine.ipmi_port),
            format!("ipmi_username={}", machine.username),
            format!("ipmi_password={}", machine.password),
            // virtualbmc supports no other suite.
            "ipmi_cipher_suite=3".to_owned(),
        ];
        ManagementAccess { driver: "ipmi", boot_interface, driver_info }
    }

    /// Manages the machine over Redfish, and verifies the BMC's certificate.
    pub fn redfish(machine: &Machine, boot_interface: &'static str) -> Self {
        let driver_info = vec![
            format!("redfish_address={}", machine.redfish),
            format!("redfish_system_id=/redfish/v1/Systems/{}", machine.uuid),
            format!("redfish_username={}", machine.username),
            format!("redfish_password={}", machine.password),
            "redfish_verify_ca=true".to_owned(),
        ];
        ManagementAccess { driver: "redfish", boot_interface, driver_info }
    }

    /// As `self`, for an Ironic: with our ramdisk, and with the certificate of the authority that signed the BMC's, which Ironic has nowhere
    /// else.
    pub fn under_ironic(mut self, machine: &Machine) -> Self {
        let ramdisk = ramdisk_folder();
        self.driver_info.extend([
            format!("deploy_kernel=file://{}/kernel", ramdisk.display()),
            format!("deploy_ramdisk=file://{}/ramdisk", ramdisk.display()),
            format!("redfish_verify_ca={}", machine.ca.display()),
        ]);
        self
    }
}

/// Runs all stations except for adoption. Every story of one machine consists of this, with another machine.
#[track_caller]
pub fn deploy_and_undeploy(
    story: &mut Story,
    machine: &Machine,
    reach: &ManagementAccess,
    image: &Image,
) {
    enroll(story, machine, reach);
    inspect(story, machine);
    provide(story, machine);
    deploy(story, machine, image);
    give_back(story, machine, 1);
}

/// Creates the node and its port, and makes the service verify the BMC's credentials.
#[track_caller]
pub fn enroll(story: &mut Story, machine: &Machine, reach: &ManagementAccess) {
    create(story, machine, reach);
    story.client.done(&["node", "manage", &machine.name, "--wait", "60"]);
    assert_eq!(story.field(&machine.name, "provision_state"), "manageable");
}

/// Creates the node and its port.
#[track_caller]
pub fn create(story: &mut Story, machine: &Machine, reach: &ManagementAccess) {
    let mut words = vec!["node", "create", "--name", &machine.name, "--driver", reach.driver];
    words.extend(["--boot-interface", reach.boot_interface]);
    for pair in &reach.driver_info {
        words.extend(["--driver-info", pair]);
    }
    let node = story.client.json(&words);
    let uuid = node["uuid"].as_str().expect("a uuid").to_owned();
    story.client.done(&["port", "create", &machine.mac, "--node", &uuid]);
}

/// Inspects the machine: the inventory must equal QEMU's settings.
#[track_caller]
pub fn inspect(story: &mut Story, machine: &Machine) {
    moved(story, machine, "inspect", "manageable");
    let saved = story.client.done(&["node", "inventory", "save", &machine.name]);
    let saved: Inventory = serde_json::from_str(&saved).expect("an inventory is JSON");
    let found: agent_protocol::Inventory =
        serde_json::from_value(saved.inventory).expect("the inventory of an agent");
    assert_eq!(u64::from(found.cpu.count), machine.cpus);
    let is_arm = machine.firmware == Firmware::Arm;
    assert_eq!(found.cpu.architecture, if is_arm { "aarch64" } else { "x86_64" });
    assert_eq!(found.memory.physical_mb, Some(machine.memory_mib));
    let disks = found.disks.into_iter().map(|disk| (disk.serial.unwrap_or_default(), disk.size));
    let made = [(machine.disk_serial.clone(), machine.disk_bytes)];
    assert_eq!(disks.collect::<Vec<_>>(), made);
    let addresses = found.interfaces.into_iter().filter_map(|interface| interface.mac_address);
    assert_eq!(addresses.collect::<Vec<_>>(), [machine.mac.as_str()]);
    assert_eq!(found.system_vendor.serial_number, machine.serial);
    assert_eq!(found.bmc_address.as_ref(), (!is_arm).then_some(&machine.bmc));
    let mode = if machine.firmware == Firmware::Bios { "bios" } else { "uefi" };
    assert_eq!(found.boot.current_boot_mode, mode);
}

/// Runs clean steps, given as JSON, on a manageable machine.
#[track_caller]
pub fn clean(story: &mut Story, machine: &Machine, steps: &Value) {
    let steps = steps.to_string();
    let words = ["node", "clean", &machine.name, "--clean-steps", &steps];
    waited(story, machine, &words, "manageable");
}

/// Cleans the machine and makes it available.
#[track_caller]
pub fn provide(story: &mut Story, machine: &Machine) {
    provide_with_raid(story, machine);
    assert!(is_blank(machine), "the disk of a machine on offer holds something");
}

/// Cleans a machine with software RAID, whose partition tables stay, and makes it available.
#[track_caller]
pub fn provide_with_raid(story: &mut Story, machine: &Machine) {
    moved(story, machine, "provide", "available");
    assert_eq!(story.field(&machine.name, "power_state"), "power off");
}

/// Sets whether the ramdisk stays on for the next work.
#[track_caller]
pub fn keeps_ramdisk(story: &mut Story, machine: &Machine, keeps: bool) {
    let info = format!("fast_track={keeps}");
    story.client.done(&["node", "set", &machine.name, "--driver-info", &info]);
}

/// Waits until the agent of an inspection has reported, and lets it clean the machine, which stays on.
#[track_caller]
pub fn provide_running(story: &mut Story, machine: &Machine) {
    let log = story.rack.log("baremetald");
    wait_for("the agent to report", BOOT_TIMEOUT, || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("the agent of node").then_some(())
    });
    moved(story, machine, "provide", "available");
    assert_eq!(story.field(&machine.name, "power_state"), "power on");
}

/// Switches the machine on or off, and waits until its BMC reports that state.
#[track_caller]
pub fn power(story: &mut Story, machine: &Machine, target: &str) {
    story.client.done(&["node", "power", target, &machine.name]);
    wait_for(&format!("{} to be {target}", machine.name), BOOT_TIMEOUT, || {
        let state = story.field(&machine.name, "power_state");
        (state == format!("power {target}")).then_some(())
    });
}

/// Selects the image to install.
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

/// Installs `tiny-partition.raw`, which these fields of `instance_info` mark as the image of a partition, with a swap and an ephemeral
/// partition. Checks that it boots and finds each partition.
#[track_caller]
pub fn deploy_partition(story: &mut Story, machine: &Machine, marks: &[&str]) {
    let mut words = vec!["node", "set", &machine.name];
    for field in marks.iter().chain(&["root_gb=1", "swap_mb=64", "ephemeral_gb=1"]) {
        words.extend(["--instance-info", *field]);
    }
    story.client.done(&words);
    deploy(story, machine, &image("tiny-partition.raw"));
    machine.prints("ROOT-MOUNTED the image of a partition", 1, BOOT_TIMEOUT);
    machine.prints("PARTITIONS-END", 1, BOOT_TIMEOUT);
    let efi = (machine.firmware != Firmware::Bios).then_some("efi-part");
    for label in efi.into_iter().chain(["ephemeral0", "swap1"]) {
        assert_eq!(
            machine.printed().matches(&format!("PARTITION {label}\r\n")).count(),
            1,
            "{label}"
        );
    }
}

/// Deploys the image and checks that the machine's firmware boots it from the disk.
#[track_caller]
pub fn deploy(story: &mut Story, machine: &Machine, image: &Image) {
    choose(story, machine, image);
    moved(story, machine, "deploy", "active");
    assert_eq!(story.field(&machine.name, "power_state"), "power on");
    machine.prints(machine.firmware.boots_as(), 1, BOOT_TIMEOUT);
}

/// Interrupts the running machine: its kernel reports a non-maskable interrupt whose cause it does not know.
#[track_caller]
pub fn interrupt(story: &mut Story, machine: &Machine) {
    story.client.done(&["node", "inject", "nmi", &machine.name]);
    machine.prints("NMI received for unknown reason", 1, BOOT_TIMEOUT);
}

/// Deletes the node of a running machine, enrolls the machine again, and adopts it with its image. The BMC must not be asked to reset it.
#[track_caller]
pub fn adopt(story: &mut Story, machine: &Machine, reach: &ManagementAccess, image: &Image) {
    let before = resets(machine);
    assert!(before > 0, "the BMC has not logged the resets of the deployment");
    story.client.done(&["node", "maintenance", "set", &machine.name]);
    story.client.done(&["node", "delete", &machine.name]);
    enroll(story, machine, reach);
    choose(story, machine, image);
    moved(story, machine, "adopt", "active");
    assert_eq!(story.field(&machine.name, "power_state"), "power on");
    assert_eq!(resets(machine), before, "the adoption reset the machine");
}

/// Returns how many requests to change the power of the machine its Redfish BMC has logged.
#[track_caller]
fn resets(machine: &Machine) -> usize {
    let log = machine.console.with_file_name("redfish.log");
    let log = std::fs::read_to_string(&log).unwrap_or_else(|_| panic!("no {}", log.display()));
    log.matches("Actions/ComputerSystem.Reset HTTP").count()
}

/// Boots the ramdisk of an installed machine as a rescue system with this password.
#[track_caller]
pub fn rescue(story: &mut Story, machine: &Machine, password: &str) {
    let words = ["node", "rescue", &machine.name, "--rescue-password", password];
    waited(story, machine, &words, "rescue");
}

/// Logs in on the serial console of a rescued machine, which refuses another password first.
#[track_caller]
pub fn rescue_login<'a>(machine: &'a Machine, password: &str) -> Keyboard<'a> {
    machine.prints("rescue system: log in as rescue", 1, BOOT_TIMEOUT);
    let mut keyboard = Keyboard::of(machine);
    keyboard.types("", "login: ");
    keyboard.types("rescue", "Password: ");
    // login discards all input before its next prompt.
    keyboard.types("wrong", "login: ");
    machine.prints("Login incorrect", 1, BOOT_TIMEOUT);
    keyboard.types("rescue", "Password: ");
    keyboard.types(password, "# ");
    keyboard
}

/// Boots the disk of a rescued machine again.
#[track_caller]
pub fn unrescue(story: &mut Story, machine: &Machine) {
    moved(story, machine, "unrescue", "active");
}

/// Undeploys the machine, which has booted its image `boots` times: the disk must be blank, and the machine off.
#[track_caller]
pub fn give_back(story: &mut Story, machine: &Machine, boots: usize) {
    moved(story, machine, "undeploy", "available");
    assert_eq!(story.field(&machine.name, "power_state"), "power off");
    assert!(is_blank(machine), "the disk of an undeployed machine is not blank");
    assert_eq!(machine.printed().matches("DISK-BOOTED").count(), boots, "the image ran again");
}

/// Whether the disk has neither a partition table nor a boot loader.
#[track_caller]
pub fn is_blank(machine: &Machine) -> bool {
    machine.edges().iter().all(|byte| *byte == 0)
}

/// Requests a change of state by its verb, and waits for its end.
#[track_caller]
fn moved(story: &mut Story, machine: &Machine, verb: &str, end: &str) {
    waited(story, machine, &["node", verb, &machine.name], end);
}

/// Requests a change of state by the words of a command, and waits for its end.
#[track_caller]
fn waited(story: &mut Story, machine: &Machine, words: &[&str], end: &str) {
    let answer = story.client.run(&[words, &["--wait", WAIT]].concat());
    let error = story.field(&machine.name, "last_error");
    assert_eq!(answer.code, 0, "{words:?}: {}\nlast_error: {error}", answer.stderr);
    let state = story.field(&machine.name, "provision_state");
    assert_eq!(state, end, "after {words:?}; last_error: {error}");
}
