//! An instance that wants Secure Boot: it is on while the signed system runs, and off while the ramdisk runs.

use std::time::Duration;

use compat::wait::wait_for;
use real::stations::{self, ManagementAccess};
use real::{Firmware, Story, image};

/// How long an installed machine may take to boot.
const BOOT_TIMEOUT: Duration = Duration::from_secs(400);

/// How long the next sweep may take, which begins after a minute at most.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn a_signed_system_is_installed_and_starts_with_secure_boot() {
    let Some(mut story) = Story::begin("secure", &[Firmware::Uefi]) else { return };
    let machine = story.machine(0);
    stations::enroll(&mut story, &machine, &ManagementAccess::redfish(&machine, "ipxe"));
    stations::provide(&mut story, &machine);
    assert_eq!(story.field(&machine.name, "secure_boot"), false);

    let wanted = r#"capabilities={"secure_boot": "true", "boot_mode": "uefi"}"#;
    story.client.done(&["node", "set", &machine.name, "--instance-info", wanted]);
    stations::deploy(&mut story, &machine, &image("tiny-signed.qcow2"));
    machine.prints("SECURE-BOOT", 1, BOOT_TIMEOUT);
    assert_eq!(story.field(&machine.name, "secure_boot"), true);

    stations::give_back(&mut story, &machine, 1);
    // The sweep records what the BMC reports.
    wait_for("Secure Boot to be off", SWEEP_TIMEOUT, || {
        (story.field(&machine.name, "secure_boot") == false).then_some(())
    });
}
