//! A machine with UEFI and a Redfish BMC: its firmware loads iPXE by TFTP.

use real::stations::{ManagementAccess, deploy_and_undeploy};
use real::{Firmware, Story, image};

#[test]
fn a_uefi_machine_is_deployed_over_redfish_and_undeployed() {
    let Some(mut story) = Story::begin("uefi", &[Firmware::Uefi]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "ipxe");
    deploy_and_undeploy(&mut story, &machine, &reach, &image("tiny.qcow2"));
}
