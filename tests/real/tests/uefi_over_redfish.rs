//! A machine with UEFI and a Redfish BMC: its firmware loads iPXE by TFTP.

use real::stations::{self, ManagementAccess};
use real::{Firmware, Story, image};

#[test]
fn a_uefi_machine_is_deployed_over_redfish_adopted_and_undeployed() {
    let Some(mut story) = Story::begin("uefi", &[Firmware::Uefi]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "ipxe");
    let image = image("tiny.qcow2");
    stations::enroll(&mut story, &machine, &reach);
    stations::inspect(&mut story, &machine);
    stations::provide(&mut story, &machine);
    stations::deploy(&mut story, &machine, &image);
    stations::interrupt(&mut story, &machine);
    stations::adopt(&mut story, &machine, &reach, &image);
    stations::give_back(&mut story, &machine, 1);
}
