//! A machine with UEFI and a Redfish BMC: its firmware loads iPXE by TFTP.

use real::road::{Reach, there_and_back};
use real::{Firmware, Story, image};

#[test]
fn a_uefi_machine_is_deployed_over_redfish_and_undeployed() {
    let Some(mut story) = Story::begin("uefi", &[Firmware::Uefi]) else { return };
    let machine = story.machine(0);
    let reach = Reach::redfish(&machine, "ipxe");
    there_and_back(&mut story, &machine, &reach, &image("tiny.qcow2"));
}
