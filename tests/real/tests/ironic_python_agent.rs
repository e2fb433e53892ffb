//! Machines whose ramdisk has the released ironic-python-agent instead of our agent.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use real::stations::{self, ManagementAccess};
use real::{Firmware, Image, Machine, RackOptions, Story, image};
use serde_json::json;

const PASSWORD: &str = "w3 fix:th1s";

/// How long the installed system may take to boot.
const BOOT_TIMEOUT: Duration = Duration::from_secs(400);

/// The memory of a machine, in MiB: the unpacked ramdisk alone has 400.
const MEMORY: &str = "2048";

/// Makes the ramdisk of this release, and returns its folder.
#[track_caller]
fn ramdisk(release: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("ipa.sh");
    let mut command = Command::new(script);
    command.arg(release).stdin(Stdio::null()).stderr(Stdio::inherit());
    let made = command.output().expect("ipa.sh can be started");
    assert!(made.status.success(), "ipa.sh {release} failed");
    PathBuf::from(String::from_utf8_lossy(&made.stdout).trim())
}

/// Begins a story with the agent of this release.
#[track_caller]
fn begin(name: &str, firmware: Firmware, release: &str) -> Option<Story> {
    begin_configured(name, firmware, release, "")
}

/// Begins a story with the agent of this release, and with further tables of `baremetald.toml`.
#[track_caller]
fn begin_configured(name: &str, firmware: Firmware, release: &str, tables: &str) -> Option<Story> {
    if std::env::var_os("BEDPLATE_REAL").is_none() {
        peers::skip(name, "it needs a rack; `make test-agents` brings one up");
        return None;
    }
    let ramdisk = ramdisk(release);
    let sizes = &[("RACK_MEMORY", MEMORY)];
    let given = RackOptions { sizes, tables, ramdisk: Some(&ramdisk), ..RackOptions::default() };
    Story::begin_given(name, &[firmware], &given)
}

/// Cleans the machine by the steps that the agent reports with a priority, which erase the disks completely; deploys it, rescues it, and
/// undeploys it.
#[track_caller]
fn clean_and_deploy(story: &mut Story, machine: &Machine, image: &Image) {
    stations::provide(story, machine);
    for step in ["erase_devices_metadata", "erase_devices"] {
        ran(story, machine, step);
    }
    stations::deploy(story, machine, image);
    a_rescue_lets_the_owner_log_in(story, machine);
    stations::give_back(story, machine, 2);
}

/// Rescues the installed machine: the agent sets the password and ends. Then its disk boots again.
#[track_caller]
fn a_rescue_lets_the_owner_log_in(story: &mut Story, machine: &Machine) {
    // In this state, an interface changes in maintenance only.
    story.client.done(&["node", "maintenance", "set", &machine.name]);
    story.client.done(&["node", "set", &machine.name, "--rescue-interface", "agent"]);
    story.client.done(&["node", "maintenance", "unset", &machine.name]);
    stations::rescue(story, machine, PASSWORD);
    let mut keyboard = stations::rescue_login(machine, PASSWORD);
    keyboard.types("echo $USER sees $(ls /sys/block | grep vda)", "rescue sees vda");
    stations::unrescue(story, machine);
    machine.prints(machine.firmware.boots_as(), 2, BOOT_TIMEOUT);
}

/// Checks that the machine's history tells of this clean step.
#[track_caller]
fn ran(story: &mut Story, machine: &Machine, step: &str) {
    let history = story.client.json(&["node", "history", "list", &machine.name]);
    let told = format!("the clean step deploy.{step} took");
    assert!(history.to_string().contains(&told), "{history}");
}

#[test]
fn debians_agent_installs_a_uefi_machine_over_redfish() {
    let Some(mut story) = begin("ipa-debian", Firmware::Uefi, "debian") else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "ipxe");
    stations::enroll(&mut story, &machine, &reach);
    stations::inspect(&mut story, &machine);
    let erase = json!([{"interface": "deploy", "step": "erase_devices_metadata"}]);
    stations::clean(&mut story, &machine, &erase);
    ran(&mut story, &machine, "erase_devices_metadata");
    clean_and_deploy(&mut story, &machine, &image("tiny-gpt.qcow2"));
}

/// This agent copies the loaders of the image, because the image has no `grub-install`.
#[test]
fn debians_agent_installs_the_image_of_a_partition() {
    let Some(mut story) = begin("ipa-partition", Firmware::Uefi, "debian") else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "ipxe");
    stations::enroll(&mut story, &machine, &reach);
    stations::provide(&mut story, &machine);
    stations::deploy_partition(&mut story, &machine, &["image_type=partition"]);
    stations::give_back(&mut story, &machine, 1);
}

/// The same by release 13, which installs boot loaders only if the conductor permits it. A kernel and a ramdisk mark the image, as Nova and
/// Glance mark it: nothing reads them, because the machine boots the kernel in the image.
#[test]
fn pypis_agent_installs_the_image_of_a_partition() {
    let permit = "[agents]\nenable_bios_bootloader_install = true";
    let begun = begin_configured("ipa-partition13", Firmware::Uefi, "pypi", permit);
    let Some(mut story) = begun else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "ipxe");
    stations::enroll(&mut story, &machine, &reach);
    stations::provide(&mut story, &machine);
    let marks =
        ["kernel=http://10.78.0.1:8000/vmlinuz", "ramdisk=http://10.78.0.1:8000/initrd.img"];
    stations::deploy_partition(&mut story, &machine, &marks);
    stations::give_back(&mut story, &machine, 1);
}

/// The ramdisk of the inspection also cleans and installs the machine: only the last cleaning boots it again.
#[test]
fn pypis_agent_stays_on_from_inspection_to_deployment() {
    let Some(mut story) = begin("ipa-fast", Firmware::Uefi, "pypi") else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "ipxe");
    stations::enroll(&mut story, &machine, &reach);
    stations::keeps_ramdisk(&mut story, &machine, true);
    stations::inspect(&mut story, &machine);
    stations::provide_running(&mut story, &machine);
    stations::deploy(&mut story, &machine, &image("tiny-gpt.qcow2"));
    assert_eq!(machine.printed().matches("] ramdisk started").count(), 1);
    stations::keeps_ramdisk(&mut story, &machine, false);
    stations::give_back(&mut story, &machine, 1);
}

#[test]
fn pypis_agent_installs_a_bios_machine_over_ipmi() {
    let Some(mut story) = begin("ipa-pypi", Firmware::Bios, "pypi") else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::ipmi(&machine, "ipxe");
    stations::enroll(&mut story, &machine, &reach);
    stations::inspect(&mut story, &machine);
    clean_and_deploy(&mut story, &machine, &image("tiny.raw"));
}

/// The agent reads its parameters from a file of the medium, as from media that Ironic makes. No network boot takes place.
#[test]
fn debians_agent_installs_a_machine_by_virtual_media() {
    let Some(mut story) = begin("ipa-media", Firmware::Uefi, "debian") else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "redfish-virtual-media");
    stations::enroll(&mut story, &machine, &reach);
    stations::inspect(&mut story, &machine);
    clean_and_deploy(&mut story, &machine, &image("tiny-gpt.qcow2"));
    for attempt in ["Start PXE", "Start HTTP Boot"] {
        assert!(!machine.printed().contains(attempt), "the machine booted from the network");
    }
}
