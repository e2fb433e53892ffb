//! A machine with 64-bit ARM: its firmware loads another iPXE, kernel, ramdisk and agent than machines with x86.

use std::path::Path;
use std::process::{Command, Stdio};

use real::stations::{ManagementAccess, deploy, enroll, give_back, inspect, provide};
use real::{Firmware, Machine, RackOptions, Story, image};

/// Makes what the machine boots, and returns the folder.
#[track_caller]
fn boot_files() -> String {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("arm.sh"));
    let made = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let made = made.expect("arm.sh can be started");
    assert!(made.status.success(), "arm.sh failed");
    String::from_utf8_lossy(&made.stdout).trim().to_owned()
}

/// Returns how often the firmware tried to boot from the network.
fn network_boots(machine: &Machine) -> usize {
    let printed = machine.printed();
    ["Start PXE", "Start HTTP Boot"].map(|attempt| printed.matches(attempt).count()).iter().sum()
}

#[test]
fn a_machine_with_arm_is_deployed_and_undeployed() {
    let name = "arm";
    if std::env::var_os("BEDPLATE_REAL").is_none() {
        return peers::skip(name, "it needs a rack; `make test-agents` brings one up");
    }
    let files = boot_files();
    let tables = format!(
        "[provisioning.aarch64]\nkernel = \"{files}/kernel\"\nramdisk = \"{files}/ramdisk\"\niso = \"{files}/ramdisk.iso\"\n\
         loader = \"{files}/ipxe-arm64.efi\""
    );
    let options = RackOptions {
        sizes: &[("RACK_MEMORY", "1024")],
        tables: &tables,
        ..RackOptions::default()
    };
    let Some(mut story) = Story::begin_given(name, &[Firmware::Arm], &options) else { return };
    let machine = story.machine(0);
    enroll(&mut story, &machine, &ManagementAccess::redfish(&machine, "ipxe"));
    let console = "kernel_append_params=console=ttyAMA0";
    story.client.done(&["node", "set", &machine.name, "--driver-info", console]);
    inspect(&mut story, &machine);
    assert_eq!(story.field(&machine.name, "properties")["cpu_arch"], "aarch64");
    provide(&mut story, &machine);
    deploy(&mut story, &machine, &image("tiny-arm.qcow2"));
    let before = network_boots(&machine);
    assert!(before > 0, "the firmware does not print its boots from the network");

    // The last cleaning boots the virtual CD. An interface of a machine in use changes in maintenance only.
    let media = ["node", "set", &machine.name, "--boot-interface", "redfish-virtual-media"];
    story.client.done(&["node", "maintenance", "set", &machine.name]);
    story.client.done(&media);
    story.client.done(&["node", "maintenance", "unset", &machine.name]);
    give_back(&mut story, &machine, 1);
    assert_eq!(network_boots(&machine), before, "the machine booted from the network");
}
