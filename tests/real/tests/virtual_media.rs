//! A machine that boots from virtual media: no DHCP, no TFTP, no network boot.

use real::stations::{ASKS_BY_DHCP, ManagementAccess, deploy_and_undeploy};
use real::{Firmware, Story, image};

#[test]
fn a_machine_is_deployed_by_virtual_media_and_undeployed() {
    let Some(mut story) = Story::begin("media", &[Firmware::Uefi]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::redfish(&machine, "redfish-virtual-media");
    deploy_and_undeploy(&mut story, &machine, &reach, &image("tiny.raw.gz"));
    let printed = machine.printed();
    // The address is on the medium.
    assert!(!printed.contains(ASKS_BY_DHCP), "the ramdisk asked for an address");
    for attempt in ["Start PXE", "Start HTTP Boot"] {
        assert!(!printed.contains(attempt), "the machine booted from the network");
    }
}
