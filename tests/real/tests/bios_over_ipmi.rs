//! A machine with a BIOS and an IPMI BMC: the network card's iPXE uses DHCP and downloads the ramdisk by HTTP. An image with a wrong checksum
//! never runs. In a rescue of the installed machine, the password of the request logs in on the serial console, and the disk boots again
//! afterwards.

use std::time::Duration;

use real::stations::{self, ASKS_BY_DHCP, ManagementAccess};
use real::{Firmware, Image, Machine, Story, image};

const PASSWORD: &str = "w3 fix:th1s";

/// How long the installed system may take to boot.
const BOOT_TIMEOUT: Duration = Duration::from_secs(400);

#[test]
fn a_bios_machine_is_deployed_over_ipmi_rescued_and_undeployed() {
    let Some(mut story) = Story::begin("bios", &[Firmware::Bios]) else { return };
    let machine = story.machine(0);
    let image = image("tiny.raw.gz");
    stations::enroll(&mut story, &machine, &ManagementAccess::ipmi(&machine, "ipxe"));
    story.client.done(&["node", "set", &machine.name, "--rescue-interface", "agent"]);
    stations::inspect(&mut story, &machine);
    stations::provide(&mut story, &machine);
    an_image_with_a_wrong_checksum_leaves_no_bootable_disk(&mut story, &machine, &image);
    stations::deploy(&mut story, &machine, &image);
    stations::interrupt(&mut story, &machine);
    assert!(machine.printed().contains(ASKS_BY_DHCP), "the ramdisk never asked for an address");
    a_rescue_lets_the_owner_log_in(&mut story, &machine);
    stations::give_back(&mut story, &machine, 2);
}

fn an_image_with_a_wrong_checksum_leaves_no_bootable_disk(
    story: &mut Story,
    machine: &Machine,
    right: &Image,
) {
    let node = machine.name.as_str();
    let wrong = Image { sha256: "0".repeat(64), ..right.clone() };
    stations::choose(story, machine, &wrong);
    let answer = story.client.run(&["node", "deploy", node, "--wait", "420"]);
    assert_ne!(answer.code, 0, "the deploy succeeded");
    assert_eq!(story.field(node, "provision_state"), "deploy failed");
    let error = story.field(node, "last_error").to_string();
    assert!(
        error.contains(&right.sha256) || error.contains("checksum") || error.contains("sha256"),
        "{error}"
    );

    // The machine must never run the image, also not after the failure.
    stations::power(story, machine, "off");
    assert_ne!(&machine.edges()[510..512], [0x55, 0xaa], "the disk has a boot sector");
    assert!(!machine.printed().contains("DISK-BOOTED"));
}

fn a_rescue_lets_the_owner_log_in(story: &mut Story, machine: &Machine) {
    stations::rescue(story, machine, PASSWORD);
    let mut keyboard = stations::rescue_login(machine, PASSWORD);
    keyboard.types("echo $(id -un) sees $(ls /sys/block | grep vda)", "rescue sees vda");

    stations::unrescue(story, machine);
    machine.prints(machine.firmware.boots_as(), 2, BOOT_TIMEOUT);
    assert_eq!(story.field(&machine.name, "power_state"), "power on");
}
